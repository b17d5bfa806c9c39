// What the engine thinks of positions and moves: asked for one at a time, and kept.

import { call } from "../game/api.js";

// Milliseconds until a server that is busy or silent is asked again.
const SHORTEST_WAIT = 700, LONGEST_WAIT = 10_000;

export const MARKS = { inaccuracy: "?!", mistake: "?", blunder: "??" };

const keyOf = (position, variant) => `${variant} ${position.turn} ${position.board}`;

export class Study {
  #known = new Map();
  #queue = [];
  #busy = false;
  #generation = 0;
  #wait = SHORTEST_WAIT;

  constructor(onFound) {
    this.onFound = onFound;
    this.failed = "";
  }

  get(position, variant) {
    return this.#known.get(keyOf(position, variant));
  }

  // Ask for these positions, the first one first; what was asked for before and is not in the list is forgotten.
  ask(positions, variant, seconds) {
    this.#queue = positions
      .filter((position) => !this.#isEnough(this.get(position, variant), seconds))
      .map((position) => ({ position, variant, seconds }));
    this.#work();
  }

  forget() {
    this.#queue = [];
    this.#generation++;
  }

  #isEnough(found, seconds) {
    return found && (found.exact || found.asked >= seconds);
  }

  async #work() {
    if (this.#busy) return;
    this.#busy = true;
    while (this.#queue.length) {
      const { position, variant, seconds } = this.#queue.shift();
      const generation = this.#generation;
      if (this.#isEnough(this.get(position, variant), seconds)) continue;
      try {
        const found = await call("POST", "/api/analyse", { body: { board: position.board, turn: position.turn, variant, seconds } });
        found.asked = seconds;
        found.moves = Object.fromEntries(found.moves.map((entry) => [entry.move, entry]));
        this.#remember(keyOf(position, variant), found);
        this.failed = "";
        this.#wait = SHORTEST_WAIT;
        if (generation === this.#generation) this.onFound(position);
      } catch (error) {
        this.failed = error.message;
        if (error.status === 429 || error.status > 500 || error.status === 0) { // 502 and 504 are a proxy's, while the server is away
          if (generation === this.#generation) this.onFound(position); // which shows it, and asks again for what is wanted
          await new Promise((wake) => setTimeout(wake, this.#wait));
          this.#wait = Math.min(LONGEST_WAIT, 2 * this.#wait);
        }
      }
    }
    this.#busy = false;
  }

  #remember(key, found) {
    this.#known.set(key, found);
    if (this.#known.size > 2000) this.#known.delete(this.#known.keys().next().value);
  }
}

// The verdict on the move made in a position: {loss, grade, best, exact, turned}, or null while the engine has not said.
export function verdict(found, move) {
  const made = move === "pass" ? null : found?.moves[move];
  if (!made) return null;
  const turned = found.exact && Math.sign(found.value) !== Math.sign(made.value);
  return { loss: Math.max(0, found.value - made.value), grade: made.verdict, best: found.move, exact: found.exact, turned };
}

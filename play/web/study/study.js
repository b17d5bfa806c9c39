// The engine's analyses of positions, requested one at a time and cached.

import { call } from "../game/api.js";

// Milliseconds until a request to a busy or silent server is repeated.
const MIN_WAIT = 700, MAX_WAIT = 10_000;

// The loss in discs from which a move is a blunder, by the board's size, as on the server.
export const BLUNDER = { 4: 5, 6: 8, 8: 10 };
export const MARKS = { inaccuracy: "?!", mistake: "?", blunder: "??" };

const keyOf = (position, variant) => `${variant} ${position.turn} ${position.board}`;

export class Study {
  #known = new Map();
  #queue = [];
  #busy = false;
  #generation = 0;
  #wait = MIN_WAIT;

  constructor(onResult) {
    this.onResult = onResult;
    this.failed = "";
  }

  get(position, variant) {
    return this.#known.get(keyOf(position, variant));
  }

  // Add a stored analysis; it is not repeated.
  put(position, variant, analysis) {
    this.#remember(keyOf(position, variant), { ...analysis, requested: Infinity });
  }

  // Request these positions in this order; earlier requests that are not in the list are dropped.
  ask(positions, variant, seconds) {
    this.#queue = positions
      .filter((position) => !this.has(position, variant, seconds))
      .map((position) => ({ position, variant, seconds }));
    this.#work();
  }

  forget() {
    this.#queue = [];
    this.#generation++;
  }

  // Whether an analysis of at least this number of seconds is known.
  has(position, variant, seconds) {
    const analysis = this.get(position, variant);
    return Boolean(analysis?.exact || analysis?.requested >= seconds);
  }

  async #work() {
    if (this.#busy) return;
    this.#busy = true;
    while (this.#queue.length) {
      const { position, variant, seconds } = this.#queue.shift();
      const generation = this.#generation;
      if (this.has(position, variant, seconds)) { // from a request before `forget`, whose result was not shown
        this.onResult(position);
        continue;
      }
      try {
        const analysis = await call("POST", "/api/analyse", { body: { board: position.board, turn: position.turn, variant, seconds } });
        analysis.requested = seconds;
        analysis.moves = Object.fromEntries(analysis.moves.map((entry) => [entry.move, entry]));
        this.#remember(keyOf(position, variant), analysis);
        this.failed = "";
        this.#wait = MIN_WAIT;
        if (generation === this.#generation) this.onResult(position);
      } catch (error) {
        this.failed = error.message;
        if (error.status === 429 || error.status > 500 || error.status === 0) { // 502 and 504 come from a proxy while the server is down
          if (generation === this.#generation) this.onResult(position); // which shows the error and requests the wanted positions again
          await new Promise((wake) => setTimeout(wake, this.#wait));
          this.#wait = Math.min(MAX_WAIT, 2 * this.#wait);
        }
      }
    }
    this.#busy = false;
  }

  #remember(key, analysis) {
    this.#known.set(key, analysis);
    if (this.#known.size > 2000) this.#known.delete(this.#known.keys().next().value);
  }
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// The accuracy of moves with these losses, from 1 (all were best) to 0 (all were blunders), and the mean loss in discs.
export const accuracyOf = (losses, size) => ({ accuracy: mean(losses.map((loss) => Math.max(0, 1 - loss / BLUNDER[size]))), lost: mean(losses) });

// The verdict on a move of a position: {loss, grade, best, exact, turned}, or null without an analysis.
export function verdict(analysis, move) {
  const made = move === "pass" ? null : analysis?.moves[move];
  if (!made) return null;
  const turned = analysis.exact && Math.sign(analysis.value) !== Math.sign(made.value);
  return { loss: Math.max(0, analysis.value - made.value), grade: made.verdict, best: analysis.move, exact: analysis.exact, turned };
}

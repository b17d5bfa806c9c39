// My openings: how often the player of this browser played them, points, evaluation after the opening, and the book's moves.

import { call } from "../game/api.js";
import { games } from "../game/memory.js";
import { initial } from "../game/rules.js";
import { Tree } from "../game/tree.js";
import { colourName, decimal, signed, words } from "../page/language.js";
import { $, app, hooks, newLine, node } from "../page/state.js";
import { bookText } from "./opening.js";

const SIZE = 8, OPENING = 20, SECONDS = 0.2;
const known = new Map(); // by the first moves
let run = 0;

const isCounted = ({ moves, mine, result }) => moves?.length && mine && result?.size === SIZE && result.variant === "normal";
const ask = (moves) => call("POST", "/api/openings", { body: { ...initial(SIZE), moves } });

// {name, moves, tree, book, value: in discs for black} of the last named position of a game; only name and moves without a name.
async function openingOf(moves) {
  const key = moves.slice(0, OPENING).join("");
  if (known.has(key)) return known.get(key);
  const { name, plies } = await ask(moves.slice(0, OPENING)), line = moves.slice(0, plies);
  const opening = { name, moves: line };
  if (name) {
    const tree = new Tree(SIZE, initial(SIZE)), { board, turn } = tree.playAll(tree.root, line), { moves: book } = await ask(line);
    const value = book[0]?.value ?? (await call("POST", "/api/analyse", { body: { board, turn, seconds: SECONDS } })).value;
    Object.assign(opening, { tree, book, value: turn === "black" ? value : -value });
  }
  known.set(key, opening);
  return opening;
}

export async function renderOpenings() {
  const own = games().map(([, entry]) => entry).filter(isCounted), groups = new Map(), mine = ++run;
  $("openings").hidden = !own.length;
  for (const entry of own) {
    const opening = await openingOf(entry.moves).catch(() => null);
    if (run !== mine || app.view !== "library") return; // drawn again, or left
    if (!opening) continue;
    const key = `${opening.name} ${entry.mine}`, group = groups.get(key) ?? { ...opening, colour: entry.mine, n: 0, points: 0 };
    const { winner } = entry.result, points = winner === null ? 0.5 : Number(winner === entry.mine);
    groups.set(key, { ...group, n: group.n + 1, points: group.points + points });
  }
  $("openings-list").replaceChildren(...[...groups.values()].sort((a, b) => b.n - a.n).map(row));
}

function row({ name, colour, n, points, tree, book, value }) {
  const title = words("openings.as", { name: name ?? words("openings.other"), colour: colourName(colour) });
  const counts = words("openings.score", { n, points: decimal((100 * points) / n, 0) });
  const about = name ? [words("openings.stood", { value: signed(colour === "black" ? value : -value) }), bookText("opening.book", book)] : [];
  const study = { type: "button", disabled: !name, onclick: () => hooks.study({ ...newLine(SIZE, "normal"), tree }) };
  return node("li", {}, node("button", study, node("span", { className: "name" }, title), node("span", { className: "note" }, [counts, ...about].filter(Boolean).join(" – "))));
}

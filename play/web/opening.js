// What the moves so far are called, and – where the engine's opinion is asked for – how the next ones stand in the book and in
// recorded games, if the server has some.

import { call } from "./api.js";
import { signed, together, words } from "./language.js";
import { $, app } from "./state.js";
import { movesTo, pathTo } from "./tree.js";

const known = new Map(), MOST_KNOWN = 500, MOST_GAMES = 6;

export async function renderOpening() {
  const { line, here } = app, [{ board, turn }] = pathTo(here), moves = movesTo(here);
  const body = { board, turn, variant: line.variant, moves }, key = JSON.stringify(body);
  if (moves.length && !line.idle && !known.has(key)) {
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(key, null);
    const found = await call("POST", "/api/openings", { body }).catch(() => null);
    if (found) known.set(key, found);
    else known.delete(key);
    if (app.here !== here) return;
  }
  const found = moves.length && !line.idle ? known.get(key) : null, { moves: book = [], games = [] } = (app.analysis && found) || {};
  const stands = (key, moves, text) => moves.length && words(key, { moves: together(moves.map(text)) });
  const valued = ({ move, value, lines }) => `${move} ${signed(value)} (${lines})`;
  const counted = ({ move, games, points, score }) => words("opening.played", { move, n: games, points: Math.round(100 * points), score: signed(score) });
  const parts = [
    found?.name,
    stands("opening.book", book.filter(({ plays }) => plays), valued),
    stands("opening.weaker", book.filter(({ plays }) => !plays), valued),
    stands("opening.games", games.slice(0, MOST_GAMES), counted),
  ];
  $("opening").textContent = parts.filter(Boolean).join(" – ");
  $("opening").hidden = !$("opening").textContent;
}

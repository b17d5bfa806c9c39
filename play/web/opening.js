// What the moves so far are called, and – where the engine's opinion is asked for – how the next ones stand in the book.

import { call } from "./api.js";
import { signed, together, words } from "./language.js";
import { $, app } from "./state.js";
import { movesTo, pathTo } from "./tree.js";

const known = new Map(), MOST_KNOWN = 500;

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
  const found = moves.length && !line.idle ? known.get(key) : null, book = app.analysis ? found?.moves ?? [] : [];
  const stands = (key, moves) => moves.length && words(key, { moves: together(moves.map(({ move, value, lines }) => `${move} ${signed(value)} (${lines})`)) });
  const parts = [found?.name, stands("opening.book", book.filter(({ plays }) => plays)), stands("opening.weaker", book.filter(({ plays }) => !plays))];
  $("opening").textContent = parts.filter(Boolean).join(" – ");
  $("opening").hidden = !$("opening").textContent;
}

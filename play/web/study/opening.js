// The opening's name and, with analysis, its next moves in the book and in recorded games, if the server has some.

import { call } from "../game/api.js";
import { signed, joined, words } from "../page/language.js";
import { $, app } from "../page/state.js";
import { movesTo, pathTo } from "../game/tree.js";

const cache = new Map(), MAX_CACHED = 500, MAX_GAMES = 6;
let isAsking = false;

// The last text stays until the answer about the shown position arrives.
export function renderOpening() {
  const { line, here } = app, [{ board, turn }] = pathTo(here), moves = movesTo(here);
  if (!moves.length || line.idle) return show(null);
  const body = { board, turn, variant: line.variant, moves }, key = JSON.stringify(body);
  if (cache.has(key)) show(cache.get(key));
  else ask(here, body, key);
}

// One request at a time: positions that are left before the response are not requested.
async function ask(here, body, key) {
  if (isAsking) return;
  isAsking = true;
  const opening = await call("POST", "/api/openings", { body }).catch(() => null);
  isAsking = false;
  if (cache.size >= MAX_CACHED) cache.clear();
  if (opening) cache.set(key, opening);
  if (opening || app.here !== here) renderOpening();
  else show(null); // the next drawing requests it again
}

const movesText = (key, moves, text) => moves.length && words(key, { moves: joined(moves.map(text)) });
export const bookText = (key, moves) => movesText(key, moves, ({ move, value, lines }) => `${move} ${signed(value)} (${lines})`);

function show(opening) {
  const { moves: book = [], games = [] } = (app.analysis && opening) || {};
  const counted = ({ move, games, points, score }) => words("opening.played", { move, n: games, points: Math.round(100 * points), score: signed(score) });
  const parts = [
    opening?.name,
    bookText("opening.book", book.filter(({ plays }) => plays)),
    bookText("opening.weaker", book.filter(({ plays }) => !plays)),
    movesText("opening.games", games.slice(0, MAX_GAMES), counted),
  ];
  $("opening").textContent = parts.filter(Boolean).join(" – ");
  $("opening").hidden = !$("opening").textContent;
}

// How to play: three pictures with the rules, and a game on 4×4 with a text before every move.

import { after, initial, legalMoves } from "../game/rules.js";
import { words } from "./language.js";
import { addressOf, svgOf } from "./picture.js";
import { $, app, isLive, node } from "./state.js";
import { pathTo } from "../game/tree.js";

const SIZE = 4, FIRST_MOVE = "b1", TURNED = "b2", LAST_TEXT = 3;
const END = { board: "XXXXXOOXXOXXXOOO", turn: "black", move: null };

export function renderHelp() {
  const start = initial(SIZE), moved = { ...after(start, FIRST_MOVE, SIZE), move: FIRST_MOVE };
  const pictures = [["help.start", svgOf(start, { dots: legalMoves(start, SIZE) })], ["help.turn", svgOf(moved, { rings: [FIRST_MOVE, TURNED] })], ["help.end", svgOf(END)]];
  $("help-pictures").replaceChildren(...pictures.map(([key, svg]) => {
    const image = node("img", { src: addressOf(svg), alt: words(`${key}-picture`), width: 200, height: 200 });
    return node("figure", {}, image, node("figcaption", {}, words(key)));
  }));
}

// Show what a beginner should know before this move; the text stays while the opponent replies.
export function renderLesson() {
  const { game } = app, isShown = isLive() && Boolean(game.isLesson), lesson = $("lesson");
  lesson.hidden = !isShown;
  if (!isShown) return;
  const { status, turn, moves } = game.state, made = pathTo(app.line.tip).filter(({ parent }) => parent?.turn === game.mine).length;
  const text = words(status === "finished" ? "lesson.end" : moves.slice(-2).includes("pass") ? "lesson.pass" : `lesson.${Math.min(LAST_TEXT, made)}`);
  if ((status === "finished" || turn === game.mine || !lesson.textContent) && lesson.textContent !== text) lesson.textContent = text;
}

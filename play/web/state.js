// What the page knows: the view, the game, the line of positions with a cursor in it; and questions about them.

import { likes } from "./memory.js";
import { Study, verdict } from "./study.js";

export const $ = (id) => document.getElementById(id);
export const node = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
export const sleep = (milliseconds) => new Promise((wake) => setTimeout(wake, milliseconds));
export const other = (colour) => (colour === "black" ? "white" : "black");
export const capital = (text) => text[0].toUpperCase() + text.slice(1);
export const plural = (n, word) => `${n} ${n === 1 ? word : word.replace(/y?$/, (end) => (end ? "ies" : "s"))}`;

// What the parts of the page ask each other for; set by main.js.
export const hooks = { found: () => {}, play: () => {}, hover: () => {}, goTo: () => {} };

export const app = {
  view: "setup", // setup, loader, game
  game: null, // {id, mode, mine, tokens, role, socket, state: the one that is shown, waiting: later ones, connected, sent, paused}
  line: null, // {size, variant, start, positions: [{board, turn, legal, move}], names, review}
  cursor: 0,
  shown: -1, // the cursor that the board last showed
  analysis: likes().analysis ?? false,
  hover: null,
  working: 0, // positions of a review that are still to be analysed
};

export const study = new Study(() => hooks.found());

export const discs = ({ board }, colour) => board.split(colour === "black" ? "X" : "O").length - 1;
export const movesOf = (line) => line.positions.slice(0, -1).map((position) => position.move);
export const atEnd = () => app.cursor === app.line.positions.length - 1;
export const isOver = (position) => position.legal.length === 0;
export const isLive = () => Boolean(app.game?.state) && app.view === "game" && !app.line.review;

export function mayMove() {
  const { game } = app;
  if (!isLive() || game.state.status !== "running" || !game.connected || game.sent || game.waiting.length) return false;
  return game.mode === "here" || game.role === game.state.turn;
}

// A position's value for black, exact at the end of the game; null while it is not known.
export function valueOf(position) {
  const { line } = app;
  if (isOver(position)) return { value: finalScore(position), exact: true };
  const found = study.get(position, line.variant);
  return found ? { value: position.turn === "black" ? found.value : -found.value, exact: found.exact } : { value: null, exact: false };
}

export function finalScore(position) {
  const black = discs(position, "black"), white = discs(position, "white"), lead = Math.sign(black - white);
  const margin = black - white + lead * (position.board.length - black - white); // the empty squares to the winner
  return margin * (app.line.variant === "normal" ? 1 : -1);
}

export function verdictAt(index) {
  const { line } = app, position = line.positions[index];
  return position?.move ? verdict(study.get(position, line.variant), position.move) : null;
}

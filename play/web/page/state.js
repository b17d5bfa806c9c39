// The page's state: the view, the game, the tree of moves and the place in it; and functions of it.

import { initial } from "../game/rules.js";
import { Study, verdict } from "../study/study.js";
import { Tree, movesTo } from "../game/tree.js";

export const $ = (id) => document.getElementById(id);
export const node = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
export const sleep = (milliseconds) => new Promise((wake) => setTimeout(wake, milliseconds));
export const other = (colour) => (colour === "black" ? "white" : "black");

// Functions of app.js for modules that it imports; set there.
export const hooks = {};

export const app = {
  view: "setup", // setup, loader, library, puzzle, game
  game: null, // {id, mode, mine, tokens, request, role, socket, state: the shown state, waiting: later states, connected, sent, paused}
  line: null, // {size, variant, start, tree, tip: the node after the game's last move, names, review, key: of a review in this browser, shared: the name of another person's review, link, left: number of positions to analyse}
  here: null, // the node of the tree that is shown
  shown: null, // the node that the board showed last
  preview: null, // the line, without moves, of the form's settings
  analysis: false,
  hint: null, // {position, move}: the engine's hint
  hover: null,
  puzzle: null, // {about: the puzzle's data, line, here, isCounted: it was answered, isSolved, verdict: a function without arguments}
  place: "/", // the address of the line
};

export const newLine = (size, variant, start = "standard") => ({ size, variant, start, tree: new Tree(size, initial(size, start)), names: {} });
export function idleLine(size, variant) {
  app.line = { ...newLine(size, variant), idle: true };
  app.here = app.line.tree.root;
}
// The line that is shown and the place in it: of the game, of a puzzle, or of the form.
export const shownPlace = () => {
  if (app.view === "game") return app;
  return (app.view === "puzzle" && app.puzzle) || { line: app.preview, here: app.preview.tree.root };
};
export const betweenPeople = (game) => ["black", "white"].every((colour) => game?.state?.[colour].kind === "human");

export const study = new Study(() => hooks.refresh());

export const discs = ({ board }, colour) => board.split(colour === "black" ? "X" : "O").length - 1;
export const mainEnd = (line) => line.tip ?? line.tree.line().at(-1);
export const movesOf = (line) => movesTo(mainEnd(line));
export const atEnd = () => app.here === mainEnd(app.line);
export const isOver = (position) => position.legal.length === 0;
export const isLive = () => Boolean(app.game?.state) && app.view === "game" && !app.line.review;
export const isPlayer = ({ mode, role }) => mode === "here" || role === "black" || role === "white";
// Whether the shown review is another person's, which is not analysed unless requested.
export const showsStoredOnly = () => Boolean(app.line.shared) && !app.line.isAnalysed;
export const isFinished = () => isLive() && app.game.state.status === "finished";

export function mayMove() {
  const { game } = app;
  if (!isLive() || game.state.status !== "running" || !game.connected || game.sent || game.waiting.length) return false;
  return game.mode === "here" || game.role === game.state.turn;
}

// Whether a click on a legal square plays a variation: in a review, or in a game with analysis.
export const mayTry = () => app.view === "game" && !app.line.idle && (app.line.review || app.analysis) && !(mayMove() && atEnd());

// A position's value for black, exact at the end of the game; null if it is unknown.
export function valueOf(position) {
  const { line } = app;
  if (isOver(position)) return { value: finalScore(position), exact: true };
  const analysis = study.get(position, line.variant);
  return analysis ? { value: position.turn === "black" ? analysis.value : -analysis.value, exact: analysis.exact } : { value: null, exact: false };
}

export function finalScore(position, variant = app.line.variant) {
  const black = discs(position, "black"), white = discs(position, "white"), lead = Math.sign(black - white);
  const margin = black - white + lead * (position.board.length - black - white); // the empty squares to the winner
  return margin * (variant === "normal" ? 1 : -1);
}

// The verdict on the move that led to a node.
export const verdictOf = ({ parent, move }) => (parent ? verdict(study.get(parent, app.line.variant), move) : null);

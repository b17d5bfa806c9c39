// Sentences about players, results, positions and moves.

import { colourName, decimal, sentences, joined, words } from "./language.js";
import * as setup from "../game/setup.js";
import { BLUNDER, MARKS, accuracyOf } from "../study/study.js";
import { app, atEnd, discs, finalScore, isLive, isOver, mainEnd, mayMove, node, other, shownPlace, valueOf, verdictOf } from "./state.js";
import { pathTo } from "../game/tree.js";

const sideName = (colour) => words(`side.${colour}`);
export const moveName = (move) => (move === "pass" ? words("move.pass") : move);
export const pairName = (black, white) => `${setup.shownName(black ?? sideName("black"))} – ${setup.shownName(white ?? sideName("white"))}`;
// Whether a name is only the colour, the server's default.
export const isNameless = (name, colour) => name.toLowerCase() === colour;

export function describeSeat(seat, colour, line) {
  const side = sideName(colour);
  if (!seat) {
    const name = line.names?.[colour];
    return { name: name ? setup.shownName(name) : side, note: name ? side : "" };
  }
  if (seat.kind === "agent") {
    const { title, strength } = setup.describe(seat.agent);
    return { name: title, note: strength };
  }
  if (app.game.mode === "here") return { name: side, note: "" };
  const mine = app.game.role === colour, isNamed = mine || !isNameless(seat.name, colour);
  const name = mine ? words("seat.you") : isNamed ? seat.name : side;
  return { name, note: !mine && !seat.connected ? words("seat.away") : isNamed ? side : "" };
}

// The stored result of a game, and the colour of the player here, if there is one.
export const resultOf = ({ result, discs, size }) => ({ ...result, discs, size, variant: app.line.variant });
export const seatHere = () => (app.game.mode === "here" ? null : app.game.role);

export function resultText({ winner, ending, score, discs, size, variant }, mine) {
  const values = { score: scoreText(score, size, discs, variant), colour: winner && colourName(winner), other: winner && colourName(other(winner)) };
  if (!winner) return words("result.draw", values);
  const who = winner === mine ? "mine" : "won";
  return words(ending === "resigned" || ending === "timeout" ? `result.${who}.${ending}` : `result.${who}`, values);
}

// The end of the game as a title, and the rest of the news: the score, or how else it ended.
export function outcomeText() {
  const { mine, state: { result: { winner } } } = app.game;
  if (!winner || !mine) return words(winner ? "over.by" : "over.draw", { colour: winner && colourName(winner) });
  return words(winner === mine ? "over.won" : "over.lost");
}

export function endText() {
  const result = resultOf(app.game.state), { ending, score, size, variant } = result;
  return ending === "played" ? scoreText(score, size, result.discs, variant) : resultText(result, seatHere());
}

// "40–24", never broken: the winner's discs first. Empty squares count for the side with more discs, as in tournaments; in a draw for nobody.
function scoreText(score, size, discs, variant) {
  if (!score) return `${discs.black}–\u2060${discs.white}`;
  const empty = size * size - discs.black - discs.white, more = (size * size + Math.abs(score)) / 2, fewer = size * size - more;
  const isFewest = variant === "reversed", counts = isFewest ? `${fewer}–\u2060${more}` : `${more}–\u2060${fewer}`;
  return joined([counts, isFewest && words("score.fewest"), empty > 0 && words("score.empty", { n: empty })]);
}

export const askText = () => words("puzzle.ask", { colour: colourName(app.puzzle.about.turn) });
export const gameText = ({ size, variant }) => `${size}×${size} · ${words(`rules.${variant}`)}`;

export function statusText() {
  const { game, here: position } = app;
  if (app.view === "puzzle" && app.puzzle) return app.puzzle.here.parent ? positionText(app.puzzle.here) : askText();
  if (app.view !== "game") return words(`status.${app.view}`, { game: gameText(app.preview) });
  if (game && !game.connected) return words(game.isRefused ? "problem.forgotten" : game.state ? "status.lost" : "status.connecting");
  if (!isLive() || !atEnd()) return positionText(position);
  const { state } = game, colour = colourName(state.turn);
  if (state.status === "finished") return resultText(resultOf(state), seatHere());
  const passed = state.moves.at(-1) === "pass" && words("status.passed", { colour: colourName(other(state.turn)) });
  if (mayMove()) return sentences([passed, game.mode === "here" ? words("status.move", { colour }) : words("status.mine")]);
  if (game.paused) return words("status.paused");
  const { kind, agent, connected } = state[state.turn];
  if (kind === "agent") return sentences([passed, words("status.thinking", { agent: setup.describe(agent).title })]);
  return sentences([passed, words(connected ? "status.waiting" : "status.absent", { colour })]);
}

function positionText(position) {
  const { parent, move } = position;
  const made = parent && words(move === "pass" ? "move.passed" : "move.played", { colour: colourName(parent.turn), move });
  if (!isOver(position)) return sentences([made, words("status.move", { colour: colourName(position.turn) })]);
  const { size, variant } = shownPlace().line, score = finalScore(position, variant), winner = score ? (score > 0 ? "black" : "white") : null;
  const counts = { black: discs(position, "black"), white: discs(position, "white") };
  return sentences([made, resultText({ winner, score, discs: counts, size, variant })]);
}

export const leadText = (value, exact) => {
  if (Math.abs(value) < 0.05) return words(exact ? "lead.draw" : "lead.even");
  const colour = colourName(value > 0 ? "black" : "white");
  return words(exact ? "lead.wins" : "lead.ahead", { colour, n: decimal(Math.abs(value), exact ? 0 : 1) });
};

export function pastVerdict(position) {
  const past = verdictOf(position);
  if (!past || !MARKS[past.grade]) return "";
  const move = position.move + MARKS[past.grade], n = decimal(past.loss, past.exact ? 0 : 1);
  return ` ${words(past.turned ? "past.turned" : "past.lost", { move, n, best: past.best })}`;
}

const judged = (colour) => pathTo(mainEnd(app.line)).slice(1).filter(({ parent }) => parent.turn === colour && parent.legal.length > 1).map(verdictOf).filter(Boolean);

// For each side a text about its moves, and the explanation; nothing without a move that had a choice.
export function accuracies(text = (colour, accuracy) => accuracy) {
  const texts = ["black", "white"].map((colour) => {
    const losses = judged(colour).map(({ loss }) => loss), { accuracy, lost } = accuracyOf(losses, app.line.size);
    const values = { colour: colourName(colour), accuracy: Math.round(100 * accuracy), lost: words("count.discs", { n: decimal(lost) }) };
    return losses.length && node("span", {}, text(colour, words("summary.accuracy", values)));
  }).filter(Boolean);
  return texts.length ? [...texts, node("small", {}, words("summary.explained", { n: BLUNDER[app.line.size] }))] : texts;
}

export function summary() {
  const texts = accuracies((colour, accuracy) => {
    const moves = judged(colour), count = (grade) => words(`count.${grade}`, { n: moves.filter((seen) => seen.grade === grade).length });
    return words("summary.side", { accuracy, counts: joined(["blunder", "mistake", "inaccuracy"].map(count)) });
  });
  return app.line.tree.line().some((position) => valueOf(position).exact) ? [...texts, node("small", {}, words("summary.exact"))] : texts;
}

// What the page says: about players, results, positions and moves.

import * as setup from "./setup.js";
import { MARKS } from "./study.js";
import { app, atEnd, capital, discs, finalScore, isLive, isOver, mayMove, node, other, plural, valueOf, verdictOf } from "./state.js";

export function describeSeat(seat, colour, line) {
  if (!seat) {
    const name = line.names?.[colour];
    return { name: name ?? capital(colour), note: name ? capital(colour) : "" };
  }
  if (seat.kind === "agent") {
    const { title, strength } = setup.describe(seat.agent);
    return { name: title, note: strength };
  }
  if (app.game.mode === "here") return { name: capital(colour), note: "" };
  const mine = app.game.role === colour;
  return { name: mine ? "You" : seat.name, note: mine || seat.connected ? capital(colour) : "not here" };
}

export function resultText() {
  const { result, discs, size } = app.game.state;
  const winner = result.winner;
  if (!winner) return `A draw, ${scoreText(0, size, discs)}.`;
  const who = app.game.mode !== "here" && app.game.role === winner ? "You win" : `${capital(winner)} wins`;
  if (result.ending === "resigned") return `${who}: ${other(winner)} resigned.`;
  if (result.ending === "timeout") return `${who}: ${other(winner)} ran out of time.`;
  return `${who}, ${scoreText(result.score, size, discs)}.`;
}

// "40–24": the winner's discs first. The squares that stay empty go to the side with more discs, as tournaments count.
function scoreText(score, size, discs) {
  const empty = size * size - discs.black - discs.white, more = (size * size + Math.abs(score)) / 2, fewer = size * size - more;
  const counted = empty ? `, ${plural(empty, "empty square")} included` : "";
  return app.line.variant === "reversed" && score ? `${fewer}–${more}, with the fewest${counted}` : `${more}–${fewer}${counted}`;
}

export const gameText = ({ size, variant }) => `${size}×${size} · ${variant === "normal" ? "most discs win" : "fewest discs win"}`;

export function statusText() {
  const { game, here: position } = app;
  if (app.view !== "game") return `${gameText(app.preview)}. ${{ setup: "Choose an opponent to begin.", loader: "Click squares to set a position up." }[app.view] ?? ""}`;
  if (game && !game.connected) return game.state ? "Connection lost – trying again …" : "Connecting …";
  if (!isLive() || !atEnd()) return positionText(position);
  const { state } = game;
  if (state.status === "finished") return resultText();
  const passed = state.moves.at(-1) === "pass" ? `${capital(other(state.turn))} had to pass. ` : "";
  if (mayMove()) return passed + (game.mode === "here" ? `${capital(state.turn)} to move.` : "Your turn.");
  if (state[state.turn].kind === "agent") return `${passed}${setup.describe(state[state.turn].agent).title} is thinking …`;
  return `${passed}Waiting for ${state.turn} …`;
}

function positionText(position) {
  const { parent, move } = position;
  const made = parent ? `${capital(parent.turn)} ${move === "pass" ? "passed" : `played ${move}`}. ` : "";
  if (!isOver(position)) return `${made}${capital(position.turn)} to move.`;
  const score = finalScore(position);
  const counts = scoreText(score, app.line.size, { black: discs(position, "black"), white: discs(position, "white") });
  return `${made}${score ? `${score > 0 ? "Black" : "White"} wins` : "A draw"}, ${counts}.`;
}

export const leadText = (value, exact) => {
  if (Math.abs(value) < 0.05) return exact ? "a draw with best play" : "even";
  const who = value > 0 ? "Black" : "White", discs = Math.abs(value);
  return exact ? `${who} wins by ${discs.toFixed(0)}` : `${who} +${discs.toFixed(1)}`;
};

export function pastVerdict(position) {
  const past = verdictOf(position);
  if (!past || !MARKS[past.grade]) return "";
  return ` ${position.move}${MARKS[past.grade]} lost ${past.exact ? plural(past.loss, "disc") : `${past.loss.toFixed(1)} discs`}${past.turned ? " and the result" : ""}; ${past.best} was better.`;
}

export function summary() {
  const line = app.line.tree.line();
  return ["black", "white"].map((colour) => {
    const own = line.slice(1).filter(({ parent }) => parent.turn === colour).map(verdictOf).filter(Boolean);
    const count = (grade) => own.filter((seen) => seen.grade === grade).length;
    const lost = own.reduce((sum, seen) => sum + seen.loss, 0);
    const counts = ["blunder", "mistake", "inaccuracy"].map((grade) => plural(count(grade), grade)).join(", ");
    return node("span", {}, `${capital(colour)}: ${counts}; ${lost.toFixed(1)} discs given away. `);
  }).concat(line.some((position) => valueOf(position).exact) ? "Where the chart is shaded, values are exact." : []);
}

// Drawing of the page from its state.

import { BoardView } from "./board.js";
import { Chart, share } from "./chart.js";
import { colourName, number, signed, currentLanguage, words } from "./language.js";
import { renderLesson } from "./lesson.js";
import { renderMoves } from "../game/moves.js";
import { renderOpening } from "../study/opening.js";
import { blundersOf, collect, mayAnswer, renderPuzzle } from "../study/puzzle.js";
import { after } from "../game/rules.js";
import { addressForOthers } from "../game/setup.js";
import { renderRated } from "../game/standing.js";
import { $, app, atEnd, betweenPeople, discs, hooks, isFinished, showsStoredOnly, isLive, isOver, isPlayer, mayMove, mayTry, movesOf, node, other, shownPlace, sleep, study, valueOf, verdictOf } from "./state.js";
import { headOf, pathTo } from "../game/tree.js";
import { accuracies, describeSeat, endText, gameText, leadText, moveName, outcomeText, pastVerdict, statusText, summary } from "./words.js";

const board = new BoardView($("board"), { onPlay: (name) => hooks.play(name), onHover: (name) => hooks.hover(name) });
const chart = new Chart($("chart"), (index) => hooks.goTo(app.line.tree.line(app.here)[index]));

export const focusBoard = () => board.focus();

// Wait until the discs of the last move have turned, with a limit, since animations stop in the background.
export const turned = () => Promise.race([board.turned, sleep(1500)]);

export function render() {
  if (!app.line) return;
  const held = document.activeElement;
  renderPlayers();
  renderBoard();
  renderStatus();
  renderStepper();
  if (app.view === "puzzle") renderPuzzle();
  renderGame();
  if (held?.closest("#game [hidden]")) focusBoard(); // the focused element is hidden now
}

function renderBoard() {
  const { line, here } = shownPlace();
  const playable = (mayMove() && atEnd()) || mayTry() || mayAnswer();
  const analysis = app.analysis && app.view === "game" ? study.get(here, line.variant) : null;
  board.show({
    size: line.size,
    board: here.board,
    turn: here.turn,
    legal: (playable || analysis) && here.legal[0] !== "pass" ? here.legal : [],
    last: here.move,
    playable,
    editing: app.view === "loader",
    best: analysis?.move,
    hint: app.hint?.position === here ? app.hint.move : null,
    values: analysis && here.legal[0] !== "pass" ? moveValues(analysis) : {},
  }, { animate: app.shown === here.parent || app.shown?.parent === here });
  app.shown = here;
}

const moveValues = (analysis) => Object.fromEntries(Object.values(analysis.moves).map(({ move, value, verdict }) => [
  move, { text: analysis.exact || Math.abs(value) >= 9.95 ? signed(value, 0) : signed(value), grade: verdict },
]));

function renderPlayers() {
  const { game } = app, { line, here: position } = shownPlace();
  for (const colour of ["black", "white"]) {
    const card = $(`player-${colour}`), seat = isLive() ? game.state[colour] : null;
    const count = discs(position, colour), texts = { count, ...describeSeat(seat, colour, line) };
    for (const [name, text] of Object.entries(texts)) card.querySelector(`.${name}`).textContent = text;
    card.querySelector(".count").setAttribute("aria-label", words("count.discs", { n: count }));
    card.classList.toggle("turn", /^(game|puzzle)$/.test(app.view) && !isOver(position) && position.turn === colour);
  }
  renderClocks();
}

export function renderClocks() {
  const clock = isLive() ? app.game.state.clock : null;
  for (const colour of ["black", "white"]) {
    const shown = $(`player-${colour}`).querySelector(".clock");
    shown.hidden = !clock;
    if (!clock) continue;
    const used = clock.running === colour ? (performance.now() - app.game.state.received) / 1000 : 0;
    const left = Math.max(0, clock[colour] - used);
    shown.textContent = left >= 10 ? `${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")}` : number(left, 1);
    shown.classList.toggle("low", left < 20);
  }
}

const renderStatus = () => {
  const text = statusText();
  if ($("status").textContent !== text) $("status").textContent = text;
};

function renderStepper() {
  const { line, here } = shownPlace();
  $("first").disabled = $("previous").disabled = !here.parent;
  $("next").disabled = $("last").disabled = !here.children.length;
  const n = pathTo(here).length - 1;
  $("ply").textContent = `${n} / ${line.tree.line(here).length - 1}`;
  $("return").hidden = !isLive() || atEnd();
  if (!$("return").hidden) $("return").textContent = words("step.return", { n, total: movesOf(line).length });
}

function renderGame() {
  if (app.view !== "game") {
    $("bar").hidden = true;
    return;
  }
  const { line, game } = app, state = game?.state, any = movesOf(line).length > 0;
  const running = isLive() && state.status === "running";
  const plays = running && isPlayer(game);
  $("game-title").textContent = isFinished() ? outcomeText() : words(line.review ? "library.review" : game?.mode === "watch" ? "game.watching" : "game.title");
  $("tags").textContent = gameText(line);
  $("tools").hidden = Boolean(line.review);
  $("watching").hidden = game?.mode !== "watch" || !running;
  $("pause").textContent = words(game?.paused ? "speed.play" : "speed.pause");
  $("undo").disabled = !state?.moves.length;
  $("study").hidden = Boolean(line.review) || isFinished();
  $("save-json").hidden = !line.review;
  $("share").hidden = !line.review && !game?.tokens.spectator;
  $("study").disabled = $("copy").disabled = $("save").disabled = !any;
  $("analysis").checked = app.analysis;
  $("analysis").closest("label").hidden = running && betweenPeople(game);
  $("hint").hidden = game?.mode !== "computer" || !running;
  $("hint").disabled = !mayMove() || !atEnd();
  renderResult();
  $("undo").hidden = $("resign").hidden = !plays;
  const key = running && game.mode === "friend" && game.mine && !state[other(game.mine)].connected && game.tokens[other(game.mine)];
  const invitation = key ? `/#join=${game.id}.${other(game.mine)}.${key}` : null;
  $("invite").hidden = !invitation && !line.link;
  if (!$("invite").hidden) renderInvitation(invitation);
  $("ask").hidden = !(running && game.mode === "friend" && state.undo_request && state.undo_request !== game.role && game.role !== "spectator");
  renderLesson();
  renderRated();
  renderOpening();
  renderInsight();
  renderMoves();
  renderNotes();
}

function renderResult() {
  const { game, line: { left } } = app, isOver = isFinished();
  $("result").hidden = $("accuracy").hidden = !isOver;
  if (!isOver) return;
  const { rematch } = game.state;
  $("score").textContent = endText();
  $("accuracy").replaceChildren(...(left ? [words("progress.left", { n: left })] : accuracies()));
  $("offer").hidden = !rematch || !game.mine;
  $("rematch").hidden = !rematch && !(game.mode === "friend" ? game.mine : game.request);
  $("rematch").textContent = words(!rematch ? "game.rematch" : game.mine ? "rematch.join" : "rematch.watch");
}

// The controls of a move: all of them in a review, in a game only for variations.
function renderNotes() {
  const { line, here } = app, head = headOf(here), tried = !line.tip || !pathTo(line.tip).includes(here);
  $("notes").hidden = !line.review && !(mayTry() && tried);
  $("promote").hidden = !line.review;
  $("promote").disabled = !head;
  $("remove").disabled = !here.parent || !tried;
  if ($("comment").value !== here.comment) $("comment").value = here.comment;
}

function renderInsight() {
  const { line, here } = app, shown = line.tree.line(here);
  $("insight").hidden = $("bar").hidden = !app.analysis;
  if (!app.analysis) return;
  const { value, exact } = valueOf(here);
  $("bar").style.setProperty("--share", value === null ? 0.5 : share(value, line.size));
  $("bar").setAttribute("aria-label", words("bar.label", { value: value === null ? words("bar.unknown") : leadText(value, exact) }));
  chart.show(shown.map((position) => ({ ...valueOf(position), grade: verdictOf(position)?.grade })), shown.indexOf(here), line.size);
  renderLine();
  const total = line.tree.line().length, { left = 0 } = line;
  $("progress").hidden = !line.review || !left || showsStoredOnly();
  $("go-on").hidden = !showsStoredOnly() || isOver(here) || study.has(here, line.variant, 0);
  $("progress").firstElementChild.value = (total - left) / total;
  $("progress").lastElementChild.textContent = study.failed || words("progress.left", { n: left });
  $("summary").hidden = !line.review || left > 0 || total === 1;
  if (!$("summary").hidden) $("summary").replaceChildren(...summary());
  const blunders = line.key && !left ? blundersOf(line) : [];
  if (line.mine) collect(blunders);
  $("practise").hidden = !blunders.length;
  $("practise").textContent = words("puzzle.practise", { n: blunders.length });
}

export function renderLine() {
  const { line, here, hover } = app, analysis = study.get(here, line.variant);
  if (isOver(here)) showLine(words("line.over"), pastVerdict(here));
  else if (!analysis) showLine(words(study.failed || showsStoredOnly() ? "line.none" : "line.thinking"), study.failed);
  else if (hover && hover in analysis.moves && hover !== analysis.move) {
    const child = study.get(after(here, hover, line.size), line.variant);
    const text = signed(analysis.moves[hover].value, analysis.exact ? 0 : 1);
    showLine(words("line.move", { move: hover, value: text, colour: colourName(here.turn) }), "", [hover, ...(child?.pv ?? [])]);
  } else {
    const { value } = valueOf(here), [kind, n] = analysis.confidence ? ["line.sure", analysis.confidence] : ["line.depth", analysis.depth];
    showLine(words("line.verdict", { lead: leadText(value, analysis.exact), sure: analysis.exact ? words("line.exact") : words(kind, { n }) }), pastVerdict(here), analysis.pv);
  }
}

// Show a verdict, a remark, and an expected line whose moves can be clicked to play them as a variation.
function showLine(verdict, remark, line = []) {
  const [first, rest] = $("line").children, moves = line.slice(0, 12), signature = JSON.stringify([currentLanguage(), remark, moves]);
  first.textContent = verdict;
  if (rest.dataset.signature === signature && rest.position === app.here) return;
  Object.assign(rest, { position: app.here }).dataset.signature = signature;
  const focused = rest.contains(document.activeElement);
  rest.replaceChildren(`${remark} `, ...(mayTry() || mayMove() ? moves.map(expected) : [moves.map(moveName).join(" ")]));
  if (focused) (rest.querySelector("button") ?? $("game-title")).focus({ preventScroll: true });
}

const expected = (move, index, line) => {
  const upTo = line.slice(0, index + 1), button = node("button", { type: "button", onclick: () => hooks.follow(upTo) }, moveName(move));
  button.setAttribute("aria-label", words("line.play", { moves: upTo.map(moveName).join(" ") }));
  return button;
};

// Show the invitation of a friend, or the link that was shared last.
function renderInvitation(invitation) {
  const { line } = app, { origin, canReach } = addressForOthers();
  $("invite-text").textContent = words(invitation ? "invite.friend" : line.review ? "invite.review" : "invite.watch");
  $("invite-link").value = origin + (invitation ?? line.link);
  $("invite-warning").hidden = canReach;
}

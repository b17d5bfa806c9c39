// Everything that is drawn, from what the page knows.

import { BoardView, signed } from "./board.js";
import { Chart, share } from "./chart.js";
import { after } from "./rules.js";
import { $, app, atEnd, capital, discs, hooks, isLive, isOver, mayMove, movesOf, node, other, sleep, study, valueOf, verdictAt } from "./state.js";
import { MARKS } from "./study.js";
import { describeSeat, leadText, pastVerdict, statusText, summary } from "./words.js";

const board = new BoardView($("board"), { onPlay: (name) => hooks.play(name), onHover: (name) => hooks.hover(name) });
const chart = new Chart($("chart"), (cursor) => hooks.goTo(cursor));

// Until the discs of the last move have turned; not for ever, since a page in the background stands still.
export const turned = () => Promise.race([board.turned, sleep(1500)]);

export function render() {
  if (!app.line) return;
  renderPlayers();
  renderBoard();
  renderStatus();
  renderGame();
}

function renderBoard() {
  const { line, cursor } = app, position = line.positions[cursor];
  const playable = mayMove() && atEnd();
  const found = app.analysis && app.view === "game" ? study.get(position, line.variant) : null;
  board.show({
    size: line.size,
    board: position.board,
    turn: position.turn,
    legal: (playable || found) && position.legal[0] !== "pass" ? position.legal : [],
    last: cursor ? line.positions[cursor - 1].move : null,
    playable,
    best: found?.move,
    values: found && position.legal[0] !== "pass" ? worths(found) : {},
  }, { animate: Math.abs(cursor - app.shown) <= 1 });
  app.shown = cursor;
}

const worths = (found) => Object.fromEntries(Object.values(found.moves).map(({ move, value, verdict }) => [
  move, { text: found.exact || Math.abs(value) >= 9.95 ? signed(value, 0) : signed(value), grade: verdict },
]));

function renderPlayers() {
  const { line, game } = app, position = line.positions[app.cursor];
  for (const colour of ["black", "white"]) {
    const card = $(`player-${colour}`), seat = isLive() ? game.state[colour] : null;
    const texts = { count: discs(position, colour), ...describeSeat(seat, colour) };
    for (const [name, text] of Object.entries(texts)) card.querySelector(`.${name}`).textContent = text;
    card.classList.toggle("turn", app.view === "game" && !isOver(position) && position.turn === colour);
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
    shown.textContent = left >= 10 ? `${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")}` : left.toFixed(1);
    shown.classList.toggle("low", left < 20);
  }
}

const renderStatus = () => {
  const text = statusText();
  if ($("status").textContent !== text) $("status").textContent = text;
};

function renderGame() {
  if (app.view !== "game") {
    $("bar").hidden = true;
    return;
  }
  const { line, game, cursor } = app, state = game?.state;
  const running = isLive() && state.status === "running";
  const plays = running && (game.mode === "here" || game.role === "black" || game.role === "white");
  $("game-title").textContent = line.review ? "Review" : game?.mode === "watch" ? "Watching" : "Game";
  $("tags").textContent = `${line.size}×${line.size} · ${line.variant === "normal" ? "most discs win" : "fewest discs win"}`;
  $("undo").hidden = $("resign").hidden = game?.mode === "watch";
  $("tools").hidden = Boolean(line.review);
  $("watching").hidden = game?.mode !== "watch" || !running;
  $("pause").textContent = game?.paused ? "Play" : "Pause";
  $("undo").disabled = !plays || !state.moves.length;
  $("resign").disabled = !plays;
  $("study").hidden = Boolean(line.review);
  $("study").disabled = !line.positions[1];
  $("copy").disabled = $("save").disabled = !line.positions[1];
  $("analysis").checked = app.analysis;
  $("invite").hidden = !(running && game.mode === "friend" && game.mine && !state[other(game.mine)].connected && game.tokens[other(game.mine)]);
  if (!$("invite").hidden) $("invite-link").value = inviteLink();
  $("ask").hidden = !(running && game.mode === "friend" && state.undo_request && state.undo_request !== game.role && game.role !== "spectator");
  $("first").disabled = $("previous").disabled = cursor === 0;
  $("next").disabled = $("last").disabled = atEnd();
  $("ply").textContent = `${cursor} / ${line.positions.length - 1}`;
  renderInsight();
  renderMoves();
}

function renderInsight() {
  const { line, cursor } = app;
  $("insight").hidden = $("bar").hidden = !app.analysis;
  if (!app.analysis) return;
  const { value, exact } = valueOf(line.positions[cursor]);
  $("bar").style.setProperty("--share", value === null ? 0.5 : share(value, line.size));
  $("bar").setAttribute("aria-label", `Evaluation: ${value === null ? "unknown" : leadText(value, exact)}`);
  const entries = line.positions.map((position, i) => ({ ...valueOf(position), grade: i ? verdictAt(i - 1)?.grade : null }));
  chart.show(entries, cursor, line.size);
  renderLine();
  const total = line.positions.length, left = app.working;
  $("progress").hidden = !line.review || !left;
  $("progress").firstElementChild.value = (total - left) / total;
  $("progress").lastElementChild.textContent = study.failed || `${left} to go`;
  $("summary").hidden = !line.review || left > 0;
  if (!$("summary").hidden) $("summary").replaceChildren(...summary());
}

export function renderLine() {
  const { line, cursor, hover } = app, position = line.positions[cursor];
  const [first, rest] = $("line").children;
  const found = study.get(position, line.variant);
  if (isOver(position)) {
    first.textContent = "The game is over.";
    rest.textContent = pastVerdict(cursor);
  } else if (!found) {
    first.textContent = study.failed ? "No opinion yet." : "Thinking …";
    rest.textContent = study.failed;
  } else if (hover && hover in found.moves && hover !== found.move) {
    const child = study.get(after(position, hover, line.size), line.variant);
    first.textContent = `${hover} ${signed(found.moves[hover].value, found.exact ? 0 : 1)} for ${position.turn}`;
    rest.textContent = ` ${[hover, ...(child?.pv ?? [])].slice(0, 12).join(" ")}`;
  } else {
    const { value } = valueOf(position);
    first.textContent = found.exact ? `${capital(leadText(value, true))}, exact.` : `${capital(leadText(value, false))}, ${found.confidence ? `${found.confidence} %` : `depth ${found.depth}`}.`;
    rest.textContent = `${pastVerdict(cursor)} ${found.pv.slice(0, 12).join(" ")}`;
  }
}

function renderMoves() {
  const list = $("moves"), { positions } = app.line;
  const signature = JSON.stringify([movesOf(app.line), app.cursor, app.analysis && positions.map((_, i) => verdictAt(i)?.grade)]);
  if (signature === list.dataset.signature) return;
  list.dataset.signature = signature;
  const items = [];
  for (let i = 0; i < positions.length - 1; i += 2) {
    const number = node("span", { className: "number" }, `${i / 2 + 1}`);
    items.push(node("li", {}, number, ...[i, i + 1].filter((n) => n < positions.length - 1).map(moveButton)));
  }
  list.replaceChildren(...items);
  const current = list.querySelector("[aria-current=true]");
  if (current) list.scrollTop += current.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}

function moveButton(index) {
  const { move, turn } = app.line.positions[index], seen = app.analysis ? verdictAt(index) : null;
  const name = node("span", { className: move === "pass" ? "pass" : "" }, move);
  const button = node("button", { type: "button", onclick: () => hooks.goTo(index + 1) }, name);
  button.setAttribute("aria-current", app.cursor === index + 1);
  let label = `${capital(turn)} ${move}`;
  if (seen && MARKS[seen.grade]) {
    button.append(node("span", { className: "grade" }, MARKS[seen.grade]));
    button.dataset.grade = seen.grade;
    label += `, ${seen.grade}, loses ${seen.loss.toFixed(seen.exact ? 0 : 1)} discs, best ${seen.best}`;
    button.title = label;
  }
  button.setAttribute("aria-label", label);
  return button;
}

const inviteLink = () => `${location.origin}/#join=${app.game.id}.${other(app.game.mine)}.${app.game.tokens[other(app.game.mine)]}`;

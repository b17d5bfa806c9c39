// The page: one line of positions, a cursor in it, and – in a game – a socket that makes it longer.

import { GameSocket, Problem, call } from "./api.js";
import { BoardView, signed } from "./board.js";
import { Chart, share } from "./chart.js";
import { like, likes, rememberGame, rememberTheme, rememberedGame } from "./memory.js";
import { after } from "./rules.js";
import * as setup from "./setup.js";
import { MARKS, Study, gradeOf, verdict } from "./study.js";

const $ = (id) => document.getElementById(id);
const other = (colour) => (colour === "black" ? "white" : "black");
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const PLAY_SECONDS = 0.25, REVIEW_SECONDS = 0.5, HOVER_SECONDS = 0.15;

const app = {
  view: "setup", // setup, loader, game
  game: null, // {id, mode, mine, tokens, role, socket, state, connected, sent}
  line: null, // {size, variant, start, positions: [{board, turn, legal, move}], names, review}
  cursor: 0,
  shown: -1, // the cursor that the board last showed
  analysis: likes().analysis ?? false,
  hover: null,
  working: 0, // positions of a review that are still to be analysed
};

const board = new BoardView($("board"), { onPlay: playMove, onHover: hoverMove });
const chart = new Chart($("chart"), goTo);
const study = new Study(() => { askStudy(); render(); });

// --- views ---------------------------------------------------------------------------------------

function setView(view) {
  app.view = view;
  document.body.dataset.view = view;
  $("setup").hidden = view !== "setup";
  $("loader").hidden = view !== "loader";
  $("game").hidden = view !== "game";
  $("setup-cancel").hidden = $("loader-cancel").hidden = !app.line || app.line.idle;
  if (view === "game" && matchMedia("(max-width: 860px)").matches) scrollTo({ top: 0 });
  render();
}

function say(text) {
  $("live").textContent = "";
  requestAnimationFrame(() => { $("live").textContent = text; });
}

let toastTimer = 0;
function complain(error) {
  if (error?.name === "AbortError") return;
  if (!(error instanceof Problem)) console.error(error);
  $("toast").textContent = error.message ?? String(error);
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 5000);
}

// --- the line of positions -----------------------------------------------------------------------

async function idleLine(size, variant) {
  const line = await readLine("", size, variant);
  app.line = { ...line, idle: true };
  app.cursor = 0;
}

async function readLine(text, size, variant, start = "standard") {
  const found = await call("POST", "/api/transcripts", { body: { text, size, variant, start } });
  return { size: found.size, variant: found.variant, start, positions: found.positions, names: { black: found.black, white: found.white }, result: found.result };
}

const movesOf = (line) => line.positions.slice(0, -1).map((position) => position.move);
const atEnd = () => app.cursor === app.line.positions.length - 1;

function goTo(cursor) {
  if (!app.line) return;
  app.cursor = Math.min(app.line.positions.length - 1, Math.max(0, cursor));
  app.hover = null;
  askStudy();
  render();
}

// Bring the line up to date with the game's state: one move longer, some moves shorter, or read anew.
async function follow(state) {
  const line = app.line, known = line.idle ? null : movesOf(line), wasAtEnd = !known || atEnd();
  const now = { board: state.board, turn: state.turn, legal: state.legal, move: null };
  const common = known && known.every((move, i) => i >= state.moves.length || move === state.moves[i]) && sameGame(line, state);
  if (common && state.moves.length === known.length + 1) {
    line.positions[known.length].move = state.moves[known.length];
    line.positions.push(now);
  } else if (common && state.moves.length <= known.length) {
    line.positions.length = state.moves.length + 1;
    line.positions[state.moves.length] = now;
  } else {
    const read = await readLine(state.moves.join(" "), state.size, state.variant, state.start);
    if (app.game?.state !== state) return; // a later state has come, and is read itself
    app.line = read;
    read.positions[read.positions.length - 1].legal = state.legal;
  }
  if (wasAtEnd || app.cursor >= app.line.positions.length) app.cursor = app.line.positions.length - 1;
}

const sameGame = (line, state) => line.size === state.size && line.variant === state.variant && line.start === state.start;

// --- games ---------------------------------------------------------------------------------------

async function startGame(event) {
  event.preventDefault();
  $("start").disabled = true;
  try {
    const { mode, mine, request } = setup.order($("setup"));
    const created = await call("POST", "/api/games", { body: request });
    rememberGame(created.game, { mode, mine, tokens: created.tokens });
    await openGame(created.game);
  } catch (error) {
    complain(error);
  } finally {
    $("start").disabled = false;
  }
}

function leaveGame() {
  app.game?.socket.close();
  app.game = null;
  study.forget();
}

async function openGame(id) {
  const entry = rememberedGame(id);
  if (!entry) throw new Problem("This browser has no key to that game.", 403, "no_key");
  leaveGame();
  const { mode, mine, tokens } = entry;
  const token = (mine && tokens[mine]) ?? tokens.spectator ?? Object.values(tokens)[0];
  const game = { id, mode, mine, tokens, role: null, state: null, connected: false, sent: false };
  app.game = game;
  if (location.hash !== `#game=${id}`) history.pushState(null, "", `#game=${id}`);
  game.socket = new GameSocket(id, token, {
    onJoined: (role) => { game.role = role; },
    onState: (state) => onState(game, state),
    onProblem: (problem) => { game.sent = false; complain(problem); render(); },
    onConnection: (connected, final) => {
      game.connected = connected;
      game.sent = false;
      if (final) complain(new Problem("The server does not know this game any more.", 404, "no_game"));
      render();
    },
  });
  await idleLine(app.line?.size ?? 8, app.line?.variant ?? "normal");
  setView("game");
}

async function onState(game, state) {
  if (game !== app.game) return;
  const before = game.state;
  game.state = state;
  game.sent = false;
  game.received = performance.now();
  try {
    await follow(state);
  } catch (error) {
    complain(error);
  }
  if (game.state !== state) return;
  announce(before, state);
  askStudy();
  render();
}

function announce(before, state) {
  if (state.status === "finished") {
    if (before?.status !== "finished") say(resultText());
    return;
  }
  const made = before ? state.moves.slice(before.moves.length) : [];
  const texts = made.map((move, i) => {
    const mover = app.line.positions[before.moves.length + i]?.turn ?? other(state.turn);
    return move === "pass" ? `${capital(mover)} must pass.` : `${capital(mover)} plays ${move}.`;
  });
  if (before && state.moves.length < before.moves.length) texts.push("Taken back.");
  if (mayMove()) texts.push("Your turn.");
  if (texts.length) say(texts.join(" "));
}

const isLive = () => Boolean(app.game?.state) && app.view === "game" && !app.line.review;

function mayMove() {
  const { game } = app;
  if (!isLive() || game.state.status !== "running" || !game.connected || game.sent) return false;
  return game.mode === "here" || game.role === game.state.turn;
}

async function playMove(name) {
  if (!mayMove() || !atEnd()) return;
  const { game } = app, { state } = game;
  if (!state.legal.includes(name)) return complain(new Problem(`${name} is not a legal move.`, 400, "illegal_move"));
  game.sent = true;
  const move = { move: name, ply: state.moves.length };
  if (game.mode === "here") {
    await act(() => call("POST", `/api/games/${game.id}/moves`, { body: move, token: game.tokens[state.turn] }));
  } else if (!game.socket.send({ type: "move", ...move })) game.sent = false;
}

async function act(work) {
  try {
    await work();
  } catch (error) {
    if (app.game) app.game.sent = false;
    complain(error);
  }
}

function takeBack() {
  const { game } = app, { state } = game;
  if (game.mode === "here") {
    // both sides sit here: who moved last asks, the other agrees
    const mover = app.line.positions[app.line.positions.length - 2]?.turn ?? "black";
    act(async () => {
      await call("POST", `/api/games/${game.id}/undo`, { token: game.tokens[mover] });
      await call("POST", `/api/games/${game.id}/undo`, { token: game.tokens[other(mover)] });
    });
  } else game.socket.send({ type: "undo" });
  if (state.black.kind === "human" && state.white.kind === "human" && game.mode === "friend") complain(new Problem("Your opponent is asked."));
}

function resign() {
  const { game } = app;
  if (!confirm("Resign this game?")) return;
  if (game.mode === "here") act(() => call("POST", `/api/games/${game.id}/resign`, { token: game.tokens[game.state.turn] }));
  else game.socket.send({ type: "resign" });
}

// --- review --------------------------------------------------------------------------------------

async function review(text, size, variant, start) {
  const line = await readLine(text, size, variant, start);
  if (line.positions.length < 2) throw new Problem("There is no move in this text.", 400, "empty");
  leaveGame();
  history.replaceState(null, "", "#review");
  app.line = { ...line, review: true };
  app.cursor = 0;
  app.analysis = true;
  app.working = line.positions.length;
  setView("game");
  askStudy();
}

async function loadReview(event) {
  event.preventDefault();
  const fields = Object.fromEntries(new FormData($("loader")));
  await act(() => review($("transcript").value.trim() || " ", Number(fields.rsize), fields.rvariant));
}

// --- the engine's opinion ------------------------------------------------------------------------

const isOver = (position) => position.legal.length === 0;

function askStudy() {
  if (!app.analysis || !app.line || app.line.idle || app.view !== "game") return study.forget();
  const { positions, variant, review: whole } = app.line;
  const seconds = whole ? REVIEW_SECONDS : PLAY_SECONDS;
  const wanted = [positions[app.cursor], ...positions.slice().reverse()].filter((position) => !isOver(position));
  app.working = new Set(positions.filter((p) => !isOver(p) && !study.get(p, variant))).size;
  study.ask(wanted, variant, seconds);
}

// A position's value for black, exact at the end of the game; null while it is not known.
function valueOf(position) {
  const { line } = app;
  if (isOver(position)) return { value: finalScore(position), exact: true };
  const found = study.get(position, line.variant);
  return found ? { value: position.turn === "black" ? found.value : -found.value, exact: found.exact } : { value: null, exact: false };
}

function finalScore({ board: squares }) {
  const black = squares.split("X").length - 1, white = squares.split("O").length - 1;
  const margin = Math.abs(black - white) + (black === white ? 0 : squares.length - black - white);
  return Math.sign(black - white) * margin * (app.line.variant === "normal" ? 1 : -1);
}

function verdictAt(index) {
  const { line } = app, position = line.positions[index];
  return position?.move ? verdict(study.get(position, line.variant), position.move, line.size) : null;
}

let hoverTimer = 0;
function hoverMove(name) {
  app.hover = name;
  clearTimeout(hoverTimer);
  const position = app.line?.positions[app.cursor];
  if (!app.analysis || !position) return;
  renderLine();
  if (name && position.legal.includes(name)) {
    const child = after(position, name, app.line.size);
    if (study.get(child, app.line.variant)) return;
    hoverTimer = setTimeout(() => { study.ask([child], app.line.variant, HOVER_SECONDS); }, 120);
  }
}

// --- drawing -------------------------------------------------------------------------------------

function render() {
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
    values: found && position.legal[0] !== "pass" ? worths(found, line.size) : {},
  }, { animate: Math.abs(cursor - app.shown) <= 1 });
  app.shown = cursor;
}

const worths = (found, size) => Object.fromEntries(Object.entries(found.values).map(([name, value]) => [
  name, { text: found.exact || Math.abs(value) >= 9.95 ? signed(value, 0) : signed(value), grade: name === found.move ? "best" : gradeOf(found.value - value, size) },
]));

function renderPlayers() {
  const { line, game } = app, position = line.positions[app.cursor];
  for (const colour of ["black", "white"]) {
    const card = $(`player-${colour}`), seat = isLive() ? game.state[colour] : null;
    card.querySelector(".count").textContent = position.board.split(colour === "black" ? "X" : "O").length - 1;
    const { name, note } = describeSeat(seat, colour);
    card.querySelector(".name").textContent = name;
    card.querySelector(".note").textContent = note;
    card.classList.toggle("turn", app.view === "game" && !isOver(position) && position.turn === colour);
  }
  renderClocks();
}

function describeSeat(seat, colour) {
  if (!seat) {
    const name = app.line.names?.[colour];
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

function renderClocks() {
  const clock = isLive() ? app.game.state.clock : null;
  for (const colour of ["black", "white"]) {
    const node = $(`player-${colour}`).querySelector(".clock");
    node.hidden = !clock;
    if (!clock) continue;
    const used = clock.running === colour ? (performance.now() - app.game.received) / 1000 : 0;
    const left = Math.max(0, clock[colour] - used);
    node.textContent = left >= 10 ? `${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")}` : left.toFixed(1);
    node.classList.toggle("low", left < 20);
  }
}

function resultText() {
  const { result, discs } = app.game.state;
  const winner = result.winner;
  const counts = `${Math.max(discs.black, discs.white)}–${Math.min(discs.black, discs.white)}`;
  if (!winner) return `A draw, ${counts}.`;
  const who = app.game.mode !== "here" && app.game.role === winner ? "You win" : `${capital(winner)} wins`;
  if (result.ending === "resigned") return `${who}: ${other(winner)} resigned.`;
  if (result.ending === "timeout") return `${who}: ${other(winner)} ran out of time.`;
  return `${who}, ${discs[winner]} discs to ${discs[other(winner)]}${app.line.variant === "reversed" ? " – the fewest" : ""}.`;
}

function statusText() {
  const { game, line, cursor } = app;
  if (app.view !== "game") return "Choose an opponent to begin.";
  if (game && !game.connected) return game.state ? "Connection lost – trying again …" : "Connecting …";
  const position = line.positions[cursor];
  if (!isLive() || !atEnd()) return positionText(position);
  const { state } = game;
  if (state.status === "finished") return resultText();
  const passed = state.moves.at(-1) === "pass" ? `${capital(other(state.turn))} had to pass. ` : "";
  if (mayMove()) return passed + (game.mode === "here" ? `${capital(state.turn)} to move.` : "Your turn.");
  if (state[state.turn].kind === "agent") return `${passed}${setup.describe(state[state.turn].agent).title} is thinking …`;
  return `${passed}Waiting for ${state.turn} …`;
}

function positionText(position) {
  const last = app.cursor ? app.line.positions[app.cursor - 1] : null;
  const made = last ? `${capital(last.turn)} ${last.move === "pass" ? "passed" : `played ${last.move}`}. ` : "";
  if (!isOver(position)) return `${made}${capital(position.turn)} to move.`;
  const score = finalScore(position);
  return made + (score ? `${score > 0 ? "Black" : "White"} wins.` : "A draw.");
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

const leadText = (value, exact) => {
  if (Math.abs(value) < 0.05) return exact ? "a draw with best play" : "even";
  const who = value > 0 ? "Black" : "White", discs = Math.abs(value);
  return exact ? `${who} wins by ${discs.toFixed(0)}` : `${who} +${discs.toFixed(1)}`;
};

function renderLine() {
  const { line, cursor, hover } = app, position = line.positions[cursor];
  const [first, rest] = $("line").children;
  const found = study.get(position, line.variant);
  if (isOver(position)) {
    first.textContent = "The game is over.";
    rest.textContent = pastVerdict(cursor);
  } else if (!found) {
    first.textContent = study.failed ? "No opinion yet." : "Thinking …";
    rest.textContent = study.failed;
  } else if (hover && hover in found.values && hover !== found.move) {
    const child = study.get(after(position, hover, line.size), line.variant);
    first.textContent = `${hover} ${signed(found.values[hover], found.exact ? 0 : 1)} for ${position.turn}`;
    rest.textContent = ` ${[hover, ...(child?.pv ?? [])].slice(0, 12).join(" ")}`;
  } else {
    const { value } = valueOf(position);
    first.textContent = found.exact ? `${capital(leadText(value, true))}, exact.` : `${capital(leadText(value, false))}, depth ${found.depth}.`;
    rest.textContent = `${pastVerdict(cursor)} ${found.pv.slice(0, 12).join(" ")}`;
  }
}

function pastVerdict(cursor) {
  const past = cursor ? verdictAt(cursor - 1) : null;
  if (!past || !MARKS[past.grade]) return "";
  const { move } = app.line.positions[cursor - 1];
  return ` ${move}${MARKS[past.grade]} lost ${past.exact ? plural(past.loss, "disc") : `${past.loss.toFixed(1)} discs`}${past.turned ? " and the result" : ""}; ${past.best} was better.`;
}

function summary() {
  return ["black", "white"].map((colour) => {
    const own = app.line.positions.map((position, i) => ({ position, seen: verdictAt(i) })).filter(({ position, seen }) => seen && position.turn === colour);
    const count = (grade) => own.filter(({ seen }) => seen.grade === grade).length;
    const lost = own.reduce((sum, { seen }) => sum + seen.loss, 0);
    const line = document.createElement("span");
    line.textContent = `${capital(colour)}: ${plural(count("blunder"), "blunder")}, ${plural(count("mistake"), "mistake")}, ${plural(count("slip"), "slip")}; ${lost.toFixed(1)} discs given away. `;
    return line;
  }).concat(legend());
}

function legend() {
  const text = document.createElement("span");
  text.textContent = app.line.positions.some((position) => valueOf(position).exact) ? "Where the chart is shaded, values are exact." : "";
  return text;
}

function renderMoves() {
  const list = $("moves"), { positions } = app.line;
  const signature = JSON.stringify([movesOf(app.line), app.cursor, app.analysis && positions.map((_, i) => verdictAt(i)?.grade)]);
  if (signature === list.dataset.signature) return;
  list.dataset.signature = signature;
  const items = [];
  for (let i = 0; i < positions.length - 1; i += 2) {
    const item = document.createElement("li"), number = document.createElement("span");
    number.className = "number";
    number.textContent = `${i / 2 + 1}`;
    item.append(number, ...[i, i + 1].filter((n) => n < positions.length - 1).map(moveButton));
    items.push(item);
  }
  list.replaceChildren(...items);
  const current = list.querySelector("[aria-current=true]");
  if (current) list.scrollTop += current.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}

function moveButton(index) {
  const { move, turn } = app.line.positions[index], seen = app.analysis ? verdictAt(index) : null;
  const button = document.createElement("button"), name = document.createElement("span");
  button.type = "button";
  name.textContent = move;
  name.className = move === "pass" ? "pass" : "";
  button.append(name);
  button.setAttribute("aria-current", app.cursor === index + 1);
  let label = `${capital(turn)} ${move}`;
  if (seen && MARKS[seen.grade]) {
    const mark = document.createElement("span");
    mark.className = "grade";
    mark.textContent = MARKS[seen.grade];
    button.append(mark);
    button.dataset.grade = seen.grade;
    label += `, ${seen.grade}, loses ${seen.loss.toFixed(seen.exact ? 0 : 1)} discs, best ${seen.best}`;
    button.title = label;
  }
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => goTo(index + 1));
  return button;
}

// --- the rest ------------------------------------------------------------------------------------

const inviteLink = () => `${location.origin}/#join=${app.game.id}.${other(app.game.mine)}.${app.game.tokens[other(app.game.mine)]}`;

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    complain(new Problem("Copied."));
  } catch {
    complain(new Problem(text));
  }
}

function save() {
  const { game } = app;
  act(async () => {
    const text = game && !app.line.review
      ? await call("GET", `/api/games/${game.id}/record`, { token: Object.values(game.tokens)[0] })
      : movesOf(app.line).join(" ") + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = game ? `reversi-${game.id}.ggf` : "reversi.txt";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

function steps(event) {
  if (app.view !== "game" || event.altKey || event.ctrlKey || event.metaKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const moves = { ArrowLeft: -1, ArrowRight: 1, ",": -1, ".": 1, Home: -Infinity, End: Infinity };
  if (!(event.key in moves)) return;
  event.preventDefault();
  goTo(app.cursor + moves[event.key]);
}

async function route() {
  const [kind, rest = ""] = location.hash.slice(1).split("=");
  if (kind === "join") {
    const [id, colour, token] = rest.split(".");
    if (id && token && (colour === "black" || colour === "white")) rememberGame(id, { mode: "friend", mine: colour, tokens: { [colour]: token } });
    history.replaceState(null, "", `#game=${id}`);
    await openGame(id);
  } else if (kind === "game" && rest && rest !== app.game?.id) await openGame(rest);
  else if (kind === "review" && !app.line.review) setView("loader");
  else if (kind !== "game" && kind !== "review") setView("setup");
}

function wire() {
  $("setup").addEventListener("submit", startGame);
  $("loader").addEventListener("submit", loadReview);
  $("nav-new").addEventListener("click", () => setView("setup"));
  $("nav-review").addEventListener("click", () => setView("loader"));
  $("home").addEventListener("click", (event) => { event.preventDefault(); setView(app.line?.idle ? "setup" : "game"); });
  for (const id of ["setup-cancel", "loader-cancel"]) $(id).addEventListener("click", () => setView("game"));
  $("undo").addEventListener("click", takeBack);
  $("grant").addEventListener("click", () => app.game.socket.send({ type: "undo" }));
  $("refuse").addEventListener("click", () => app.game.socket.send({ type: "decline" }));
  $("resign").addEventListener("click", resign);
  $("analysis").addEventListener("change", (event) => {
    app.analysis = event.target.checked;
    like({ analysis: app.analysis });
    askStudy();
    render();
  });
  $("study").addEventListener("click", () => act(() => review(movesOf(app.line).join(" "), app.line.size, app.line.variant, app.line.start)));
  $("copy").addEventListener("click", () => copyText(movesOf(app.line).filter((move) => move !== "pass").join("")));
  $("save").addEventListener("click", save);
  $("invite-copy").addEventListener("click", () => copyText($("invite-link").value));
  $("first").addEventListener("click", () => goTo(0));
  $("previous").addEventListener("click", () => goTo(app.cursor - 1));
  $("next").addEventListener("click", () => goTo(app.cursor + 1));
  $("last").addEventListener("click", () => goTo(Infinity));
  $("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) $("transcript").value = await file.text();
    event.target.value = "";
  });
  $("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    rememberTheme(theme);
  });
  document.addEventListener("keydown", steps);
  addEventListener("hashchange", () => route().catch(complain));
  addEventListener("popstate", () => route().catch(complain));
  setInterval(() => { if (isLive() && app.game.state.clock?.running) renderClocks(); }, 200);
}

async function begin() {
  wire();
  try {
    await Promise.all([setup.prepare($("setup")), idleLine(8, "normal")]);
    await route();
  } catch (error) {
    complain(error);
    if (app.line) setView("setup");
  }
}

begin();

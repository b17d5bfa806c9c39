// The page: one tree of moves, a place in it, and – in a game – a socket that makes it longer.

import { GameSocket, Problem, call } from "./api.js";
import { stillness } from "./board.js";
import { like, likes, rememberGame, rememberedGame } from "./memory.js";
import { after } from "./rules.js";
import * as setup from "./setup.js";
import * as sound from "./sound.js";
import { $, app, atEnd, betweenPeople, capital, hooks, isLive, isOver, mainEnd, mayMove, mayTry, movesOf, newLine, node, other, sleep, study } from "./state.js";
import { Tree, beside, pathTo, sizeOf } from "./tree.js";
import { focusBoard, render, renderClocks, renderLine, turned } from "./view.js";
import { resultText } from "./words.js";

const PLAY_SECONDS = 0.25, REVIEW_SECONDS = 0.5, HOVER_SECONDS = 0.15, HINT_SECONDS = 0.5, MOST_COMMENT = 1000;
const ANSWER_MILLISECONDS = 500; // an answer is shown no sooner after a move

Object.assign(hooks, { found: () => { askStudy(); render(); }, play: playMove, hover: hoverMove, goTo, follow: followLine });

// --- views ---------------------------------------------------------------------------------------

function setView(view) {
  const isOther = app.view !== view;
  app.view = view;
  document.body.dataset.view = view;
  for (const name of ["setup", "loader", "game"]) $(name).hidden = view !== name;
  $("setup-cancel").hidden = $("loader-cancel").hidden = !app.line || app.line.idle;
  if (view === "game" && matchMedia("(max-width: 860px)").matches) scrollTo({ top: 0 });
  askStudy();
  preview();
  render();
  if (isOther && view === "game" && app.game) focusBoard();
  else if (isOther) $(`${view}-title`).focus({ preventScroll: true }); // in a review the arrow keys step
}

// Show what the form that is filled in asks for.
function preview() {
  const fields = Object.fromEntries(new FormData(app.view === "loader" ? $("loader") : $("setup")));
  app.preview = newLine(Number(fields.size ?? fields.rsize), fields.variant ?? fields.rvariant);
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

// --- the tree of moves ---------------------------------------------------------------------------

function idleLine(size, variant) {
  app.line = { ...newLine(size, variant), idle: true };
  app.here = app.line.tree.root;
}

async function readLine(text, size, variant, start = "standard") {
  const found = await call("POST", "/api/transcripts", { body: { text, size, variant, start } });
  const [game] = found.games, line = { ...newLine(game.size, game.variant, start), names: { black: game.black, white: game.white } };
  line.tree = new Tree(game.size, game);
  line.tree.playAll(line.tree.root, game.moves);
  return line;
}

function goTo(position) {
  if (!app.line || !position) return;
  app.here = position;
  app.hover = null;
  askStudy();
  render();
}

const step = (by) => {
  const line = app.line.tree.line(app.here), at = line.indexOf(app.here) + by;
  goTo(line[Math.min(line.length - 1, Math.max(0, at))]);
};

// Bring the tree up to date with the game's state: its moves are the main line, and what was taken back is gone.
function follow(state) {
  if (app.line.idle || !sameGame(app.line, state)) app.line = newLine(state.size, state.variant, state.start);
  const { line } = app, before = line.tip;
  line.tip = line.tree.setMain(state.moves);
  const path = pathTo(line.tip), gone = pathTo(before).find((position) => !path.includes(position));
  if (gone) line.tree.remove(gone);
  if (!before || app.here === before || pathTo(app.here).includes(gone)) app.here = line.tip;
}

const sameGame = (line, state) => line.size === state.size && line.variant === state.variant && line.start === state.start;

// --- games ---------------------------------------------------------------------------------------

async function startGame(event) {
  event.preventDefault();
  $("start").disabled = true;
  await act(async () => {
    await create(setup.order($("setup")));
  });
  $("start").disabled = false;
}

async function create({ mode, mine, request }) {
  const created = await call("POST", "/api/games", { body: request });
  rememberGame(created.game, { mode, mine, request, tokens: created.tokens });
  await openGame(created.game);
}

// The same once more, with colours exchanged.
function rematch() {
  const { mode, mine, request: { black, white, ...rest } } = app.game;
  return act(() => create({ mode, mine: mine && other(mine), request: { ...rest, black: white, white: black } }));
}

function leaveGame() {
  app.game?.socket.close();
  app.game = null;
  study.forget();
}

async function openGame(id) {
  const entry = rememberedGame(id);
  if (!entry) throw new Problem("This browser has no key to that game.");
  leaveGame();
  const { mode, mine, tokens, request } = entry;
  const token = (mine && tokens[mine]) ?? tokens.spectator ?? Object.values(tokens)[0];
  const game = { id, mode, mine, tokens, request, role: null, state: null, waiting: [], following: false, movedAt: 0, connected: false, sent: false, paused: false };
  app.game = game;
  if (location.hash !== `#game=${id}`) history.pushState(null, "", `#game=${id}`);
  game.socket = new GameSocket(id, token, {
    onJoined: (role) => { game.role = role; },
    onState: (state) => onState(game, state),
    onProblem: (problem) => { game.sent = false; complain(problem); render(); },
    onConnection: (connected, final) => {
      game.connected = connected;
      game.sent = false;
      if (final) complain(new Problem("The server does not know this game any more."));
      render();
    },
  });
  idleLine(request?.size ?? 8, request?.variant ?? "normal");
  app.analysis = (entry.analysis ?? false) && !betweenPeople(game);
  setView("game");
}

function onState(game, state) {
  if (game !== app.game) return;
  state.received = performance.now();
  const newest = game.waiting.at(-1) ?? game.state;
  if (newest?.moves.length > state.moves.length) game.waiting.length = 0; // taken back: what came in between need not be seen
  game.waiting.push(...stepsTo(newest, state));
  showStates(game);
}

// The states from one that is known to a later one, a move at a time: the server leaves out some if they come fast.
function stepsTo(from, state) {
  const made = from?.moves.length, steps = [];
  if (!from || from.moves.some((move, i) => move !== state.moves[i])) return [state];
  let { board, turn } = from;
  for (const [i, move] of state.moves.slice(made, -1).entries()) {
    ({ board, turn } = after({ board, turn }, move, state.size));
    steps.push({ ...state, status: "running", result: null, board, turn, legal: [state.moves[made + i + 1]], moves: state.moves.slice(0, made + i + 1) });
  }
  return [...steps, state];
}

// Show what has come, one state after the other: they may come faster than discs turn.
async function showStates(game) {
  if (game.following) return;
  game.following = true;
  while (await isTimeToShow(game)) {
    const before = game.state, state = game.waiting.shift();
    game.sent = false;
    game.state = state;
    follow(state);
    announce(before, state);
    askStudy();
    render();
    if (before && app.view === "game") play(before, state);
    if (state.moves.length > (before?.moves.length ?? -1)) game.movedAt = performance.now();
  }
  game.following = false;
}

// Whether there is something to show, when it is time to: a move waits until the discs of the last have turned.
async function isTimeToShow(game) {
  const isDue = () => app.game === game && game.waiting.length > 0 && !game.paused;
  if (isDue() && game.waiting[0].moves.length > game.state?.moves.length) {
    const gap = game.mode === "watch" ? Number($("speed").value) : stillness.matches || game.state.clock ? 0 : ANSWER_MILLISECONDS;
    await Promise.all([turned(), sleep(game.movedAt + gap - performance.now())]);
  }
  return isDue();
}

function play(before, state) {
  if (state.moves.length > before.moves.length && state.moves.at(-1) !== "pass") sound.knock();
  if (state.status === "finished" && before.status !== "finished") sound.chime(!app.game.mine || state.result.winner === app.game.mine);
}

function pause() {
  app.game.paused = !app.game.paused;
  render();
  showStates(app.game);
}

function announce(before, state) {
  if (state.status === "finished") {
    if (before?.status !== "finished") say(resultText());
    return;
  }
  const made = before ? pathTo(app.line.tip).slice(before.moves.length + 1) : [];
  const texts = made.map(({ move, parent: { turn: mover } }) => {
    return move === "pass" ? `${capital(mover)} must pass.` : `${capital(mover)} plays ${move}.`;
  });
  if (before && state.moves.length < before.moves.length) texts.push("Taken back.");
  if (mayMove()) texts.push("Your turn.");
  if (texts.length) say(texts.join(" "));
}

function playMove(name) {
  if (mayTry()) return followLine([name]);
  if (!mayMove() || !atEnd()) return;
  const { game } = app, { state } = game;
  if (!state.legal.includes(name)) return complain(new Problem(`${name} is not a legal move.`));
  game.sent = true;
  tell("move", state.turn, { move: name, ply: state.moves.length });
}

// Tell the server what *colour* does: over the socket, or with a token of its own where both sides play here.
async function tell(type, colour, body) {
  const { game } = app, path = `/api/games/${game.id}/${type === "move" ? "moves" : type}`;
  if (game.mode === "here") return act(() => call("POST", path, { body, token: game.tokens[colour] }));
  if (!game.socket.send({ type, ...body })) game.sent = false;
}

async function act(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (app.game) app.game.sent = false;
    complain(error);
  }
}

async function takeBack() {
  const { mode, mine } = app.game;
  // both sides sit here: who chose last asks, the other agrees
  const mover = pathTo(app.line.tip).findLast(({ move }) => move && move !== "pass")?.parent.turn ?? "black";
  if (await tell("undo", mine ?? mover) && mode === "here") tell("undo", other(mover));
  if (mode === "friend") complain(new Problem("Your opponent is asked."));
}

function resign() {
  if (confirm("Resign this game?")) tell("resign", app.game.state.turn);
}

// --- review --------------------------------------------------------------------------------------

async function review(text, size, variant, start) {
  const line = await readLine(text, size, variant, start);
  if (!line.tree.root.children.length) throw new Problem("There is no move in this text.");
  leaveGame();
  history.replaceState(null, "", "#review");
  app.line = { ...line, review: true };
  app.here = line.tree.root;
  app.analysis = true;
  setView("game");
}

// Play moves from here as a variation, or along one that is there; a pass that must follow is made at once.
function followLine(moves) {
  const { tree } = app.line, last = tree.playAll(app.here, moves);
  if (last === app.here) return complain(new Problem(`${moves[0]} is not a legal move.`));
  goTo(last.legal[0] === "pass" ? last.children[0] : last);
}

function promote() {
  app.line.tree.promote(app.here);
  render();
}

function remove() {
  const size = sizeOf(app.here);
  if (size < 4 || confirm(`Delete ${size} moves?`)) goTo(app.line.tree.remove(app.here));
}

function comment({ target }) {
  app.here.comment = target.value.slice(0, MOST_COMMENT);
  render();
}

async function loadReview(event) {
  event.preventDefault();
  const fields = Object.fromEntries(new FormData($("loader")));
  await act(() => review($("transcript").value.trim() || " ", Number(fields.rsize), fields.rvariant));
}

// --- the engine's opinion ------------------------------------------------------------------------

function askStudy() {
  if (!app.analysis || !app.line || app.line.idle || app.view !== "game") return study.forget();
  const { tree, variant, review: whole } = app.line, main = pathTo(mainEnd(app.line));
  const seconds = whole ? REVIEW_SECONDS : PLAY_SECONDS;
  const wanted = [app.here, ...tree.line(app.here).reverse(), ...main.toReversed()].filter((position) => !isOver(position));
  app.working = main.filter((p) => !isOver(p) && !study.get(p, variant)).length;
  study.ask(wanted, variant, seconds);
}

let hoverTimer = 0;
function hoverMove(name) {
  app.hover = name;
  clearTimeout(hoverTimer);
  const position = app.here;
  if (!app.analysis || !position) return;
  renderLine();
  if (name && position.legal.includes(name)) {
    const child = after(position, name, app.line.size);
    if (study.get(child, app.line.variant)) return;
    hoverTimer = setTimeout(() => { study.ask([child], app.line.variant, HOVER_SECONDS); }, 120);
  }
}

async function hint() {
  const position = app.here, { variant } = app.line;
  await act(async () => {
    const { move } = await call("POST", "/api/analyse", { body: { board: position.board, turn: position.turn, variant, seconds: HINT_SECONDS } });
    app.hint = { position, move };
    say(`Hint: ${move}.`);
    render();
  });
}

// --- the rest ------------------------------------------------------------------------------------

async function copyText(text) {
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  complain(new Problem(copied || copyTheOldWay(text) ? "Copied." : text));
}

// Pages that come without encryption, from another machine of the house, have no clipboard but this one.
function copyTheOldWay(text) {
  const field = node("textarea", { value: text, className: "sr" });
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}

function save() {
  const { game } = app;
  act(async () => {
    const text = game && !app.line.review
      ? await call("GET", `/api/games/${game.id}/record`, { token: Object.values(game.tokens)[0] })
      : movesOf(app.line).join(" ") + "\n";
    const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    node("a", { href, download: game ? `reversi-${game.id}.ggf` : "reversi.txt" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
}

function steps(event) {
  if (app.view !== "game" || event.altKey || event.ctrlKey || event.metaKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const moves = { ArrowLeft: -1, ArrowRight: 1, ",": -1, ".": 1, Home: -Infinity, End: Infinity }, across = { ArrowUp: -1, ArrowDown: 1 };
  if (event.key in across && beside(app.here, across[event.key]) !== app.here) goTo(beside(app.here, across[event.key]));
  else if (event.key in moves) step(moves[event.key]);
  else return;
  event.preventDefault();
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

function showAnalysis({ target }) {
  app.analysis = target.checked;
  rememberGame(app.game.id, { ...rememberedGame(app.game.id), analysis: app.analysis });
  askStudy();
  render();
}

async function readFile({ target }) {
  const [file] = target.files;
  if (file) $("transcript").value = await file.text();
  target.value = "";
}

const showSound = () => $("sound").setAttribute("aria-pressed", sound.isOn());

function wire() {
  const clicks = {
    "nav-new": () => setView("setup"),
    "nav-review": () => setView("loader"),
    home: (event) => { event.preventDefault(); setView(app.line?.idle ? "setup" : "game"); },
    "setup-cancel": () => setView("game"),
    "loader-cancel": () => setView("game"),
    undo: takeBack,
    pause,
    hint,
    rematch,
    sound: () => { sound.switchTo(!sound.isOn()); showSound(); },
    skip: (event) => { event.preventDefault(); focusBoard(); },
    grant: () => tell("undo"),
    refuse: () => tell("decline"),
    resign,
    study: () => act(() => review(movesOf(app.line).join(" "), app.line.size, app.line.variant, app.line.start)),
    copy: () => copyText(movesOf(app.line).filter((move) => move !== "pass").join("")),
    save,
    "invite-copy": () => copyText($("invite-link").value),
    "invite-link": ({ target }) => target.select(),
    promote,
    remove,
    first: () => step(-Infinity),
    previous: () => step(-1),
    next: () => step(1),
    last: () => step(Infinity),
  };
  for (const [id, act] of Object.entries(clicks)) $(id).addEventListener("click", act);
  $("setup").addEventListener("submit", startGame);
  $("loader").addEventListener("submit", loadReview);
  $("analysis").addEventListener("change", showAnalysis);
  showSound();
  for (const form of [$("setup"), $("loader")]) form.addEventListener("input", () => { preview(); render(); });
  $("speed").value = likes().speed ?? 700;
  $("speed").addEventListener("change", ({ target }) => like({ speed: Number(target.value) }));
  $("file").addEventListener("change", readFile);
  $("comment").addEventListener("input", comment);
  document.addEventListener("keydown", steps);
  for (const change of ["hashchange", "popstate"]) addEventListener(change, () => route().catch(complain));
  setInterval(() => { if (isLive() && app.game.state.clock?.running) renderClocks(); }, 200);
}

async function begin() {
  idleLine(8, "normal");
  preview();
  wire();
  try {
    await setup.prepare($("setup"));
    await route();
  } catch (error) {
    complain(error);
    setView("setup");
  }
}

begin();

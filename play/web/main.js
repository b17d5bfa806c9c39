// The page: one tree of moves, a place in it, and – in a game – a socket that makes it longer.

import { GameSocket, Problem, call } from "./api.js";
import { stillness } from "./board.js";
import { begin as beginLanguage, colourName, sentences, words } from "./language.js";
import { renderLibrary } from "./library.js";
import * as loader from "./loader.js";
import { forget, like, likes, noteGame, rememberGame, rememberReview, rememberedGame, rememberedReview } from "./memory.js";
import * as puzzle from "./puzzle.js";
import { documentOf, ggfOf, lineOf } from "./records.js";
import { after } from "./rules.js";
import * as setup from "./setup.js";
import * as sound from "./sound.js";
import * as standing from "./standing.js";
import { $, app, atEnd, betweenPeople, finalScore, hooks, isLive, isOver, mainEnd, mayMove, mayTry, movesOf, newLine, node, other, seen, sleep, study } from "./state.js";
import { MOST_COMMENT, Tree, beside, movesTo, pathTo, sizeOf } from "./tree.js";
import { focusBoard, render, renderClocks, renderLine, turned } from "./view.js";
import { isNameless, resultOf, resultText, seatHere, statusText } from "./words.js";

const PLAY_SECONDS = 0.25, REVIEW_SECONDS = 0.5, HOVER_SECONDS = 0.15, HINT_SECONDS = 0.5;
const ANSWER_MILLISECONDS = 500; // an answer is shown no sooner after a move
const MOST_SAID = 5; // texts at once: a page in the background draws nothing, and says nothing

Object.assign(hooks, { found: () => { askStudy(); render(); }, play: playMove, hover: hoverMove, goTo, follow: followLine, study: studyLine, act, changed: keepPlace, say, focus: focusBoard });

// --- views ---------------------------------------------------------------------------------------

function setView(view) {
  const isOther = app.view !== view;
  app.view = view;
  document.body.dataset.view = view;
  for (const name of ["setup", "loader", "library", "puzzle", "game"]) $(name).hidden = view !== name;
  $("setup-cancel").hidden = $("loader-cancel").hidden = !app.line || app.line.idle;
  if (view === "game") app.place = location.pathname + location.hash;
  if (view === "library") renderLibrary();
  standing.render();
  if (/^(game|puzzle)$/.test(view) && matchMedia("(max-width: 860px)").matches) scrollTo({ top: 0 });
  askStudy();
  preview();
  render();
  if (view === "setup" && !setup.isReady()) act(prepareSetup); // as it did not come before
  if (isOther && ((view === "game" && app.game) || (view === "puzzle" && app.puzzle))) focusBoard();
  else if (isOther) $(`${view}-title`).focus({ preventScroll: true }); // in a review the arrow keys step
}

async function prepareSetup() {
  await setup.prepare($("setup"));
  preview();
  render();
}

// Show what the form that is filled in asks for.
function preview() {
  const { size, variant } = Object.fromEntries(new FormData($("setup")));
  app.preview = app.view === "loader" ? loader.preview() : newLine(Number(size), variant);
}

// Tell those who listen to the page. What comes within one frame is said together: of several texts only the last would be heard.
let unsaid = [];
function say(text) {
  $("live").textContent = "";
  if (!unsaid.length) requestAnimationFrame(() => { $("live").textContent = sentences(unsaid.splice(0)); });
  unsaid = [...unsaid, text].slice(-MOST_SAID);
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

function goTo(position) {
  if (!app.line || !position) return;
  seen().here = position;
  app.hover = null;
  askStudy();
  render();
  touch();
}

const step = (by) => {
  const { line: { tree }, here } = seen(), line = tree.line(here), at = line.indexOf(here) + by;
  goTo(line[Math.min(line.length - 1, Math.max(0, at))]);
};

// Bring the tree up to date with the game's state: its moves are the main line, and what was taken back is gone.
function follow(state) {
  if (app.line.idle || !sameGame(app.line, state)) app.line = { ...newLine(state.size, state.variant, state.start), ...triedIn(app.game.id) };
  const { line } = app, before = line.tip;
  line.tip = line.tree.setMain(state.moves);
  const path = pathTo(line.tip), gone = pathTo(before).find((position) => !path.includes(position));
  if (gone) line.tree.remove(gone);
  if (!before && history.state?.path) app.here = line.tree.find(history.state.path);
  else if (!before || app.here === before || pathTo(app.here).includes(gone)) app.here = line.tip;
}

// What was tried beside a game in this browser.
const triedIn = (id) => {
  const { tree } = rememberedGame(id) ?? {};
  return tree ? { tree: Tree.fromJSON(tree) } : {};
};

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
  return act(() => create({ mode, mine: mine && other(mine), request: { ...rest, black: setup.reseeded(white), white: setup.reseeded(black) } }));
}

function leaveGame() {
  app.game?.socket.close();
  app.game = null;
  study.forget();
}

async function openGame(id) {
  const entry = rememberedGame(id);
  if (!entry) throw new Problem(words("problem.no-key"));
  leaveGame();
  const { mode, mine, tokens, request } = entry;
  const token = (mine && tokens[mine]) ?? tokens.spectator ?? Object.values(tokens)[0];
  const game = { id, mode, mine, tokens, request, role: null, state: null, waiting: [], following: false, movedAt: 0, connected: false, sent: false, paused: false };
  app.game = game;
  if (location.pathname + location.hash !== `/#game=${id}`) history.pushState(null, "", `/#game=${id}`);
  game.socket = new GameSocket(id, token, {
    onJoined: (role) => {
      game.role = role;
      if (rememberedGame(id)?.isUntried) noteGame(id, { isUntried: false });
    },
    onState: (state) => onState(game, state),
    onProblem: (problem) => { game.sent = false; complain(problem); render(); },
    onConnection: (connected, final) => {
      const isNews = connected !== game.connected && game.state;
      game.connected = connected;
      game.sent = false;
      if (final) refused(game);
      else if (isNews) say(statusText());
      render();
    },
  });
  idleLine(request?.size ?? 8, request?.variant ?? "normal");
  app.analysis = entry.analysis ?? false;
  setView("game");
}

// The server does not admit us, and never will: a key that a link brought was wrong, and is not kept.
function refused(game) {
  game.isRefused = true;
  if (rememberedGame(game.id)?.isUntried) forget(`game ${game.id}`);
  complain(new Problem(words("problem.forgotten")));
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
  try {
    while (await isTimeToShow(game)) show(game, game.state, game.waiting.shift());
  } finally {
    game.following = false;
  }
}

function show(game, before, state) {
  game.sent = false;
  game.state = state;
  if (state.status === "running" && betweenPeople(game)) app.analysis = false;
  if (before && state.moves.length < before.moves.length) standing.noteHelp();
  follow(state);
  announce(before, state);
  if (state.status === "finished" && !rememberedGame(game.id)?.result) noteGame(game.id, { result: resultOf(state) }); // once: to look at a game is no news
  standing.settle(game, state);
  askStudy();
  render();
  if (before && app.view === "game") play(before, state);
  if (state.moves.length > (before?.moves.length ?? -1)) game.movedAt = performance.now();
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
    if (before?.status !== "finished") say(resultText(resultOf(state), seatHere()));
    return;
  }
  const made = before ? pathTo(app.line.tip).slice(before.moves.length + 1) : [];
  const texts = made.map(({ move, parent: { turn: mover } }) => {
    return words(move === "pass" ? "move.passes" : "move.plays", { colour: colourName(mover), move });
  });
  if (before && state.moves.length < before.moves.length) texts.push(words("undo.done"));
  else if (before?.undo_request && before.undo_request === app.game.mine && !state.undo_request && !made.length) complain(new Problem(words("undo.refused")));
  if (state.undo_request && state.undo_request !== before?.undo_request && app.game.mine && state.undo_request === other(app.game.mine)) texts.push(words("undo.asked"));
  if (mayMove() && state.moves.length !== before?.moves.length) texts.push(words("status.mine"));
  if (texts.length) say(sentences(texts));
}

function playMove(name) {
  if (app.view === "loader") return setUp(() => loader.change(name));
  if (app.view === "puzzle") return act(() => puzzle.answer(name));
  if (mayTry()) return followLine([name]);
  if (!mayMove() || !atEnd()) return;
  const { game } = app, { state } = game;
  if (!state.legal.includes(name)) return complain(new Problem(words("problem.illegal", { move: name })));
  game.sent = true;
  tell("move", state.turn, { move: name, ply: state.moves.length });
}

// Tell the server what *colour* does: over the socket, or with a token of its own where both sides play here.
async function tell(type, colour, body) {
  const { game } = app, path = `/api/games/${game.id}/${type === "move" ? "moves" : type}`;
  if (game.mode === "here") return act(() => call("POST", path, { body, token: game.tokens[colour] }));
  if (game.socket.send({ type, ...body })) return true;
  game.sent = false;
  complain(new Problem(words("status.lost")));
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
  const { mode, mine, state } = app.game, isGranted = mode === "friend" && state.undo_request === other(mine);
  // both sides sit here: who chose last asks, the other agrees
  const mover = pathTo(app.line.tip).findLast(({ move }) => move && move !== "pass")?.parent.turn ?? "black";
  if (!await tell(isGranted ? "grant" : "undo", mine ?? mover)) return;
  if (mode === "here") tell("undo", other(mover));
  if (mode === "friend" && !isGranted) complain(new Problem(words("undo.waiting")));
}

function resign() {
  if (confirm(words("resign.sure"))) tell("resign", app.game.state.turn);
}

// --- review --------------------------------------------------------------------------------------

// Begin a review of a line, which this browser keeps under a key of its own.
function studyLine(line) {
  const key = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(36)).join("");
  const document = documentOf(line);
  rememberReview(key, { document, moves: sizeOf(line.tree.root) - 1, mine: line.mine });
  return go(`/#review=${key}`, { document, path: line === app.line ? movesTo(app.here) : [] });
}

function openReview(line) {
  leaveGame();
  app.line = { ...line, review: true };
  app.here = line.tree.find(history.state?.path ?? []);
  app.analysis = true;
  setView("game");
}

// The tree was changed: keep it. Who changes what another has shared goes on in a copy.
function changed() {
  const { line, game } = app;
  line.link = null;
  if (!line.review) return noteGame(game.id, { tree: line.tree.toJSON() });
  if (!line.key) return studyLine(line);
  rememberReview(line.key, { document: documentOf(line), moves: sizeOf(line.tree.root) - 1, link: null });
}

// Play moves from here as a variation, or along one that is there; a pass that must follow is made at once.
function followLine(moves) {
  const { tree } = app.line, before = sizeOf(tree.root), last = tree.playAll(app.here, moves);
  if (last === app.here) return complain(new Problem(words("problem.illegal", { move: moves[0] })));
  goTo(last.legal[0] === "pass" ? last.children[0] : last);
  if (sizeOf(tree.root) > before) changed();
}

function promote() {
  app.line.tree.promote(app.here);
  render();
  changed();
}

function remove() {
  const size = sizeOf(app.here);
  if (size > 3 && !confirm(words("notes.sure", { n: size }))) return;
  goTo(app.line.tree.remove(app.here));
  changed();
}

function comment({ target }) {
  app.here.comment = target.value.slice(0, MOST_COMMENT);
  render();
  changed();
}

// The game as it stands, with what was tried beside it, becomes a review.
function studyGame() {
  standing.noteHelp();
  const { state, mine } = app.game, named = ({ kind, name, agent }, colour) => (kind === "agent" ? setup.recordName(agent) : isNameless(name, colour) ? null : name);
  return studyLine({ ...app.line, mine, names: { black: named(state.black, "black"), white: named(state.white, "white") } });
}

function setUp(work) {
  work();
  preview();
  render();
  touch();
}

// A link for others: to what is shown of a review, which nobody can change, or to a game, which they can watch.
async function share() {
  const { line, game } = app;
  if (!line.review) line.link = `/#watch=${game.id}.${game.tokens.spectator}`;
  else {
    let name = line.shared ?? rememberedReview(line.key)?.link;
    if (!name) {
      const body = documentOf(line), sent = JSON.stringify(body);
      ({ review: name } = await call("POST", "/api/reviews", { body }));
      if (app.line !== line) return; // who has gone elsewhere wants no link any more
      if (JSON.stringify(documentOf(line)) !== sent) return share(); // what was written meanwhile belongs to it
    }
    if (line.key) rememberReview(line.key, { link: name });
    line.link = `/review/${name}`;
  }
  render();
  await copyText(setup.addressForOthers().origin + line.link);
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
  if (!app.analysis || !position || app.view !== "game") return;
  renderLine();
  if (name && position.legal.includes(name)) {
    const child = after(position, name, app.line.size);
    if (study.get(child, app.line.variant)) return;
    hoverTimer = setTimeout(() => { study.ask([child], app.line.variant, HOVER_SECONDS); }, 120);
  }
}

async function hint() {
  const position = app.here, { game, line: { variant } } = app;
  await act(async () => {
    const { move } = await call("POST", "/api/analyse", { body: { board: position.board, turn: position.turn, variant, seconds: HINT_SECONDS } });
    if (app.game === game) standing.noteHelp();
    app.hint = { position, move };
    say(words("hint.said", { move }));
    render();
  });
}

// --- the rest ------------------------------------------------------------------------------------

async function copyText(text) {
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  complain(new Problem(copied || copyTheOldWay(text) ? words("page.copied") : text));
}

// Pages that come without encryption, from another machine of the house, have no clipboard but this one.
function copyTheOldWay(text) {
  const field = node("textarea", { value: text, className: "sr" }), focused = document.activeElement;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused.focus({ preventScroll: true });
  return copied;
}

function download(text, name) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  node("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

// The main line in GGF, with what the engine says of its moves; of a game the server has the record.
async function save() {
  const { line, game } = app;
  if (!line.review) return download(await call("GET", `/api/games/${game.id}/record`, { token: Object.values(game.tokens)[0] }), `reversi-${game.id}.ggf`);
  const end = mainEnd(line), worth = ({ parent, move }) => study.get(parent, line.variant)?.moves[move]?.value ?? null;
  download(ggfOf(line, worth, isOver(end) ? finalScore(end) : null), "reversi.ggf");
}

function steps(event) {
  if (!/^(game|puzzle)$/.test(app.view) || event.altKey || event.ctrlKey || event.metaKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }, across = { ArrowUp: -1, ArrowDown: 1 }, { here } = seen();
  if (event.key in across && beside(here, across[event.key]) !== here) goTo(beside(here, across[event.key]));
  else if (event.key in moves) step(moves[event.key]);
  else return;
  event.preventDefault();
}

// --- where we are: the address tells what is shown, the history's state where in it ----------------

let placeTimer = 0;
function touch() {
  try {
    keepPlace();
  } catch { /* told too often, as when a key is held: once more when it is quiet */ }
  placeTimer = setTimeout(keepPlace, 400);
}

function keepPlace() {
  clearTimeout(placeTimer);
  const { view, line } = app;
  if (view === "loader") history.replaceState({ loader: loader.kept() }, "");
  if (view !== "game" || line.idle) return;
  history.replaceState(line.review ? { path: movesTo(app.here), document: documentOf(line) } : { path: atEnd() ? null : movesTo(app.here) }, "");
}

function go(address, state = null) {
  keepPlace();
  history.pushState(state, "", address);
  return act(route);
}

async function route() {
  clearTimeout(placeTimer);
  const shared = location.pathname.match(/^\/review\/([\w-]+)$/)?.[1], { state } = history;
  const [kind, rest = ""] = location.hash.slice(1).split("=");
  if (shared) {
    const { href } = location, document = await call("GET", `/api/reviews/${shared}`);
    if (location.href === href) openReview({ ...lineOf(document), shared }); // unless we went elsewhere meanwhile
  } else if (kind === "join" || kind === "watch") await join(kind, ...rest.split("."));
  else if (kind === "game" && rest === app.game?.id) setView("game");
  else if (kind === "game" && rest) await openGame(rest);
  else if (kind === "review" && rest) {
    const document = rememberedReview(rest)?.document ?? state?.document;
    if (!document) throw new Problem(words("problem.lost-review"));
    if (app.line.key === rest) setView("game");
    else openReview({ ...lineOf(document), key: rest, mine: rememberedReview(rest)?.mine });
  } else if (kind === "review") {
    if (state?.loader) loader.restore(state.loader);
    setView("loader");
  } else if (kind === "puzzles") {
    setView("puzzle");
    await puzzle.open();
  } else setView(kind === "games" ? "library" : "setup");
}

// Take the seat, or the place among the spectators, that a link opens; who has a seat already keeps it.
async function join(kind, id, ...rest) {
  const [colour, written] = kind === "join" ? rest : [null, ...rest], token = written?.match(/^[\w-]*/)[0]; // messengers may add to it
  const known = rememberedGame(id), isUntried = true; // until the server has admitted us
  if (id && token && /^(black|white)$/.test(colour) && (known?.isUntried || !known?.mine)) rememberGame(id, { mode: "friend", mine: colour, tokens: { [colour]: token }, isUntried });
  else if (id && token && (known?.isUntried || !known)) rememberGame(id, { mode: "watch", mine: null, tokens: { spectator: token }, isUntried });
  history.replaceState(null, "", `/#game=${id}`);
  await openGame(id);
}

function showAnalysis({ target }) {
  app.analysis = target.checked;
  if (app.analysis) standing.noteHelp();
  noteGame(app.game.id, { analysis: app.analysis });
  askStudy();
  render();
}

async function readFile({ target }) {
  if (target.files.length) await act(() => loader.readFiles([...target.files]));
  target.value = "";
}

const showSound = () => $("sound").setAttribute("aria-pressed", sound.isOn());

function wire() {
  const clicks = {
    "nav-new": () => go("/"),
    "nav-review": () => go("/#review"),
    "nav-games": () => go("/#games"),
    "nav-puzzles": () => go("/#puzzles"),
    "puzzle-next": () => act(puzzle.next),
    "puzzle-again": puzzle.again,
    "puzzle-solve": () => act(puzzle.solve),
    "puzzle-study": () => studyLine(puzzle.studied()),
    "puzzle-reset": puzzle.reset,
    practise: () => { puzzle.practise(puzzle.blundersOf(app.line)); go("/#puzzles"); },
    "standing-reset": standing.reset,
    home: (event) => { event.preventDefault(); go(app.place); },
    "setup-cancel": () => go(app.place),
    "loader-cancel": () => go(app.place),
    "loader-start": () => setUp(loader.reset),
    "loader-clear": () => setUp(loader.clear),
    undo: takeBack,
    pause,
    hint,
    rematch,
    sound: () => { sound.switchTo(!sound.isOn()); showSound(); },
    skip: (event) => { event.preventDefault(); focusBoard(); },
    grant: () => tell("grant"),
    refuse: () => tell("decline"),
    resign,
    study: studyGame,
    share: () => act(share),
    copy: () => copyText(movesOf(app.line).filter((move) => move !== "pass").join("")),
    save: () => act(save),
    "save-json": () => download(JSON.stringify(documentOf(app.line)), "reversi.json"),
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
  $("loader").addEventListener("submit", (event) => { event.preventDefault(); act(loader.submit); });
  $("analysis").addEventListener("change", showAnalysis);
  showSound();
  for (const form of [$("setup"), $("loader")]) form.addEventListener("input", () => setUp(() => {}));
  $("speed").value = likes().speed ?? 700;
  $("speed").addEventListener("change", ({ target }) => like({ speed: Number(target.value) }));
  $("file").addEventListener("change", readFile);
  $("puzzle-kind").addEventListener("change", ({ target }) => act(() => puzzle.choose(target.value)));
  $("comment").addEventListener("input", comment);
  document.addEventListener("keydown", steps);
  addEventListener("popstate", () => route().catch(complain)); // a changed hash is one, too
  addEventListener("pagehide", keepPlace);
  setInterval(() => { if (isLive() && app.game.state.clock?.running) renderClocks(); }, 200);
}

// Say everything anew in the language that was chosen.
function respeak() {
  setup.refresh($("setup"));
  loader.showChoice();
  if (app.view === "library") renderLibrary();
  standing.render();
  render();
}

async function begin() {
  try {
    await beginLanguage($("language"), respeak);
  } catch {
    document.querySelector("main").textContent = "The words of this page did not come: reload it to try again.";
    return;
  }
  idleLine(8, "normal");
  preview();
  wire();
  await act(prepareSetup);
  if (!(await act(route)) && app.view === "setup") setView("setup");
}

begin();

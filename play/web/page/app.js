// The page: its views, its address and history, and its controls.

import { Problem, call } from "../game/api.js";
import * as live from "../game/live.js";
import { saveSettings, settings, rememberedReview } from "../game/memory.js";
import * as setup from "../game/setup.js";
import * as standing from "../game/standing.js";
import { sibling, movesTo } from "../game/tree.js";
import { renderLibrary } from "../study/library.js";
import * as loader from "../study/loader.js";
import * as puzzle from "../study/puzzle.js";
import { documentOf, lineOf } from "../study/records.js";
import * as review from "../study/review.js";
import { begin as startLanguage, words } from "./language.js";
import { act, notify, copyText, download } from "./notices.js";
import { renderHelp } from "./lesson.js";
import { savePicture } from "./picture.js";
import * as sound from "./sound.js";
import { $, app, atEnd, hooks, idleLine, isLive, mainEnd, mayMove, mayTry, movesOf, newLine, shownPlace } from "./state.js";
import { focusBoard, render, renderClocks } from "./view.js";

Object.assign(hooks, {
  changed: keepPlace,
  focus: focusBoard,
  follow: review.followLine,
  refresh: () => { review.askStudy(); render(); },
  go,
  goTo,
  hover: review.hoverMove,
  play: playMove,
  show: setView,
  study: review.studyLine,
});

// --- views ---------------------------------------------------------------------------------------

function setView(view) {
  const isOther = app.view !== view;
  app.view = view;
  document.body.dataset.view = view;
  for (const name of ["setup", "help", "loader", "library", "puzzle", "game"]) $(name).hidden = view !== name;
  $("setup-cancel").hidden = $("loader-cancel").hidden = !app.line || app.line.idle;
  if (view === "game") app.place = location.pathname + location.hash;
  if (view === "library") renderLibrary();
  if (view === "help") renderHelp();
  standing.render();
  if (/^(game|puzzle)$/.test(view) && matchMedia("(max-width: 860px)").matches) scrollTo({ top: 0 });
  review.askStudy();
  preview();
  render();
  if (view === "setup" && !setup.isReady()) act(prepareSetup); // the first request failed
  if (isOther && ((view === "game" && app.game) || (view === "puzzle" && app.puzzle))) focusBoard();
  else if (isOther) $(`${view}-title`).focus({ preventScroll: true }); // in a review the arrow keys step
}

async function prepareSetup() {
  await setup.prepare($("setup"));
  preview();
  render();
}

// Show the position of the current form.
function preview() {
  const { size, variant } = Object.fromEntries(new FormData($("setup")));
  app.preview = app.view === "loader" ? loader.preview() : newLine(Number(size), variant);
}

function goTo(position) {
  if (!app.line || !position) return;
  shownPlace().here = position;
  app.hover = null;
  review.askStudy();
  render();
  touch();
}

const step = (by) => {
  const { line: { tree }, here } = shownPlace(), line = tree.line(here), at = line.indexOf(here) + by;
  goTo(line[Math.min(line.length - 1, Math.max(0, at))]);
};

function playMove(name) {
  if (app.view === "loader") return setUp(() => loader.change(name));
  if (app.view === "puzzle") return act(() => puzzle.answer(name));
  if (mayTry()) return review.followLine([name]);
  if (mayMove() && atEnd()) live.sendMove(name);
}

function setUp(work) {
  work();
  preview();
  render();
  touch();
}

const showKeys = () => $("keys").showModal();

function steps(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]")) return;
  if (/^(TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.matches("input:not([type=radio], [type=checkbox])")) return;
  if (event.key === "?") return showKeys();
  if (!/^(game|puzzle)$/.test(app.view) || event.target.tagName === "INPUT") return;
  const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }, across = { ArrowUp: -1, ArrowDown: 1 }, { here } = shownPlace();
  if (event.key in across && sibling(here, across[event.key]) !== here) goTo(sibling(here, across[event.key]));
  else if (event.key in moves) step(moves[event.key]);
  else return;
  event.preventDefault();
}

// --- address and history: the address names the view, the history's state the place in it ------------

let placeTimer = 0;
function touch() {
  try {
    keepPlace();
  } catch { /* browsers limit the rate of changes, as when a key is held: once more after a pause */ }
  placeTimer = setTimeout(keepPlace, 400);
}

function keepPlace() {
  clearTimeout(placeTimer);
  const { view, line } = app;
  if (view === "loader") history.replaceState({ loader: loader.formState() }, "");
  if (view !== "game" || line.idle) return;
  if (line.review) history.replaceState({ path: movesTo(app.here), document: documentOf(line) }, ""); // a game opens at its last move
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
  if (!shared && location.pathname !== "/") {
    history.replaceState(null, "", "/");
    notify(new Problem(words("problem.no-page")));
  }
  if (shared) {
    const { href } = location, document = await call("GET", `/api/reviews/${shared}`);
    if (location.href === href) openReview({ ...lineOf(document), shared }); // unless the address has changed in the meantime
  } else if (kind === "join" || kind === "watch") await live.join(kind, ...rest.split("."));
  else if (kind === "game" && rest === app.game?.id) setView("game");
  else if (kind === "game" && rest) await live.openGame(rest);
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
  } else setView({ games: "library", rules: "help" }[kind] ?? "setup");
}

function openReview(line) {
  live.leaveGame();
  review.openReview(line);
}

// --- controls --------------------------------------------------------------------------------------

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
    "puzzle-study": () => review.studyLine(puzzle.studied()),
    "puzzle-reset": puzzle.reset,
    "library-practise": () => { puzzle.practise(); go("/#puzzles"); },
    practise: () => { puzzle.practise(puzzle.blundersOf(app.line)); go("/#puzzles"); },
    "standing-reset": standing.reset,
    "help-lesson": live.startLesson,
    "help-back": () => go("/"),
    ...Object.fromEntries(["png", "svg", "gif"].map((kind) => [`picture-${kind}`, () => act(() => savePicture(kind, app.line, app.here))])),
    home: (event) => { event.preventDefault(); go(app.place); },
    "setup-cancel": () => go(app.place),
    "loader-cancel": () => go(app.place),
    "loader-start": () => setUp(loader.reset),
    "loader-clear": () => setUp(loader.clear),
    undo: live.takeBack,
    pause: live.pause,
    hint: review.hint,
    rematch: live.rematch,
    sound: () => { sound.switchTo(!sound.isOn()); showSound(); },
    skip: (event) => { event.preventDefault(); focusBoard(); },
    grant: () => live.sendAction("grant"),
    refuse: () => live.sendAction("decline"),
    resign: live.resign,
    review: review.studyGame,
    return: () => goTo(mainEnd(app.line)),
    study: review.studyGame,
    "go-on": review.analyseShared,
    "nav-keys": showKeys,
    share: () => act(review.share),
    copy: () => copyText(movesOf(app.line).filter((move) => move !== "pass").join("")),
    save: () => act(review.save),
    "save-json": () => download(JSON.stringify(review.analysedDocument(app.line)), "reversi.json"),
    "invite-copy": () => copyText($("invite-link").value),
    "invite-link": ({ target }) => target.select(),
    promote: review.promote,
    remove: review.remove,
    first: () => step(-Infinity),
    previous: () => step(-1),
    next: () => step(1),
    last: () => step(Infinity),
  };
  for (const [id, act] of Object.entries(clicks)) $(id).addEventListener("click", act);
  $("setup").addEventListener("submit", live.startGame);
  $("loader").addEventListener("submit", (event) => { event.preventDefault(); act(loader.submit); });
  $("analysis").addEventListener("change", review.showAnalysis);
  showSound();
  for (const form of [$("setup"), $("loader")]) form.addEventListener("input", () => setUp(() => {}));
  $("speed").value = settings().speed ?? 700;
  $("speed").addEventListener("change", ({ target }) => saveSettings({ speed: Number(target.value) }));
  $("file").addEventListener("change", readFile);
  $("puzzle-kind").addEventListener("change", ({ target }) => act(() => puzzle.choose(target.value)));
  $("comment").addEventListener("input", review.comment);
  document.addEventListener("keydown", steps);
  addEventListener("popstate", () => route().catch(notify)); // a change of the hash fires it, too
  addEventListener("pagehide", keepPlace);
  setInterval(() => { if (isLive() && app.game.state.clock?.running) renderClocks(); }, 200);
}

// Draw all texts again after a change of language.
function redrawTexts() {
  setup.refresh($("setup"));
  loader.showChoice();
  if (app.view === "library") renderLibrary();
  if (app.view === "help") renderHelp();
  standing.render();
  render();
}

async function begin() {
  try {
    await startLanguage($("language"), redrawTexts);
  } catch {
    document.querySelector("main").textContent = "The texts of this page could not be loaded; reload the page to try again.";
    return;
  }
  idleLine(8, "normal");
  preview();
  wire();
  await act(prepareSetup);
  if (!(await act(route)) && app.view === "setup") setView("setup");
}

begin();

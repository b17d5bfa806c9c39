// Puzzles: find the one best move. A wrong move is refuted on the board and can be retried; the first answer counts.

import { Problem, call } from "../game/api.js";
import { reducedMotion } from "../page/board.js";
import { colourName, decimal, signed, dateText, words } from "../page/language.js";
import { savePuzzleData, puzzleData } from "../game/memory.js";
import { MAX_RESULTS, estimate } from "../game/rating.js";
import { isSure, say } from "../page/notices.js";
import { $, app, finalScore, hooks, isOver, node, sleep, study } from "../page/state.js";
import { verdict } from "./study.js";
import { Tree, movesTo, pathTo } from "../game/tree.js";
import { askText, gameText, moveName } from "../page/words.js";

const OWN = "own", MAX_OWN = 300, SPREAD = 200, SECONDS = 1, LINE_MILLISECONDS = 700;
// The margin of the best move, in discs, that makes a blunder a puzzle: for solved positions and for estimates.
const MARGIN = { exact: 2, guessed: 4 };

// Days until an error is shown again, by how often in a row it was solved; after the last interval it is learnt.
const INTERVALS = [0, 1, 3, 7], DAY = 86_400_000;

let isResting = false; // no error is due, and the page shows this
let failed = ""; // why there is no puzzle

// --- choice --------------------------------------------------------------------------------------

// Show the current puzzle, or another one.
export async function open() {
  const { current } = puzzleData();
  isResting = false;
  if (current && !app.puzzle) begin(current);
  else if (!app.puzzle || app.puzzle.about.kind !== puzzleData().kind) return next();
  hooks.refresh();
}

export async function next() {
  const { kind } = puzzleData(), about = kind === OWN ? nextOwn() : await nextRated(kind);
  if (puzzleData().kind !== kind) return; // another kind was chosen in the meantime
  savePuzzleData({ current: about ?? null });
  app.puzzle = null;
  if (about) begin(about);
  hooks.refresh();
  if (!about || app.view !== "puzzle") return;
  $("board").scrollIntoView({ block: "nearest" }); // on a phone the button is far below the board
  hooks.focus();
  say(askText());
}

function begin(about) {
  const size = Math.sqrt(about.board.length), tree = new Tree(size, about), names = { get [about.turn]() { return words("seat.you"); } };
  app.puzzle = { about, line: { size, variant: about.variant, start: "standard", tree, names }, here: tree.root, isCounted: false, isSolved: false, verdict: () => "" };
}

export function choose(kind) {
  savePuzzleData({ kind, current: null });
  app.puzzle = null;
  isResting = false;
  return next();
}

// Return a puzzle of `requestPuzzle`; an error is shown until the next attempt.
async function nextRated(kind) {
  try {
    const about = await requestPuzzle(kind);
    failed = "";
    return about;
  } catch (error) {
    failed = error.message;
    hooks.refresh();
    throw error;
  }
}

// One of the package's puzzles near the player's rating, preferably not seen before.
async function requestPuzzle(kind) {
  const [size, variant] = kind.split("-"), { answers, seen } = puzzleData();
  const rating = Math.min(4000, Math.max(0, estimate(answers).rating + SPREAD * (Math.random() - 0.5)));
  const { puzzles } = await call("POST", "/api/puzzles", { body: { size: Number(size), variant, rating } });
  const old = seen[kind] ?? [], puzzle = puzzles.find(({ number }) => !old.includes(number)) ?? puzzles[0];
  return puzzle && { ...puzzle, kind, variant };
}

const dueAt = ({ found, at }) => at + DAY * INTERVALS[found];
// The player's errors that are not learnt yet, by due date.
export const unlearnt = () => puzzleData().own.filter(({ found }) => found < INTERVALS.length).sort((a, b) => dueAt(a) - dueAt(b));
const countDue = (own) => own.filter((one) => dueAt(one) <= Date.now()).length;

// The error to practise now; one that is not due only after a second request.
function nextOwn() {
  const [first] = unlearnt(), isOffered = first && (isResting || dueAt(first) <= Date.now());
  isResting = Boolean(first) && !isOffered;
  return isOffered ? first : undefined;
}

// --- the player's errors -----------------------------------------------------------------------------

// Puzzles of a review: mistakes and blunders where one move was clearly best; only the player's, if the side is known.
export function blundersOf({ tree, variant, mine }) {
  const made = tree.line().slice(1).filter(({ parent }) => !mine || parent.turn === mine);
  return made.map(({ parent, move }) => puzzleOf(parent, move, variant)).filter(Boolean);
}

function puzzleOf(position, made, variant) {
  const analysis = study.get(position, variant);
  if (!/^(mistake|blunder)$/.test(verdict(analysis, made)?.grade)) return null;
  const { move, value, exact, moves } = analysis, { board, turn } = position, all = Object.values(moves);
  const margin = value - Math.max(...all.filter((one) => one.move !== move).map((one) => one.value));
  if (margin < (exact ? MARGIN.exact : MARGIN.guessed)) return null;
  const values = Object.fromEntries(all.map((one) => [one.move, one.value]));
  return { kind: OWN, board, turn, variant, move, value, exact, margin, values, found: 0, at: 0 };
}

const isSame = (one, other) => one.board === other.board && one.turn === other.turn && one.variant === other.variant;

// Store blunders as puzzles; those that are stored already keep their dates.
export function collect(blunders) {
  const { own } = puzzleData(), added = blunders.filter((one) => !own.some((other) => isSame(one, other)));
  const byUse = [...own, ...added].sort((a, b) => (a.found < INTERVALS.length) - (b.found < INTERVALS.length)); // learnt puzzles are dropped first
  if (added.length) savePuzzleData({ own: byUse.slice(-MAX_OWN) });
}

// Practise these blunders now, or without any those that are due.
export function practise(blunders = []) {
  const old = puzzleData().own.filter((one) => !blunders.some((other) => isSame(one, other)));
  savePuzzleData({ own: old });
  collect(blunders);
  savePuzzleData({ kind: OWN, current: null });
  app.puzzle = null;
  isResting = false;
}

// --- answers -------------------------------------------------------------------------------------

export const mayAnswer = () => app.view === "puzzle" && Boolean(app.puzzle) && !app.puzzle.isSolved && app.puzzle.here === app.puzzle.line.tree.root;

export async function answer(move) {
  const { puzzle } = app;
  if (!mayAnswer()) return;
  const { about, here, line } = puzzle;
  if (!here.legal.includes(move)) throw new Problem(words("problem.illegal", { move }));
  const isRight = move === about.move, shown = line.tree.play(here, move);
  countAnswer(puzzle, isRight);
  if (!isRight) return refute(puzzle, shown);
  puzzle.isSolved = true;
  show(shown, () => words("puzzle.right", { move, value: worth(about, about.value), discs: discsText(about, about.margin) }));
  $("puzzle-next").focus({ preventScroll: true });
}

// Count the first answer. The player's own errors are not rated, and are repeated until they are learnt.
function countAnswer(puzzle, isRight) {
  if (puzzle.isCounted) return;
  puzzle.isCounted = true;
  const { about } = puzzle, { answers, streak, longest, seen, own } = puzzleData(), now = isRight ? streak + 1 : 0;
  const changes = { current: null, streak: now, longest: Math.max(now, longest) };
  if (about.kind === OWN) {
    Object.assign(about, { found: isRight ? Math.min(INTERVALS.length, about.found + 1) : 0, at: Date.now() });
    changes.own = [...own.filter((one) => !isSame(one, about)), about];
  } else {
    changes.answers = [...answers, { rating: about.rating, score: Number(isRight) }].slice(-MAX_RESULTS);
    changes.seen = { ...seen, [about.kind]: [...new Set([...(seen[about.kind] ?? []), about.number])] };
  }
  savePuzzleData(changes);
}

// Show the opponent's reply to a wrong move, and the resulting value.
async function refute(puzzle, shown) {
  const { about } = puzzle, { move, turn } = shown;
  show(shown, () => words("puzzle.wrong", { move, discs: discsText(about, about.margin) }));
  const { end, value } = await expected(puzzle, shown), left = about.values?.[move] ?? value, reply = movesTo(end)[1];
  const values = () => ({ move, reply, colour: colourName(turn), discs: discsText(about, about.value - left), value: worth(about, left), best: worth(about, about.value) });
  if (!isShown(puzzle, shown)) return;
  show(shown, () => words(reply && reply !== "pass" ? "puzzle.refuted" : "puzzle.lost", values()));
  await playOut(puzzle, shown, end);
}

export function again() {
  app.puzzle.verdict = () => "";
  hooks.goTo(app.puzzle.line.tree.root);
  hooks.focus();
}

export async function solve() {
  const { puzzle } = app, { about, line } = puzzle, shown = line.tree.play(line.tree.root, about.move);
  countAnswer(puzzle, false);
  puzzle.isSolved = true;
  show(shown, () => words("puzzle.solution", { move: about.move, value: worth(about, about.value) }));
  $("puzzle-next").focus({ preventScroll: true });
  await playOut(puzzle, shown, (await expected(puzzle, shown)).end);
}

// Show a position and a text.
function show(position, text) {
  app.puzzle.verdict = text;
  hooks.goTo(position);
  say(text());
}

// Whether the player still looks at this position.
const isShown = (puzzle, position) => app.view === "puzzle" && app.puzzle === puzzle && puzzle.here === position;

// The position after the expected moves, to the end of the game if it is solved, and its value for the player.
async function expected(puzzle, from) {
  const { tree, variant } = puzzle.line, player = puzzle.about.turn, passed = (at) => (at.legal[0] === "pass" ? at.children[0] : at);
  let at = passed(from), value = null;
  while (!isOver(at)) {
    const analysis = await call("POST", "/api/analyse", { body: { board: at.board, turn: at.turn, variant, seconds: SECONDS } });
    value ??= at.turn === player ? analysis.value : -analysis.value;
    const last = passed(tree.playAll(at, analysis.pv));
    if (last === at) break;
    at = last;
    if (!analysis.exact) break;
  }
  return { end: at, value: value ?? finalScore(at, variant) * (player === "black" ? 1 : -1) };
}

// Show a line move by move until the player shows another position; at once with reduced motion.
async function playOut(puzzle, from, end) {
  const path = pathTo(end);
  let shown = from;
  while (shown !== end && isShown(puzzle, shown)) {
    if (!reducedMotion.matches) await sleep(LINE_MILLISECONDS);
    if (!isShown(puzzle, shown)) return;
    shown = reducedMotion.matches ? end : path[path.indexOf(shown) + 1];
    hooks.goTo(shown);
  }
}

export async function reset() {
  if (!await isSure(words("puzzle.forget"), words("puzzle.reset"))) return;
  savePuzzleData({ answers: [], streak: 0, longest: 0 });
  hooks.refresh();
}

// --- drawing -------------------------------------------------------------------------------------

const isWhole = ({ kind, exact }) => kind !== OWN || exact;
const worth = (about, value) => signed(value, isWhole(about) ? 0 : 1);
const discsText = (about, discs) => words("count.discs", { n: decimal(discs, isWhole(about) ? 0 : 1) });

export function renderPuzzle() {
  const { puzzle } = app, { kind, own, streak, longest, answers } = puzzleData(), { rating, low, high, count: n } = estimate(answers);
  for (const option of $("puzzle-kind").options) option.textContent = kindText(option.value);
  $("puzzle-kind").value = kind;
  const { rating: difficulty, found } = puzzle?.about ?? {}, [first] = unlearnt();
  $("puzzle-tags").textContent = difficulty ? words("puzzle.difficulty", { rating: rounded(difficulty) }) : puzzle ? words("puzzle.stage", { n: found, all: INTERVALS.length }) : "";
  const nothing = () => (kind !== OWN ? failed || words("puzzle.none") : first ? words("puzzle.rest", { when: dateText(dueAt(first)) }) : words(own.length ? "puzzle.learnt" : "puzzle.empty"));
  $("puzzle-verdict").textContent = puzzle ? puzzle.verdict() || askText() : nothing();
  $("puzzle-next").hidden = puzzle ? !puzzle.isCounted : kind === OWN ? !first : !failed;
  $("puzzle-again").hidden = !puzzle?.isCounted || puzzle.isSolved;
  $("puzzle-solve").hidden = !puzzle || puzzle.isSolved;
  $("puzzle-study").hidden = !puzzle?.isCounted;
  $("puzzle-streak").textContent = words("puzzle.streak", { streak, longest });
  $("puzzle-rating").textContent = n ? words("puzzle.rating", { rating: rounded(rating), low: rounded(low), high: rounded(high), n }) : words("puzzle.unrated");
  $("puzzle-reset").hidden = !n && !longest;
  renderLine();
}

const rounded = (rating) => String(Math.round(rating));

export const ownText = (key) => words(key, { n: countDue(unlearnt()), all: unlearnt().length });

const kindText = (kind) => {
  const [size, variant] = kind.split("-");
  return kind === OWN ? ownText("puzzle.own") : gameText({ size, variant });
};

// The moves before and after the shown position, as buttons.
function renderLine() {
  const { puzzle } = app, line = puzzle ? puzzle.line.tree.line(puzzle.here).slice(1) : [], shown = Array.from($("puzzle-line").children);
  if (line.length !== shown.length || line.some((at, i) => at !== shown[i].position)) {
    const button = (position) => node("button", { type: "button", position, onclick: () => hooks.goTo(position) }, moveName(position.move));
    $("puzzle-line").replaceChildren(...line.map(button));
  }
  for (const button of $("puzzle-line").children) button.setAttribute("aria-current", button.position === puzzle.here);
}

// The line of a review that begins with the puzzle.
export const studied = () => ({ ...app.puzzle.line, names: {} });

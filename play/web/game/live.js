// A running game: creating and opening it, showing its states one after another, and sending moves.

import { GameSocket, Problem, call } from "./api.js";
import { forget, newKey, noteGame, rememberGame, rememberedGame } from "./memory.js";
import { after } from "./rules.js";
import * as setup from "./setup.js";
import * as standing from "./standing.js";
import { Tree, pathTo } from "./tree.js";
import { reducedMotion } from "../page/board.js";
import { colourName, sentences, words } from "../page/language.js";
import { act, isSure, notify, say } from "../page/notices.js";
import * as sound from "../page/sound.js";
import { $, app, betweenPeople, hooks, idleLine, mayMove, newLine, other, sleep, study } from "../page/state.js";
import { render, turned } from "../page/view.js";
import { resultOf, resultText, seatHere, statusText } from "../page/words.js";
import { askStudy } from "../study/review.js";

const ANSWER_MILLISECONDS = 500; // minimum time between a move and the reply

// --- start and end -------------------------------------------------------------------------------

export async function startGame(event) {
  event.preventDefault();
  $("start").disabled = true;
  await act(async () => {
    await create(await setup.readForm($("setup")));
  });
  $("start").disabled = false;
}

// Start a game on 4×4 against the weakest level, with explanations.
export const startLesson = () => act(() => create({ mode: "computer", mine: "black", isLesson: true, request: { size: 4, white: { kind: "agent", agent: setup.easiest() } } }));

async function create({ request, ...entry }) {
  const created = await call("POST", "/api/games", { body: request });
  rememberGame(created.game, { ...entry, request, tokens: created.tokens });
  await openGame(created.game);
}

// Start the same game with colours exchanged, with a new opening once both sides have played it; or open the opponent's rematch.
export function rematch() {
  const { game } = app, { mode, mine, isReturn, request, state } = game;
  if (state.rematch) return act(() => followRematch(game));
  if (mode === "friend") {
    game.wantsRematch = true;
    return sendAction("rematch");
  }
  const { black, white, ...rest } = request;
  return act(async () => {
    if (isReturn) rest.moves = await setup.evenOpening(rest);
    const next = { ...rest, black: setup.reseeded(white), white: setup.reseeded(black) };
    await create({ mode, mine: mine && other(mine), request: next, isReturn: Boolean(rest.moves) && !isReturn });
  });
}

// In the next game a player's token opens the other colour.
function followRematch({ mode, mine, tokens: { spectator, ...seats }, state: { rematch: id, size, variant } }) {
  const entry = { mode, mine: mine && other(mine), request: { size, variant }, tokens: { spectator, ...(mine && { [other(mine)]: seats[mine] }) } };
  if (!rememberedGame(id)) rememberGame(id, entry);
  return openGame(id);
}

export function leaveGame() {
  app.game?.socket.close();
  app.game = null;
  study.forget();
}

export async function openGame(id) {
  const entry = rememberedGame(id);
  if (!entry) throw new Problem(words("problem.no-key"));
  leaveGame();
  const { mode, mine, tokens, request, invitation, isReturn, isLesson } = entry;
  const token = (mine && tokens[mine]) ?? tokens.spectator ?? Object.values(tokens)[0];
  const game = { id, mode, mine, tokens, request, isReturn, isLesson, role: null, state: null, waiting: [], following: false, movedAt: 0, connected: false, sent: false, paused: false };
  app.game = game;
  if (location.pathname + location.hash !== `/#game=${id}`) history.pushState(null, "", `/#game=${id}`);
  game.socket = new GameSocket(id, invitation ? { token: invitation, claim: token } : { token }, {
    onJoined: (role) => {
      game.role = role;
      if (game.mine && role === "spectator") watchInstead(game, invitation);
      if (rememberedGame(id)?.isUntried) noteGame(id, { isUntried: false });
    },
    onState: (state) => onState(game, state),
    onProblem: (problem) => { game.sent = false; notify(problem); render(); },
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
  hooks.show("game");
}

// Another person has taken the seat of the link.
function watchInstead(game, token) {
  const changes = { mode: "watch", mine: null, tokens: { spectator: token }, invitation: undefined };
  Object.assign(game, changes);
  noteGame(game.id, changes);
  notify(new Problem(words("invite.taken")));
}

// The server refuses the token; a token from a link is forgotten.
function refused(game) {
  game.isRefused = true;
  if (rememberedGame(game.id)?.isUntried) forget(`game ${game.id}`);
  notify(new Problem(words("problem.forgotten")));
}

// Open a game by the token of a link, for a seat or for spectators; a seat that this browser already has is kept.
export async function join(kind, id, ...rest) {
  const [colour, written] = kind === "join" ? rest : [null, ...rest], token = written?.match(/^[\w-]*/)[0]; // messengers may append characters
  const known = rememberedGame(id), isUntried = true; // until the server has admitted us
  if (id && token && /^(black|white)$/.test(colour) && (known?.isUntried || !known?.mine)) {
    const own = known?.tokens[colour] ?? newKey(24); // takes the seat, so that the link opens it to nobody else
    rememberGame(id, { mode: "friend", mine: colour, tokens: { [colour]: own }, invitation: token, isUntried });
  }
  else if (id && token && (known?.isUntried || !known)) rememberGame(id, { mode: "watch", mine: null, tokens: { spectator: token }, isUntried });
  history.replaceState(null, "", `/#game=${id}`);
  await openGame(id);
}

// --- states --------------------------------------------------------------------------------------

// Update the tree from the game's state: its moves become the main line, and moves that were taken back are removed.
function follow(state) {
  if (app.line.idle || !sameGame(app.line, state)) app.line = { ...newLine(state.size, state.variant, state.start), ...rememberedTree(app.game.id) };
  const { line } = app, before = line.tip;
  line.tip = line.tree.setMain(state.moves);
  const path = pathTo(line.tip), gone = pathTo(before).find((position) => !path.includes(position));
  if (gone) line.tree.remove(gone);
  if (!before || app.here === before || pathTo(app.here).includes(gone)) app.here = line.tip;
}

// Variations of a game that this browser has stored.
const rememberedTree = (id) => {
  const { tree } = rememberedGame(id) ?? {};
  return tree ? { tree: Tree.fromJSON(tree) } : {};
};

const sameGame = (line, state) => line.size === state.size && line.variant === state.variant && line.start === state.start;

function onState(game, state) {
  if (game !== app.game) return;
  state.received = performance.now();
  const newest = game.waiting.at(-1) ?? game.state;
  if (newest?.moves.length > state.moves.length) game.waiting.length = 0; // moves were taken back: skip the states before
  game.waiting.push(...stepsTo(newest, state));
  showStates(game);
}

// The states from one to a later one, move by move, since the server skips states that are outdated.
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

// Show the waiting states one after another; they may arrive faster than the animation of the discs.
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
  if (state.status === "finished" && !rememberedGame(game.id)?.result) noteGame(game.id, { result: resultOf(state), moves: state.moves }); // once, since looking at a game again does not change its result
  standing.settle(game, state);
  askStudy();
  render();
  if (before && app.view === "game") playSounds(before, state);
  if (state.rematch && game.wantsRematch) act(() => followRematch(game));
  if (state.moves.length > (before?.moves.length ?? -1)) game.movedAt = performance.now();
}

// Wait until the next state may be shown, after the discs of the last one have turned; return whether there is one.
async function isTimeToShow(game) {
  const isDue = () => app.game === game && game.waiting.length > 0 && !game.paused;
  if (isDue() && game.waiting[0].moves.length > game.state?.moves.length) {
    const gap = game.mode === "watch" ? Number($("speed").value) : reducedMotion.matches || game.state.clock ? 0 : ANSWER_MILLISECONDS;
    await Promise.all([turned(), sleep(game.movedAt + gap - performance.now())]);
  }
  return isDue();
}

function playSounds(before, state) {
  if (state.moves.length > before.moves.length && state.moves.at(-1) !== "pass") sound.knock();
  if (state.status === "finished" && before.status !== "finished") sound.chime(!app.game.mine || state.result.winner === app.game.mine);
}

export function pause() {
  app.game.paused = !app.game.paused;
  render();
  showStates(app.game);
}

function announce(before, state) {
  if (state.status === "finished") {
    if (before?.status !== "finished") say(resultText(resultOf(state), seatHere()));
    if (state.rematch && !before?.rematch && app.game.mine && !app.game.wantsRematch) say(words("rematch.offered"));
    return;
  }
  const made = before ? pathTo(app.line.tip).slice(before.moves.length + 1) : [];
  const texts = made.map(({ move, parent: { turn: mover } }) => {
    return words(move === "pass" ? "move.passes" : "move.plays", { colour: colourName(mover), move });
  });
  if (before && state.moves.length < before.moves.length) texts.push(words("undo.done"));
  else if (before?.undo_request && before.undo_request === app.game.mine && !state.undo_request && !made.length) notify(new Problem(words("undo.refused")));
  if (state.undo_request && state.undo_request !== before?.undo_request && app.game.mine && state.undo_request === other(app.game.mine)) texts.push(words("undo.asked"));
  if (mayMove() && state.moves.length !== before?.moves.length) texts.push(words("status.mine"));
  if (texts.length) say(sentences(texts));
}

// --- actions -------------------------------------------------------------------------------------

// Send a move of this side, if it is legal.
export function sendMove(name) {
  const { game } = app, { state } = game;
  if (!state.legal.includes(name)) return notify(new Problem(words("problem.illegal", { move: name })));
  game.sent = true;
  sendAction("move", state.turn, { move: name, ply: state.moves.length });
}

// Send an action of *colour*: over the socket, or with that side's token if both sides play here.
export async function sendAction(type, colour, body) {
  const { game } = app, path = `/api/games/${game.id}/${type === "move" ? "moves" : type}`;
  if (game.mode === "here") return act(() => call("POST", path, { body, token: game.tokens[colour] }));
  if (game.socket.send({ type, ...body })) return true;
  game.sent = false;
  notify(new Problem(words("status.lost")));
}

export async function takeBack() {
  const { mode, mine, state } = app.game, isGranted = mode === "friend" && state.undo_request === other(mine);
  // If both sides play here, the one that moved last asks, and the other agrees.
  const mover = pathTo(app.line.tip).findLast(({ move }) => move && move !== "pass")?.parent.turn ?? "black";
  if (!await sendAction(isGranted ? "grant" : "undo", mine ?? mover)) return;
  if (mode === "here") sendAction("undo", other(mover));
  if (mode === "friend" && !isGranted) notify(new Problem(words("undo.waiting")));
}

export async function resign() {
  if (await isSure(words("resign.sure"), words("game.resign"))) sendAction("resign", app.game.state.turn);
}

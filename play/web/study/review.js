// Reviews, and variations of a game: changes, comments, links, records, and the engine's analysis.

import { Problem, call } from "../game/api.js";
import { newKey, noteGame, rememberReview, rememberedReview } from "../game/memory.js";
import { after } from "../game/rules.js";
import * as setup from "../game/setup.js";
import { noteHelp } from "../game/standing.js";
import { MAX_COMMENT, movesTo, pathTo, sizeOf } from "../game/tree.js";
import { words } from "../page/language.js";
import { act, copyText, download, isSure, notify, say } from "../page/notices.js";
import { app, finalScore, hooks, isFinished, showsStoredOnly, isOver, isPlayer, mainEnd, study } from "../page/state.js";
import { render, renderLine } from "../page/view.js";
import { isNameless } from "../page/words.js";
import { analysisOf, documentOf, ggfOf } from "./records.js";

const PLAY_SECONDS = 0.25, REVIEW_SECONDS = 0.5, HOVER_SECONDS = 0.15, HINT_SECONDS = 0.5;

// --- the reviewed line ---------------------------------------------------------------------------

// The document of a line with the analyses of a review that are known.
export const analysedDocument = (line) => documentOf(line, (node) => (study.has(node, line.variant, REVIEW_SECONDS) ? study.get(node, line.variant) : null));

// Start a review of a line, which this browser stores under a new key.
export function studyLine(line) {
  const key = newKey(8), document = analysedDocument(line);
  rememberReview(key, { document, moves: sizeOf(line.tree.root) - 1, mine: line.mine });
  return hooks.go(`/#review=${key}`, { document, path: line === app.line ? movesTo(app.here) : [] });
}

export function openReview(line) {
  app.line = { ...line, review: true };
  for (const [i, node] of line.tree.line().entries()) {
    const analysis = analysisOf(line.values?.[i]);
    if (analysis) study.put(node, line.variant, analysis);
  }
  app.here = line.tree.find(history.state?.path ?? []);
  app.analysis = true;
  hooks.show("game");
}

// Store the changed tree; a change of another person's review creates a copy.
function changed() {
  const { line, game } = app;
  line.link = null;
  if (!line.review) return noteGame(game.id, { tree: line.tree.toJSON() });
  if (!line.key) return studyLine(line);
  rememberReview(line.key, { document: analysedDocument(line), moves: sizeOf(line.tree.root) - 1, link: null });
}

// Play moves from here as a variation or along an existing one; a forced pass follows at once.
export function followLine(moves) {
  const { tree } = app.line, before = sizeOf(tree.root), last = tree.playAll(app.here, moves);
  if (last === app.here) return notify(new Problem(words("problem.illegal", { move: moves[0] })));
  hooks.goTo(last.legal[0] === "pass" ? last.children[0] : last);
  if (sizeOf(tree.root) > before) changed();
}

export function promote() {
  app.line.tree.promote(app.here);
  render();
  changed();
}

export async function remove() {
  const size = sizeOf(app.here);
  if (size > 3 && !await isSure(words("notes.sure", { n: size }), words("notes.delete"))) return;
  hooks.goTo(app.line.tree.remove(app.here));
  changed();
}

export function comment({ target }) {
  app.here.comment = target.value.slice(0, MAX_COMMENT);
  render();
  changed();
}

// Review the game as it stands, with its variations.
export function studyGame() {
  noteHelp();
  const { state, mine } = app.game, named = ({ kind, name, agent }, colour) => (kind === "agent" ? setup.recordName(agent) : isNameless(name, colour) ? null : name);
  return studyLine({ ...app.line, mine, names: { black: named(state.black, "black"), white: named(state.white, "white") } });
}

// Make a link for others: to the shown review, which nobody can change, or to a game for spectators.
export async function share() {
  const { line, game } = app;
  if (!line.review) line.link = `/#watch=${game.id}.${game.tokens.spectator}`;
  else {
    let name = line.shared ?? rememberedReview(line.key)?.link;
    if (!name) {
      const sent = JSON.stringify(documentOf(line));
      ({ review: name } = await call("POST", "/api/reviews", { body: analysedDocument(line) }));
      if (app.line !== line) return; // another line is shown now
      if (JSON.stringify(documentOf(line)) !== sent) return share(); // share the changes that were made in the meantime, too
    }
    if (line.key) rememberReview(line.key, { link: name });
    line.link = `/review/${name}`;
  }
  render();
  await copyText(setup.addressForOthers().origin + line.link);
}

// Download the main line in GGF, with the engine's values; the record of a game comes from the server.
export async function save() {
  const { line, game } = app;
  if (!line.review) return download(await call("GET", `/api/games/${game.id}/record`, { token: Object.values(game.tokens)[0] }), `reversi-${game.id}.ggf`);
  const end = mainEnd(line), worth = ({ parent, move }) => study.get(parent, line.variant)?.moves[move]?.value ?? null;
  download(ggfOf(line, worth, isOver(end) ? finalScore(end) : null), "reversi.ggf");
}

// --- analysis ------------------------------------------------------------------------------------

// A review is analysed as a whole, another person's only on request; a finished game, for the accuracy of its players.
export function askStudy() {
  const { line } = app, isEnded = isFinished() && isPlayer(app.game);
  if (!line || line.idle || app.view !== "game" || !(app.analysis || isEnded)) return study.forget();
  const { tree, variant } = line, main = pathTo(mainEnd(line)), seconds = line.review || isEnded ? REVIEW_SECONDS : PLAY_SECONDS;
  const wanted = [app.here, ...tree.line(app.here).reverse(), ...main.toReversed()].filter((position) => !isOver(position));
  const before = line.left;
  line.left = main.filter((position) => !isOver(position) && !study.has(position, variant, seconds)).length;
  if (line.key && before && !line.left) rememberReview(line.key, { document: analysedDocument(line), link: null });
  if (showsStoredOnly()) study.forget();
  else study.ask(wanted, variant, seconds);
}

export function analyseShared() {
  app.line.isAnalysed = true;
  hooks.refresh();
}

let hoverTimer = 0;
export function hoverMove(name) {
  app.hover = name;
  clearTimeout(hoverTimer);
  const position = app.here;
  if (!app.analysis || !position || app.view !== "game") return;
  renderLine();
  if (name && position.legal.includes(name) && !showsStoredOnly()) {
    const child = after(position, name, app.line.size);
    if (study.get(child, app.line.variant)) return;
    hoverTimer = setTimeout(() => { study.ask([child], app.line.variant, HOVER_SECONDS); }, 120);
  }
}

export async function hint() {
  const position = app.here, { game, line: { variant } } = app;
  await act(async () => {
    const { move } = await call("POST", "/api/analyse", { body: { board: position.board, turn: position.turn, variant, seconds: HINT_SECONDS } });
    if (app.game === game) noteHelp();
    app.hint = { position, move };
    say(words("hint.said", { move }));
    render();
  });
}

export function showAnalysis({ target }) {
  app.analysis = target.checked;
  if (app.analysis) noteHelp();
  noteGame(app.game.id, { analysis: app.analysis });
  askStudy();
  render();
}

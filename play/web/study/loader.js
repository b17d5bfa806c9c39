// Input for reviews: pasted moves, boards or records, files, and positions set up on the board.

import { Problem, call } from "../game/api.js";
import { colourName, signed, joined, words } from "../page/language.js";
import { lineOf, lineOfGame } from "./records.js";
import { indexOf, initial } from "../game/rules.js";
import { act } from "../page/notices.js";
import { $, hooks, newLine, node } from "../page/state.js";
import { Tree } from "../game/tree.js";
import { pairName } from "../page/words.js";

const MAX_FILE_BYTES = 700_000, MAX_TEXT = 60_000; // longer texts are sent as a file
const NEXT = { "-": "X", X: "O", O: "-" };

let board = initial(8).board;
let choice = null; // {games, first, more}: what was read, if there is a choice
let source = null; // {what, players}: the text or file that was read

const fields = () => {
  const { rsize, rvariant, rturn } = Object.fromEntries(new FormData($("loader")));
  return { size: Number(rsize), variant: rvariant, turn: rturn };
};

// The line, without a move, of the position on the board.
export function preview() {
  const { size, variant, turn } = fields();
  if (board.length !== size * size) ({ board } = initial(size));
  return { ...newLine(size, variant), tree: new Tree(size, { board, turn }) };
}

// A change of the board deletes the pasted text, since the latest change is reviewed.
function setUp(changed) {
  board = changed;
  $("transcript").value = "";
}

export function change(name) {
  const at = indexOf(name, fields().size);
  setUp(board.slice(0, at) + NEXT[board[at]] + board.slice(at + 1));
}

export const clear = () => setUp(board.replace(/[XO]/g, "-"));
export const reset = () => setUp(initial(fields().size).board);

// The data for the page's history, so that reload and Back restore it.
export const formState = () => ({ ...fields(), board, text: $("transcript").value, choice });

export function restore({ size, variant, turn, text, ...rest }) {
  const form = $("loader");
  for (const [name, value] of Object.entries({ rsize: size, rvariant: variant, rturn: turn })) form.elements[name].value = value;
  $("transcript").value = text;
  ({ board, choice } = rest);
  source = null;
  showChoice();
}

// Read the pasted text, or take the position on the board.
export async function submit() {
  const text = $("transcript").value.trim();
  if (text.startsWith("{")) return openDocument(text);
  if (text.length > MAX_TEXT) return readBytes(new TextEncoder().encode(text));
  if (text) return read({ text });
  return study(preview());
}

function study(line) {
  if (!line.tree.root.legal.length) throw new Problem(words("problem.no-move"));
  return hooks.study(line);
}

// Read the games of a file. WTHOR has numbers for players; their names are in another file, which may be chosen with it.
export async function readFiles(files) {
  files.forEach(({ size }) => checkSize(size));
  const isNames = ({ name }) => /\.jou$/i.test(name), names = files.find(isNames), file = files.find((one) => !isNames(one));
  if (!file) throw new Problem(words("problem.no-game"));
  const players = names ? playersOf(new Uint8Array(await names.arrayBuffer())) : [];
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes[0] === 123) return openDocument(new TextDecoder().decode(bytes)); // {
  return readBytes(bytes, players);
}

function checkSize(size) {
  if (size > MAX_FILE_BYTES) throw new Problem(words("problem.file-size", { n: size, most: MAX_FILE_BYTES }));
}

function readBytes(bytes, players) {
  checkSize(bytes.length);
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return read({ file: btoa(letters) }, 0, players);
}

// The file has a header of 16 bytes, then 20 bytes per name in Latin-1, zero-padded; a player's number is the index.
function playersOf(bytes) {
  const decoder = new TextDecoder("latin1"), names = [];
  for (let at = 16; at + 20 <= bytes.length; at += 20) names.push(decoder.decode(bytes.subarray(at, at + 20)).split("\0")[0].trim());
  return names;
}

function openDocument(text) {
  try {
    return hooks.study(lineOf(JSON.parse(text)));
  } catch {
    throw new Problem(words("problem.no-review"));
  }
}

async function read(what, first = 0, players = []) {
  const { size, variant } = fields();
  const answer = await call("POST", "/api/transcripts", { body: { ...what, first, size, variant } });
  const { games } = answer, known = (player) => players[player?.match(/^#(\d+)$/)?.[1]] || player;
  for (const game of games) Object.assign(game, { black: known(game.black), white: known(game.white) });
  if (!games.length) throw new Problem(words("problem.no-game"));
  if (games.length === 1 && !first && !answer.more) return choose(games[0]);
  [choice, source] = [answer, { what, players }];
  showChoice();
  hooks.changed();
  $("choice-title").focus();
}

const choose = (game) => study(lineOfGame(game));

// --- the list of games -----------------------------------------------------------------------------

export function showChoice() {
  $("choice").hidden = !choice;
  if (!choice) return;
  const { games, first, more } = choice, step = (by) => () => act(() => read(source.what, first + by, source.players));
  $("choice-title").textContent = first || more ? words("loader.range", { first: first + 1, last: first + games.length }) : words("count.games", { n: games.length });
  $("choice-list").replaceChildren(...games.map((game, i) => {
    const button = node("button", { type: "button", onclick: () => act(() => choose(game)) }, ...title(game));
    return node("li", { value: first + i + 1 }, button);
  }));
  $("choice-more").hidden = !source || (!first && !more);
  Object.assign($("choice-previous"), { disabled: !first, onclick: step(-Math.min(first, 500)) });
  Object.assign($("choice-next"), { disabled: !more, onclick: step(games.length) });
}

function title({ black, white, result, moves, size, comment }) {
  const who = black || white ? pairName(black, white) : words(moves.length ? "loader.game" : "loader.position");
  const about = joined([`${size}×${size}`, moves.length && words("count.moves", { n: moves.length }), result !== null && `${colourName("black")} ${signed(result, 0)}`, comment]);
  return [node("span", { className: "name" }, who), node("span", { className: "note" }, about)];
}

// A line as a document of this page, with variations and comments, and as GGF, with the main line. This module does not use the DOM.

import { MAX_COMMENT, Tree, pathTo } from "../game/tree.js";

const NAME = 40; // characters that a name may have
const MAX_PV = 12; // moves of an expected line that are stored

// known: a node to the analysis of its position that is stored with the main line, or none.
export function documentOf({ variant, names, tree }, known = () => null) {
  const named = Object.entries(names ?? {}).filter(([, name]) => name).map(([colour, name]) => [colour, name.slice(0, NAME)]);
  const values = tree.line().map((node) => analysisText(known(node)));
  return { variant, ...Object.fromEntries(named), ...tree.toJSON(), ...(values.some(Boolean) && { values }) };
}

// An analysis as a text: "=" if it is exact, its depth, confidence and expected line, and its moves with verdict and value, best first.
const VERDICTS = ["best", "good", "inaccuracy", "mistake", "blunder"];
const analysisText = (analysis) => (analysis
  ? [`${analysis.exact ? "=" : ""}${analysis.depth}%${analysis.confidence}`, analysis.pv.slice(0, MAX_PV).join(",") || "-",
    ...Object.values(analysis.moves).map(({ move, value, verdict }) => `${move}:${VERDICTS.indexOf(verdict)}:${Number(value.toFixed(2))}`)].join(" ")
  : "");

// The analysis of such a text, or null.
export function analysisOf(text) {
  const [, exact, depth, confidence, pv, rest] = String(text ?? "").match(/^(=?)(\d+)%(\d+) (\S+) (.+)$/) ?? [];
  const moves = rest?.split(" ").map((entry) => entry.split(":")).map(([move, grade, value]) => ({ move, verdict: VERDICTS[grade], value: Number(value) }));
  if (!moves?.every(({ move, verdict, value }) => /^([a-h][1-8]|pass)$/.test(move) && verdict && Number.isFinite(value))) return null;
  const best = moves[0], line = pv === "-" ? [] : pv.split(",");
  return { move: best.move, value: best.value, exact: exact === "=", depth: Number(depth), confidence: Number(confidence), pv: line, moves: Object.fromEntries(moves.map((one) => [one.move, one])) };
}

// The line of a document from a file; throws if it is invalid.
export function lineOf(document) {
  const { board, turn, variant = "normal", black, white, moves = [], values = [] } = document;
  const fits = /^[XO-]+$/.test(board) && [16, 36, 64].includes(board.length) && /^(black|white)$/.test(turn) && /^(normal|reversed)$/.test(variant);
  if (!fits || !Array.isArray(moves) || !Array.isArray(values)) throw new TypeError("This is not a review.");
  return { size: Math.sqrt(board.length), variant, start: "standard", tree: Tree.fromJSON({ ...document, moves }), names: { black, white }, values };
}

// The line of a game that the server has read.
export function lineOfGame({ size, variant, board, turn, moves, black, white, comment }) {
  const tree = new Tree(size, { board, turn });
  tree.root.comment = comment.slice(0, MAX_COMMENT);
  tree.playAll(tree.root, moves);
  return { size, variant, start: "standard", tree, names: { black, white } };
}

// valued: a node to the mover's value of its move, or null; result: of the last position in discs for black, or null.
export function ggfOf({ size, variant, names, tree }, valued, result) {
  const line = tree.line(), [root] = line;
  const rows = Array.from({ length: size }, (_, row) => root.board.slice(row * size, (row + 1) * size).replaceAll("X", "*"));
  const comments = line.filter(({ comment }) => comment).map((node) => (node.parent ? `${pathTo(node).length - 1}. ${node.move}: ` : "") + node.comment);
  const properties = [
    ["GM", "Othello"], ["PC", "Reversi Lab"], ["PB", names.black], ["PW", names.white], ["TY", `${size}${variant === "reversed" ? "a" : ""}`],
    ["RE", result === null ? "?" : signed(result)], ["C", comments.join("; ")], ["BO", [size, ...rows, root.turn === "black" ? "*" : "O"].join(" ")],
    ...line.slice(1).map((node) => [node.parent.turn === "black" ? "B" : "W", moveText(node, valued(node))]),
  ];
  return `(;${properties.filter(([, value]) => value).map(([name, value]) => `${name}[${value.replace(/[\\\]]/g, "\\$&")}]`).join("")};)\n`;
}

const signed = (value) => (value < 0 ? "" : "+") + value.toFixed(2);
const moveText = ({ move }, value) => (move === "pass" ? "PA" : move) + (value === null ? "" : `/${value.toFixed(2)}`);

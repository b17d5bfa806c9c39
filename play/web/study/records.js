// A line as a document of this page, with variations and comments, and as GGF, with the main line. It needs no browser document.

import { MAX_COMMENT, Tree, pathTo } from "../game/tree.js";

const NAME = 40; // characters that a name may have

export function documentOf({ variant, names, tree }) {
  const named = Object.entries(names ?? {}).filter(([, name]) => name).map(([colour, name]) => [colour, name.slice(0, NAME)]);
  return { variant, ...Object.fromEntries(named), ...tree.toJSON() };
}

// The line of a document from a file; throws if it is invalid.
export function lineOf(document) {
  const { board, turn, variant = "normal", black, white, moves = [] } = document;
  const fits = /^[XO-]+$/.test(board) && [16, 36, 64].includes(board.length) && /^(black|white)$/.test(turn) && /^(normal|reversed)$/.test(variant);
  if (!fits || !Array.isArray(moves)) throw new TypeError("This is not a review.");
  return { size: Math.sqrt(board.length), variant, start: "standard", tree: Tree.fromJSON({ ...document, moves }), names: { black, white } };
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
  const said = line.filter(({ comment }) => comment).map((node) => (node.parent ? `${pathTo(node).length - 1}. ${node.move}: ` : "") + node.comment);
  const properties = [
    ["GM", "Othello"], ["PC", "Reversi Lab"], ["PB", names.black], ["PW", names.white], ["TY", `${size}${variant === "reversed" ? "a" : ""}`],
    ["RE", result === null ? "?" : signed(result)], ["C", said.join("; ")], ["BO", [size, ...rows, root.turn === "black" ? "*" : "O"].join(" ")],
    ...line.slice(1).map((node) => [node.parent.turn === "black" ? "B" : "W", moveText(node, valued(node))]),
  ];
  return `(;${properties.filter(([, value]) => value).map(([name, value]) => `${name}[${value.replace(/[\\\]]/g, "\\$&")}]`).join("")};)\n`;
}

const signed = (value) => (value < 0 ? "" : "+") + value.toFixed(2);
const moveText = ({ move }, value) => (move === "pass" ? "PA" : move) + (value === null ? "" : `/${value.toFixed(2)}`);

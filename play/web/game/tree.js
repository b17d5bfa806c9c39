// A tree of moves from one position: the main line and variations. This module does not use the DOM.
//
// A node is {board, turn, legal, move, parent, children, comment}: a position and the move that led to it, null at the root. The first
// child continues the line, the others are variations. If a side must pass, the pass is the only child, and always exists.

import { after, legalMoves } from "./rules.js";

export const MAX_COMMENT = 1000; // characters

export class Tree {
  constructor(size, { board, turn }) {
    this.size = size;
    this.root = this.#node({ board, turn }, null, null);
  }

  #node(position, move, parent) {
    const { board, turn } = position;
    const node = { board, turn, legal: legalMoves(position, this.size), move, parent, children: [], comment: "" };
    if (node.legal[0] === "pass") node.children.push(this.#node(after(node, "pass", this.size), "pass", node));
    return node;
  }

  // The node after a move, created if necessary; null if the move is illegal. A pass before it is implied.
  play(node, move) {
    const existing = node.children.find((child) => child.move === move);
    if (existing) return existing;
    if (node.legal[0] === "pass") return this.play(node.children[0], move);
    if (!node.legal.includes(move)) return null;
    const child = this.#node(after(node, move, this.size), move, node);
    node.children.push(child);
    return child;
  }

  // Play the moves up to the first illegal one; return the last node.
  playAll(node, moves) {
    return walk(node, moves, (at, move) => this.play(at, move));
  }

  // The node at the end of these moves, as far as the tree has them.
  find(moves) {
    return walk(this.root, moves, (at, move) => at.children.find((child) => child.move === move));
  }

  // Make these moves from the root the main line; return the last node.
  setMain(moves) {
    return walk(this.root, moves, (at, move) => {
      const next = this.play(at, move);
      if (next) putFirst(next);
      return next;
    });
  }

  // Make the variation of a node the first child at the point where it leaves its line.
  promote(node) {
    const head = headOf(node);
    if (head) putFirst(head);
  }

  // Remove a node with its subtree, and a pass that only leads to it; return the node before.
  remove(node) {
    const { parent } = node;
    if (node.move === "pass") return parent.parent ? this.remove(parent) : node;
    parent.children = parent.children.filter((child) => child !== node);
    return parent;
  }

  // All nodes from the root through this one to the end of its line.
  line(node = this.root) {
    const nodes = pathTo(node);
    while (nodes.at(-1).children.length) nodes.push(nodes.at(-1).children[0]);
    return nodes;
  }

  // The stored and sent form: {board, turn, comment, moves}, each move {move, comment, variations in its place}.
  toJSON() {
    const { board, turn, comment } = this.root;
    return { board, turn, ...(comment && { comment }), moves: written(this.root.children[0], this.root.children.slice(1)) };
  }

  static fromJSON({ board, turn, comment, moves }) {
    const tree = new Tree(Math.sqrt(board.length), { board, turn });
    tree.root.comment = remark(comment);
    read(tree, tree.root, moves);
    return tree;
  }
}

// Go from node to node by *step*, which returns the node after a move or none; return the last node.
function walk(node, moves, step) {
  for (const move of moves) {
    const next = step(node, move);
    if (!next) break;
    node = next;
  }
  return node;
}

function putFirst(node) {
  node.parent.children.sort((a, b) => (b === node) - (a === node));
}

export const pathTo = (node) => (node ? [...pathTo(node.parent), node] : []);
export const movesTo = (node) => pathTo(node).slice(1).map(({ move }) => move);
export const sizeOf = (node) => 1 + node.children.reduce((sum, child) => sum + sizeOf(child), 0);

// The first node of the variation that a node is in; undefined on the main line.
export const headOf = (node) => {
  while (node && node.parent?.children[0] === node) node = node.parent;
  return node?.parent ? node : undefined;
};

// The variation before or after this one at the same move; the node itself if there is none.
export function sibling(node, step) {
  const all = node.parent?.children ?? [node];
  return all[Math.min(all.length - 1, Math.max(0, all.indexOf(node) + step))];
}

const remark = (comment) => String(comment ?? "").slice(0, MAX_COMMENT);

function written(first, others) {
  const moves = [];
  for (let node = first; node; [node, ...others] = node.children) {
    const variations = others.map((other) => written(other, []));
    moves.push({ move: node.move, ...(node.comment && { comment: node.comment }), ...(variations.length && { variations }) });
  }
  return moves;
}

function read(tree, node, moves) {
  for (const { move, comment, variations = [] } of moves) {
    const next = tree.play(node, move);
    if (!next) return; // an illegal move ends its line
    next.comment ||= remark(comment);
    for (const variation of variations) read(tree, next.parent, variation);
    node = next;
  }
}

// Tests of page modules without DOM, with games and ratings computed in Python (test_modules.py).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const { games, ratings } = JSON.parse(readFileSync("cases.json", "utf8"));
const load = (name) => import(`file://${process.cwd()}/${name}.js`);
const { estimate } = await load("game/rating");
const { after, initial, legalMoves } = await load("game/rules");
const { MAX_COMMENT, Tree, sibling, headOf, movesTo, pathTo, sizeOf } = await load("game/tree");
const { documentOf, ggfOf, lineOf, lineOfGame } = await load("study/records");

const newTree = (size = 4) => new Tree(size, initial(size));

test("legal moves, passes, flips and game ends equal those of the Python package", () => {
  assert.ok(games.some(({ steps }) => steps.some(({ move }) => move === "pass")));
  for (const { size, start, steps } of games) {
    let position = initial(size, start);
    for (const { board, turn, legal, move } of steps) {
      assert.deepEqual([position.board, position.turn, legalMoves(position, size)], [board, turn, legal]);
      if (move) position = after(position, move, size);
    }
  }
});

test("ratings and intervals equal the reference in Python", () => {
  for (const { results, rating, low, high, count } of ratings) {
    const found = estimate(results);
    assert.ok(Math.abs(found.rating - rating) < 1e-6);
    assert.deepEqual([found.low, found.high, found.count], [low, high, count]);
    assert.ok(low < found.rating && found.rating < high);
  }
});

test("an existing move is reused, an illegal move is refused", () => {
  const tree = newTree(), [move] = tree.root.legal, node = tree.play(tree.root, move);
  assert.equal(tree.play(tree.root, move), node);
  assert.equal(tree.play(tree.root, "a1"), null);
  assert.equal(tree.playAll(tree.root, [move, move, "a1"]), node);
  assert.deepEqual(movesTo(tree.find([move, "zz"])), [move]);
});

test("a pass is its own node, added and removed with its move", () => {
  const { size, steps } = games.find(({ steps }) => steps.some(({ move }) => move === "pass"));
  const played = new Tree(size, steps[0]), moves = steps.map(({ move }) => move).filter(Boolean), at = moves.indexOf("pass");
  const before = played.playAll(played.root, moves.slice(0, at));
  assert.deepEqual(before.children.map(({ move }) => move), ["pass"]);
  assert.equal(played.play(before, moves[at + 1]).parent.move, "pass");
  assert.equal(played.remove(before.children[0]), before.parent);
});

test("variations are promoted, stepped through and removed", () => {
  const tree = newTree(), [first, second, third] = tree.root.legal;
  const main = tree.play(tree.root, first), other = tree.play(tree.root, second), last = tree.play(tree.root, third);
  assert.deepEqual([headOf(main), headOf(tree.root), headOf(other)], [undefined, undefined, other]);
  assert.deepEqual([sibling(main, 1), sibling(main, -1), sibling(last, 1), sibling(tree.root, 1)], [other, main, last, tree.root]);
  const deeper = tree.play(other, other.legal[0]);
  tree.promote(deeper);
  assert.deepEqual(tree.line(), [tree.root, other, deeper]);
  assert.equal(tree.remove(other), tree.root);
  assert.deepEqual(tree.root.children, [main, last]);
  assert.equal(sizeOf(tree.root), 3);
});

test("the moves of a game become the main line, and variations stay", () => {
  const tree = newTree(), [first, second] = tree.root.legal;
  tree.play(tree.root, first);
  const tip = tree.setMain([second]);
  assert.deepEqual(tree.line().map(({ move }) => move), [null, second]);
  assert.equal(tree.root.children.length, 2);
  assert.deepEqual(pathTo(tip), [tree.root, tip]);
});

test("a document restores a line with variations and comments", () => {
  const tree = newTree(), names = { black: "A".repeat(50), white: null }, [first, second] = tree.root.legal;
  const node = tree.play(tree.root, first);
  tree.play(tree.root, second).comment = "or this";
  tree.play(node, node.legal[0]);
  tree.root.comment = "start";
  const document = documentOf({ variant: "reversed", names, tree }), line = lineOf(JSON.parse(JSON.stringify(document)));
  assert.deepEqual(documentOf(line), document);
  assert.deepEqual([line.size, line.variant, line.names], [4, "reversed", { black: "A".repeat(40), white: undefined }]);
});

test("a foreign document is read up to the first illegal move, or refused", () => {
  const document = { ...initial(4), moves: [{ move: "b1", comment: "x".repeat(2 * MAX_COMMENT) }, { move: "b1" }] };
  const { tree } = lineOf(document);
  assert.deepEqual([tree.line().length, tree.line()[1].comment.length], [2, MAX_COMMENT]);
  for (const change of [{ board: "X" }, { board: "?".repeat(16) }, { turn: "red" }, { variant: "other" }, { moves: {} }]) {
    assert.throws(() => lineOf({ ...document, ...change }), TypeError);
  }
});

test("a line is written as GGF with values, comments and escapes", () => {
  const position = { size: 4, variant: "reversed", ...initial(4) };
  const line = lineOfGame({ ...position, moves: ["b1", "a1"], black: "An]n", white: null, comment: "start" });
  line.tree.line()[2].comment = "why";
  const valued = ({ move }) => (move === "b1" ? -1.5 : null);
  assert.equal(ggfOf(line, valued, 3), "(;GM[Othello]PC[Reversi Lab]PB[An\\]n]TY[4a]RE[+3.00]C[start; 2. a1: why]"
    + "BO[4 ---- -O*- -*O- ---- *]B[b1/-1.50]W[a1];)\n");
  assert.match(ggfOf(line, valued, null), /RE\[\?\]/);
});

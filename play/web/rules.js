// As much of the rules as a preview needs: what a legal move turns. The server knows the rest, and has the last word.

import { indexOf } from "./board.js";

const STEPS = [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]];

export function after({ board, turn }, name, size) {
  const own = turn === "black" ? "X" : "O", opposite = turn === "black" ? "O" : "X";
  const squares = [...board], at = indexOf(name, size);
  const disc = (row, column) => (row >= 0 && row < size && column >= 0 && column < size ? board[row * size + column] : "");
  squares[at] = own;
  for (const [down, right] of STEPS) {
    const run = [];
    let row = Math.floor(at / size) + down, column = (at % size) + right;
    for (; disc(row, column) === opposite; row += down, column += right) run.push(row * size + column);
    if (disc(row, column) === own) for (const index of run) squares[index] = own;
  }
  return { board: squares.join(""), turn: turn === "black" ? "white" : "black" };
}

// As much of the rules as a preview needs: what a legal move turns. The server knows the rest, and has the last word.

import { indexOf } from "./board.js";

const STEPS = [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]];

export function after({ board, turn }, name, size) {
  const own = turn === "black" ? "X" : "O", other = turn === "black" ? "O" : "X";
  const squares = [...board];
  const at = indexOf(name, size);
  for (const [dr, dc] of STEPS) {
    const run = [];
    let row = Math.floor(at / size) + dr, column = (at % size) + dc;
    while (row >= 0 && row < size && column >= 0 && column < size && board[row * size + column] === other) {
      run.push(row * size + column);
      row += dr;
      column += dc;
    }
    const closed = row >= 0 && row < size && column >= 0 && column < size && board[row * size + column] === own;
    if (closed) for (const index of run) squares[index] = own;
  }
  squares[at] = own;
  return { board: squares.join(""), turn: turn === "black" ? "white" : "black" };
}

// The rules for variations and previews: starts, legal moves and flips. In a game the server decides.

const COLUMNS = "abcdefgh";
const STEPS = [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]];

export const nameOf = (index, size) => COLUMNS[index % size] + (Math.floor(index / size) + 1);
export const indexOf = (name, size) => COLUMNS.indexOf(name[0]) + size * (Number(name[1]) - 1);
const other = (turn) => (turn === "black" ? "white" : "black");

// The discs that *turn* flips by playing on a square; none if the move is illegal.
function flipped(board, turn, at, size) {
  const own = turn === "black" ? "X" : "O", opposite = turn === "black" ? "O" : "X", flips = [];
  const disc = (row, column) => (row >= 0 && row < size && column >= 0 && column < size ? board[row * size + column] : "");
  if (board[at] !== "-") return flips;
  for (const [down, right] of STEPS) {
    const run = [];
    let row = Math.floor(at / size) + down, column = (at % size) + right;
    for (; disc(row, column) === opposite; row += down, column += right) run.push(row * size + column);
    if (disc(row, column) === own) flips.push(...run);
  }
  return flips;
}

const squares = (board, turn, size) => [...board].map((_, at) => at).filter((at) => flipped(board, turn, at, size).length);

// The names of all legal moves: squares row by row, only the pass if there is none, nothing if neither side can move.
export function legalMoves({ board, turn }, size) {
  const own = squares(board, turn, size);
  if (own.length) return own.map((at) => nameOf(at, size));
  return squares(board, other(turn), size).length ? ["pass"] : [];
}

// The position after a legal move or a pass.
export function after({ board, turn }, name, size) {
  const discs = [...board], own = turn === "black" ? "X" : "O";
  if (name !== "pass") {
    const at = indexOf(name, size);
    for (const index of [at, ...flipped(board, turn, at, size)]) discs[index] = own;
  }
  return { board: discs.join(""), turn: other(turn) };
}

// The start of a game: white on the upper left and lower right of the four central squares, or (parallel) on both upper ones.
export function initial(size, start = "standard") {
  const discs = Array(size * size).fill("-"), at = (size / 2 - 1) * (size + 1);
  const four = start === "parallel" ? "OOXX" : "OXXO";
  [at, at + 1, at + size, at + size + 1].forEach((index, i) => { discs[index] = four[i]; });
  return { board: discs.join(""), turn: "black" };
}

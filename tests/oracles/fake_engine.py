"""A test engine for GTP and NBoard that plays the first legal move and fails on request. It needs only Python.

``fake_engine.py gtp|nboard [--fail HOW] [--after MOVES] [--once FILE] [--passes explicit|implicit] [--pids FILE]``

With ``--once`` it fails only if *FILE* does not exist, so only the first process fails.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

DIRECTIONS = [(d, r) for d in (-1, 0, 1) for r in (-1, 0, 1) if d or r]


def start(size):
    middle = size // 2
    black = {(middle - 1, middle), (middle, middle - 1)}
    white = {(middle - 1, middle - 1), (middle, middle)}
    return dict.fromkeys(black, "b") | dict.fromkeys(white, "w")


def flips(board, size, colour, row, column):
    flipped = []
    if (row, column) in board:
        return flipped
    for down, right in DIRECTIONS:
        run, r, c = [], row + down, column + right
        while (r, c) in board and board[r, c] != colour:
            run.append((r, c))
            r, c = r + down, c + right
        if (r, c) in board:
            flipped += run
    return flipped


def moves(board, size, colour):
    squares = [(r, c) for r in range(size) for c in range(size)]
    return [square for square in squares if flips(board, size, colour, *square)]


def name(square):
    return f"{'abcdefgh'[square[1]]}{square[0] + 1}"


class Game:
    def __init__(self, size):
        self.size, self.board, self.turn = size, start(size), "b"

    def play(self, colour, move, passes):
        if move == "pass":
            if passes == "implicit":
                raise ValueError("syntax error")
            legal = moves(self.board, self.size, colour)
            if colour != self.turn or legal:
                raise ValueError("illegal pass")
        else:
            if colour != self.turn and (passes == "explicit" or moves(self.board, self.size, self.turn)):
                raise ValueError("not your turn")
            square = (int(move[1]) - 1, "abcdefgh".index(move[0]))
            discs = flips(self.board, self.size, colour, *square)
            if not discs:
                raise ValueError("illegal move")
            self.board |= dict.fromkeys([square, *discs], colour)
        self.turn = "w" if colour == "b" else "b"

    def first(self, colour):
        legal = moves(self.board, self.size, colour)
        return name(legal[0]) if legal else "pass"


def say(text):
    print(text, flush=True)


class Engine:
    def __init__(self, options):
        self.options, self.made, self.game = options, 0, Game(8)

    def maybe_fail(self):
        """Fail before a move as requested by the options; return the kind of failure or None."""
        self.made += 1
        how = self.options.fail
        if how is None or self.made <= self.options.after:
            return None
        if how == "crash":
            print("Segmentation fault, or so", file=sys.stderr, flush=True)
            sys.exit(3)
        if how == "hang":
            time.sleep(1000)
        if how == "flood":
            while True:
                sys.stdout.write("nonsense\n" * 1000)
        if how == "drip":
            while True:
                say("")
                time.sleep(0.02)
        return how


class Gtp(Engine):
    def run(self):
        for line in sys.stdin:
            try:
                answer = self.answer(*line.split())
            except ValueError as error:
                say(f"? {error}\n")
            else:
                if answer is not None:
                    say(f"= {answer}\n")

    def answer(self, command, *arguments):
        if command == "quit":
            say("=\n")
            sys.exit(0)
        if command == "known_command":
            return str(arguments[0] == "set_game").lower()
        if command == "set_game":
            if " ".join(arguments) not in ("Othello", "Anti-Othello"):
                raise ValueError("unsupported game")
        elif command == "boardsize":
            self.game = Game(int(arguments[0]))
        elif command == "clear_board":
            self.game = Game(self.game.size)
        elif command == "play":
            self.game.play(arguments[0], arguments[1].lower(), self.options.passes)
        elif command == "genmove":
            return self.genmove(arguments[0])
        else:
            raise ValueError("unknown command")
        return ""

    def genmove(self, colour):
        how = self.maybe_fail()
        if how == "garbage":
            say("well, let me see")
            return None
        if how == "refuse":
            raise ValueError("I would rather not")
        wrong = {"illegal": "d4", "nonsense": "zz", "resign": "resign", "pass": "PASS"}
        if how:
            return wrong[how]
        move = self.game.first(colour)
        if move != "pass":
            self.game.play(colour, move, self.options.passes)
        return move.upper()


class NBoard(Engine):
    def run(self):
        for line in sys.stdin:
            command, *arguments = line.split()
            if command == "quit":
                return
            if command == "ping":
                say(f"pong {arguments[0]}")
            elif command == "set" and arguments[0] == "depth":
                say(f"set myname Fake{arguments[1]}")
            elif command == "set" and arguments[0] == "game":
                self.read(line)
            elif command == "go":
                self.go()

    def read(self, line):
        """Read the board and the moves of a GGF game."""
        rows = line[line.index("BO[") + 3 :].split("]")[0].split()
        self.game = Game(int(rows[0]))
        discs = {"*": "b", "O": "w"}
        self.game.board = {
            (r, c): discs[mark] for r, row in enumerate(rows[1:-1]) for c, mark in enumerate(row) if mark in discs
        }
        self.game.turn = discs[rows[-1]]
        for part in line[line.index("BO[") :].split("]")[1:]:
            if part[:2] in ("B[", "W["):
                move = part[2:].split("/")[0].lower()
                self.game.play(part[0].lower(), {"pa": "pass"}.get(move, move), "explicit")

    def go(self):
        how = self.maybe_fail()
        say("status thinking hard")
        print("nodestats 12 0.1", file=sys.stderr, flush=True)
        wrong = {"illegal": "D4", "nonsense": "ZZ", "garbage": "", "pass": "PA"}
        say(f"=== {wrong[how] if how else self.game.first(self.game.turn).upper()}/1.5/0.01")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("protocol", choices=["gtp", "nboard"])
    parser.add_argument("--fail")
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--once")
    parser.add_argument("--passes", default="explicit")
    parser.add_argument("--pids")
    options = parser.parse_args()
    if options.once:
        if Path(options.once).exists():
            options.fail = None
        Path(options.once).touch()
    if options.pids:  # also start a child process
        child = subprocess.Popen(["sleep", "1000"])
        with Path(options.pids).open("a") as stream:
            stream.write(f"{os.getpid()} {child.pid}\n")
    {"gtp": Gtp, "nboard": NBoard}[options.protocol](options).run()


if __name__ == "__main__":
    main()

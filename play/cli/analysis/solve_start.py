"""Solving a whole game from its start: a long job that shows where it is, saves its table, and goes on where it was."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from play.cli.options import checked_parent
from play.cli.output import print_json
from play.interrupt import INTERRUPTED, interruptible
from reversi_env import BLACK, Position, ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.storage.atomic import atomic_writer, exclusive_lock
from search.engine.solver import Solver
from search.engine.table import TranspositionTable

CHECKPOINT_FORMAT = "reversi-solve-1"
#: Board sizes whose whole game can be solved. On 8x8 nobody could wait for it.
SOLVABLE_SIZES = (4, 6)


def solve_from_start(
    rules: Rules,
    threads: int,
    megabytes: float,
    order: str | None,
    checkpoint: str | None,
    minutes: float,
    as_json: bool,
) -> None:
    """Run, or resume, the job; print the value for black, who moves first, or after Ctrl-C what is known of it."""
    if rules.size not in SOLVABLE_SIZES:
        raise ReversiError(f"--size {rules.size} with start: expected --size 4 or --size 6; 8x8 is not feasible")
    path = Path(checkpoint) if checkpoint else None
    checked_parent("--checkpoint", path)
    with nullcontext() if path is None else exclusive_lock(path):
        job = _Job(rules, threads, megabytes, order, path)
        interrupted = job.run(60 * minutes)
    name, result = _name(rules), job.result()
    if as_json:
        print_json(result)
    elif result["proven"]:
        print(f"{name}: {result['score']:+d} for black  {result['nodes']:,} nodes  {result['seconds']:.1f} s")
        print(" ".join(result["pv"]))
    else:
        bounds = f"between {result['lower']:+d} and {result['upper']:+d} for black"
        print(f"{name}: {bounds} after {result['nodes']:,} nodes")
    if interrupted:
        sys.exit(INTERRUPTED)


def _name(rules: Rules) -> str:
    return f"{rules.size}x{rules.size} {rules.variant}"


class _Job:
    """The solver at work in a thread of its own, watched from here.

    ``known``, of all parts of the job: bounds for black, nodes, seconds, and the line of perfect play once the bounds have met.
    """

    def __init__(
        self, rules: Rules, threads: int, megabytes: float, order: str | None, checkpoint: Path | None
    ) -> None:
        self.rules, self.checkpoint, self.table = rules, checkpoint, TranspositionTable(megabytes)
        self.solver = Solver(rules, threads=threads, table=self.table, evaluator=order)
        most = rules.square_count
        self.known: dict[str, Any] = {"lower": -most, "upper": most, "nodes": 0, "seconds": 0.0, "pv": []}
        if checkpoint is not None and checkpoint.exists():
            self._resume(checkpoint)

    @property
    def finished(self) -> bool:
        """Whether value and line are known; there is nothing left to do then, and no table to keep."""
        return _is_whole(self.known, self.rules)

    def run(self, seconds_between: float) -> bool:
        """Solve, showing the bounds, until done or interrupted (whether it was); what is known is saved in either case."""
        if self.finished:
            return False
        self.solver.load_kernels()  # here, where Ctrl-C can end a compilation
        before, window = self.known, (self.known["lower"], self.known["upper"])
        began = saved = perf_counter()

        def look() -> str:
            nonlocal saved
            self._note(before, began)
            if self.checkpoint and perf_counter() - saved > seconds_between:
                self._save()
                saved = perf_counter()
            lower, upper, nodes, seconds, _ = self.known.values()
            rate = nodes / max(seconds, 1e-9) / 1e6
            return f"value in [{lower:+d}, {upper:+d}], {nodes / 1e6:,.0f} million nodes, {rate:.1f} million/s"

        solution, interrupted = interruptible(
            lambda: self.solver.solve(Position.initial(self.rules), window=window, guess=sum(window) // 2),
            self.solver.stop,
            look,
        )
        self._note(before, began)
        self.known["pv"] = list(solution.pv) if solution.proven else []
        interrupted = interrupted and not self.finished
        if interrupted:
            then = (
                "run the same command again to resume" if self.checkpoint else "nothing is saved without --checkpoint"
            )
            print(f"reversi: interrupted, these are the bounds so far; {then}", file=sys.stderr)
        if self.checkpoint:
            self._save()
        return interrupted

    def result(self) -> dict[str, Any]:
        """Return the bounds, and the score if they have met, for black."""
        known = {name: self.known[name] for name in ("lower", "upper", "pv", "nodes", "seconds")}
        proven = known["lower"] >= known["upper"]
        score = known["lower"] if proven else None
        return {"size": self.rules.size, "variant": self.rules.variant, "score": score, "proven": proven, **known}

    def _note(self, before: dict[str, Any], began: float) -> None:
        """Add the bounds, nodes and time of this run, which *began* at a time, to the state *before* it."""
        lower, upper, nodes = self.solver.bounds()
        if nodes:  # else nothing is being solved yet
            nodes, seconds = before["nodes"] + nodes, before["seconds"] + perf_counter() - began
            self.known = {"lower": lower, "upper": upper, "nodes": nodes, "seconds": seconds, "pv": []}

    def _save(self) -> None:
        """Write the checkpoint, in place of an old one.

        A finished one has the line of perfect play instead of the table, which is hundreds of megabytes.
        """
        assert self.checkpoint is not None
        header = {"format": CHECKPOINT_FORMAT, "size": self.rules.size, "variant": self.rules.variant, **self.known}
        words = self.table.words()
        if self.finished:
            words = words[:0]
        else:
            del header["pv"]
        header["generation"] = self.table.generation
        with atomic_writer(self.checkpoint) as stream:
            np.savez(stream, header=np.array(json.dumps(header)), words=words)

    def _resume(self, path: Path) -> None:
        name = f"checkpoint {quoted(str(path), 300)}"
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as saved:
                header, words = json.loads(str(saved["header"])), saved["words"]
            kind, rules = str(header["format"]), Rules(header["size"], header["variant"])
            lower, upper, nodes, generation = (int(header[key]) for key in ("lower", "upper", "nodes", "generation"))
            line = [str(move) for move in header.get("pv", ())]
            known = {"lower": lower, "upper": upper, "nodes": nodes, "seconds": float(header["seconds"]), "pv": line}
            if "pv" in header and not _is_whole(known, rules):
                raise ValueError("a line that does not prove the value")
        except Exception as error:  # what a damaged file makes the libraries say helps nobody
            reason = f" ({error.strerror.lower()})" if isinstance(error, OSError) and error.strerror else ""
            raise ReversiError(f"{name} cannot be read{reason}: expected a whole one of reversi solve start") from None
        if kind != CHECKPOINT_FORMAT:
            raise ReversiError(f"{name} is of the format {quoted(kind)}: expected {CHECKPOINT_FORMAT!r}")
        if rules != self.rules:
            raise ReversiError(f"{name} is of {_name(rules)}: expected {_name(self.rules)}")
        self.known = known
        if self.finished:
            return
        if words.shape != self.table.words().shape or words.dtype != np.uint64:
            raise ReversiError(f"{name} has a table of {words.nbytes / 2**20:g} MiB: expected the same --table")
        self.table.words()[:] = words
        self.table.generation = generation


def _is_whole(known: dict[str, Any], rules: Rules) -> bool:
    """Return whether the value is proven and its line goes to the end of the game; an interruption may cut it short."""
    end = Position.initial(rules).play_all(known["pv"])
    return known["lower"] >= known["upper"] and end.is_over() and end.score(BLACK) == known["lower"]

"""The same searches by this checkout of the project and by another one, in turn: ratios of processor time and of nodes.

Each checkout has a process with its packages and this file: ``python versus.py`` reads requests, a line of JSON each, and
answers every one with a line. It uses only public names that all versions have.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reversi_env import Position

#: Depth of midgame searches, which do not prune by ProbCut; empties of random positions of the reversed game that are solved.
DEPTH, EMPTIES = 8, 18


class Checkout:
    """A process that searches with the packages of the checkout in *folder*."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = os.environ | {"PYTHONPATH": str(folder)}
        command = [sys.executable, "-P", __file__]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value, nodes and seconds of a request."""
        from reversi_env import ReversiError

        assert self._process.stdin
        assert self._process.stdout
        with suppress(BrokenPipeError):  # it has failed, which the missing answer shows
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ReversiError(f"checkout {str(self.folder)!r} failed: expected one that searches {request}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self._process.communicate()


def requests(positions: "list[Position]", evaluator: str | None, depth: int | None) -> list[dict[str, Any]]:
    """Return requests to search *positions* to *depth*, or to solve them if it is None."""
    return [
        {"size": one.rules.size, "variant": one.rules.variant, "boards": [one.own, one.opp]}
        | {"evaluator": evaluator, "depth": depth}
        for one in positions
    ]


def subjects() -> dict[str, list[dict[str, Any]]]:
    """Return the requests of every row of the report."""
    from benchmarks.search import ffo_problems, midgame_positions
    from reversi_env import Rules

    reversed_game, ffo = Rules(variant="reversed"), [problem.position for problem in ffo_problems()]
    return {
        f"midgame, network to depth {DEPTH}": requests(midgame_positions(), "network", DEPTH),
        f"… reversed, network to depth {DEPTH}": requests(midgame_positions(rules=reversed_game), "network", DEPTH),
        f"… 6x6, network to depth {DEPTH}": requests(midgame_positions(rules=Rules(6), longest=20), "network", DEPTH),
        f"… six-factor to depth {DEPTH}": requests(midgame_positions(), "six-factor", DEPTH),
        "FFO 40-44": requests(ffo, None, None),
        "FFO 40-44, moves ordered by the network": requests(ffo, "network", None),
        f"reversed, {EMPTIES} empties": requests(
            midgame_positions(8, reversed_game, 60 - EMPTIES, 60 - EMPTIES), "network", None
        ),
    }


def long_subjects() -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Return a row with one request per long endgame, and a short request for warm-ups."""
    from benchmarks.search import ffo_problems, long_problems

    positions = [problem.position for problem in (*long_problems(), *ffo_problems()[:1])]
    *long, warm_up = requests(positions, "network", None)
    return {f"long endgame {number}": [request] for number, request in enumerate(long, 1)}, warm_up


@contextmanager
def two_checkouts(other: Path) -> Iterator[tuple[Checkout, Checkout]]:
    from reversi_env import ReversiError

    if not (other / "search" / "__init__.py").is_file():
        raise ReversiError(f"checkout {str(other)!r}: expected the folder of a clone of the project")
    checkouts = Checkout(Path(__file__).parents[1]), Checkout(other.resolve())
    try:
        yield checkouts
    finally:
        for checkout in checkouts:
            checkout.close()


def compared(
    checkouts: tuple[Checkout, Checkout],
    requests: list[dict[str, Any]],
    rounds: int,
    warm_up: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return ratios of our results to theirs for *requests*, searched *rounds* times in turn, after a warm-up.

    The warm-up is the request *warm_up*, by default the first one.
    """
    ours, theirs = checkouts
    for checkout in checkouts:
        checkout.ask(warm_up or requests[0])
    pairs = [[(ours.ask(request), theirs.ask(request)) for request in requests] for _ in range(rounds)]
    seconds = [[median(turn[i][k]["seconds"] for turn in pairs) for i in range(len(requests))] for k in range(2)]
    nodes = [[pairs[0][i][k]["nodes"] for i in range(len(requests))] for k in range(2)]
    (our_nodes, their_nodes), (our_seconds, their_seconds) = map(sum, nodes), map(sum, seconds)
    return {
        "seconds": our_seconds,
        "nodes": our_nodes,
        "seconds_ratio": our_seconds / their_seconds,
        "nodes_ratio": our_nodes / their_nodes,
        "speed_ratio": our_nodes / our_seconds / (their_nodes / their_seconds),
        "same_values": all(ours["value"] == theirs["value"] for ours, theirs in pairs[0]),
    }


# --- in the process of a checkout -----------------------------------------------------------------


def main() -> None:
    from reversi_env import Position, Rules
    from search import Engine, Limits, Solver

    searchers: dict[tuple[Any, ...], Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        size, variant, evaluator, depth = (request[name] for name in ("size", "variant", "evaluator", "depth"))
        rules = Rules(size, variant)
        position = Position(rules, own=request["boards"][0], opp=request["boards"][1])
        key = (rules, evaluator, depth is None)
        if key not in searchers:
            solver = Solver(rules, evaluator=evaluator) if depth is None else None
            searchers[key] = solver or Engine(evaluator, rules, selective=False)
        if depth is None:
            searchers[key].table.clear()
            began = process_time()
            result = searchers[key].solve(position)
            value = result.score
        else:
            searchers[key].clear()
            began = process_time()
            result = searchers[key].search(position, Limits(depth=depth, empties_exact=0))
            value = result.value
        print(json.dumps({"value": value, "nodes": result.nodes, "seconds": process_time() - began}), flush=True)


if __name__ == "__main__":
    main()

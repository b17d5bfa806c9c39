"""Make the solved positions of the package that `reversi exam` runs on.

The 8x8 normal ones are of tournament games: WTHOR, the database of the French Othello federation. For the other games there are no
such records: theirs are of games that the package's network plays against itself, two plies deep, after random moves.

    python -m studies.evaluators.exam_positions --wthor data/wthor --folder solving     # goes on where it was stopped
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, get_args

import numpy as np

from models.evaluator import strongest_evaluator
from reversi_env import Rules, batch
from reversi_env.options import derive_seed
from reversi_env.rules import Variant
from train.arena.batch import self_play
from train.evaluation.endgames import solve_cached
from train.evaluation.exact_set import Boards, ExactSet
from train.evaluation.exam import PACKAGED, wthor_files, wthor_sample
from train.jobs.logs import save_arrays

#: Positions with each number of empty squares.
COUNTS = {10: 300, 12: 300, 14: 300, 16: 200, 18: 150, 20: 100}
#: Random plies before a game of the network's, by the size of the board, and games for each position that is wanted.
OPENING_PLIES, GAMES_EACH = {6: 8, 8: 12}, 3
WTHOR = (
    "tournament games of 1977 to 2012 in the WTHOR database of the Fédération Française d'Othello (www.ffothello.org)"
)


def own_games(rules: Rules, empties: int, count: int, seed: int = 0) -> tuple[Boards, Boards]:
    """Return one position each from *count* games of the network against itself, no two of them images of each other.

    Every number of *empties* has games of its own.
    """
    spec, games = f"{strongest_evaluator(rules)}:depth=2", GAMES_EACH * count
    game_kwargs: dict[str, Any] = {"opening_plies": OPENING_PLIES[rules.size], "seed": derive_seed(seed, empties)}
    played = self_play(spec, games, rules, **game_kwargs)
    has_empties = np.flatnonzero(rules.square_count - np.bitwise_count(played.own | played.opp) == empties)
    _, first = np.unique(played.game[has_empties], return_index=True)  # a game with a pass there has two
    own, opp = played.own[has_empties][first], played.opp[has_empties][first]
    _, first = np.unique(np.stack(batch.canonical(own, opp)[:2], axis=-1), axis=0, return_index=True)
    chosen = np.sort(first)[:count]
    assert len(chosen) == count
    return own[chosen], opp[chosen]


def solved_positions(rules: Rules, files: list[Path], folder: Path, threads: int | None) -> list[ExactSet]:
    """The positions of one game by number of empty squares, with all values."""
    recorded, sets = (rules.size, rules.variant) == (8, "normal"), []
    for empties, count in COUNTS.items():
        boards = wthor_sample(files, empties, count) if recorded else own_games(rules, empties, count)
        name, about = f"exam-{rules.size}-{rules.variant}-{empties}-{count}", {"empties": empties}
        solving_kwargs: dict[str, Any] = {"threads": threads, "progress": _print_progress}
        sets.append(solve_cached(name, rules, about, lambda boards=boards: (*boards, None), folder, **solving_kwargs))  # type: ignore[misc]
    return sets


def _print_progress(task: str, done: int, total: int) -> None:
    print(f"{task}: {done} of {total}", flush=True)


def main() -> None:
    """Solve, and write the package's files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wthor", help="folder with WTHOR files")
    parser.add_argument("--folder", type=Path, default=Path("solving"), help="where what is solved is kept")
    parser.add_argument("--threads", type=int)
    games = {f"{size}x{size}-{variant}": Rules(size, variant) for size in (8, 6) for variant in get_args(Variant)}
    parser.add_argument("--games", nargs="+", choices=games, default=list(games), help="which files to make")
    options = parser.parse_args()
    files = wthor_files(options.wthor) if "8x8-normal" in options.games else []
    for name in options.games:
        rules = games[name]
        print(name, flush=True)
        sets = solved_positions(rules, files, options.folder, options.threads)
        own, opp, values = (np.concatenate([getattr(one, name) for one in sets]) for name in ("own", "opp", "values"))
        source = WTHOR if (rules.size, rules.variant) == (8, "normal") else "games of the package's network with itself"
        PACKAGED.mkdir(exist_ok=True)
        path = PACKAGED / f"{name}.npz"
        about = np.array(json.dumps({"source": source}))
        save_arrays(path, {"own": own, "opp": opp, "values": values, "about": about}, compressed=True)
        print(f"{path}: {len(own)} positions, {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()

"""ProbCut for trained weights: measured on positions of their own games, and written into their file's record."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import models.evaluator  # noqa: F401 - registers the evaluator `network`
from models.patterns import annotate, read_weights
from reversi_env import Position, Rules
from reversi_env.errors import TrainError
from reversi_env.options import derive_seed
from search.engine import probcut_fit
from search.engine.probcut import ProbCutModel, as_table
from search.evaluators.base import file_name
from train.fitting.stages import GAMES_DEEP
from train.jobs.run import Run
from train.labels import LabelOptions
from train.labels.sampling import sample_block

#: Deepest search that is foretold, by board size, and on how many positions that is measured. 4x4 needs none: it is solved.
MAX_DEPTH = {8: 8, 6: 7}
POSITIONS = 1000
#: Empties of positions whose end is foretold: those that are soon solved.
ENDGAME_EMPTIES = (13, 18)
#: First word of the seed streams of both samples. Streams of one word belong to the stages of a bootstrap.
STREAM = 0


def add_probcut(
    path: Path,
    out: Path,
    *,
    deepest: int | None = None,
    positions: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Path, ProbCutModel]:
    """Fit ProbCut to the weights in a file; where in the folder *out* the weights now are that know it, and what was found.

    Whatever the file said about ProbCut before, in whatever form, is replaced.
    """
    rules = read_weights(path).rules
    if rules.size not in MAX_DEPTH:
        raise TrainError(f"ProbCut for the {rules.size}x{rules.size} board: expected a larger one, that one is solved")
    deepest, positions = deepest or MAX_DEPTH[rules.size], positions or POSITIONS
    with Run(out):
        name, cores = file_name("network", path), threads or os.cpu_count() or 1
        midgame = (deepest + 2, rules.square_count - 4 - max(2, rules.square_count // 8))
        sampled = own_positions(name, rules, midgame, positions, derive_seed(seed, STREAM, 0), threads)
        ends = own_positions(name, rules, ENDGAME_EMPTIES, positions, derive_seed(seed, STREAM, 1), threads)
        total = len(sampled) + len(ends)
        cuts = probcut_fit.fit(
            name,
            rules,
            deepest=deepest,
            positions=sampled,
            threads=cores,
            progress=lambda done: progress(done, total),
        )
        at_end = probcut_fit.fit_endgame(
            name, rules, ends, threads=cores, progress=lambda done: progress(len(sampled) + done, total)
        )
        cuts = replace(cuts, ends=at_end)
        return annotate(path, out, probcut=as_table(cuts)), cuts


def own_positions(
    player: str, rules: Rules, empties: tuple[int, int], count: int, seed: int, threads: int | None = None
) -> list[Position]:
    """Positions with so many *empties*, fewest and most, from games that the network plays itself."""
    low, high = empties
    whole = -(-count // (high - low + 1)) * (high - low + 1)
    asked = {"size": rules.size, "variant": rules.variant, "count": whole, "empties": empties, "seed": seed}
    own, opp = sample_block(LabelOptions.from_dict({**asked, "player": player, **GAMES_DEEP}), 0, threads=threads)
    return [Position(rules, int(a), int(b)) for a, b in zip(own[:count], opp[:count], strict=True)]

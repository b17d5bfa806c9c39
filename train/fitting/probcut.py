"""ProbCut for trained weights: fitted on positions of their own games, and written into the record of their file."""

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

#: Maximum depth that is predicted, by board size (4x4 is solved), and the number of positions of a fit.
MAX_DEPTH = {8: 8, 6: 7}
POSITIONS = 1000
#: Range of empties of the positions whose final score is predicted.
ENDGAME_EMPTIES = (13, 18)
#: First element of the seed streams of both samples; streams of one element belong to the stages of a bootstrap.
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
    """Fit ProbCut to the weights in a file; return the new weight file in the folder *out*, and the model."""
    rules = read_weights(path).rules
    if rules.size not in MAX_DEPTH:
        raise TrainError(f"ProbCut for the {rules.size}x{rules.size} board: expected 6x6 or 8x8, 4x4 is solved")
    deepest, positions = deepest or MAX_DEPTH[rules.size], positions or POSITIONS
    with Run(out):
        name, cores = file_name("network", path), threads or os.cpu_count() or 1
        midgame = (deepest + 2, rules.square_count - 4 - max(2, rules.square_count // 8))
        sampled = own_positions(name, rules, midgame, positions, derive_seed(seed, STREAM, 0), threads)
        endgames = own_positions(name, rules, ENDGAME_EMPTIES, positions, derive_seed(seed, STREAM, 1), threads)
        total = len(sampled) + len(endgames)
        model = probcut_fit.fit(
            *(name, rules),
            deepest=deepest,
            positions=sampled,
            threads=cores,
            progress=lambda done: progress(done, total),
        )
        ends = probcut_fit.fit_endgame(
            name, rules, endgames, threads=cores, progress=lambda done: progress(len(sampled) + done, total)
        )
        model = replace(model, ends=ends)
        return annotate(path, out, probcut=as_table(model)), model


def own_positions(
    player: str, rules: Rules, empties: tuple[int, int], count: int, seed: int, threads: int | None = None
) -> list[Position]:
    """Return positions with *empties*, a range, from games of the network against itself."""
    low, high = empties
    rounded = -(-count // (high - low + 1)) * (high - low + 1)  # equally many per number of empties
    options = {"size": rules.size, "variant": rules.variant, "count": rounded, "empties": empties, "seed": seed}
    own, opp = sample_block(LabelOptions.from_dict({**options, "player": player, **GAMES_DEEP}), 0, threads=threads)
    return [Position(rules, int(a), int(b)) for a, b in zip(own[:count], opp[:count], strict=True)]

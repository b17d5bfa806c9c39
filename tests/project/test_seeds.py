"""Runs with neighbouring seeds have no games in common."""

from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from reversi_env import Position, Rules, batch
from reversi_env.envs.torch_vector import TorchVectorEnv
from search import evaluators
from train.alphazero.options import SelfPlayOptions
from train.alphazero.run import SelfPlayRun
from train.arena.batch import self_play
from train.arena.match import play_match
from train.arena.openings import opening_sequence
from train.arena.options import TournamentOptions
from train.evaluation.endgames import _sample
from train.evaluation.exam import packaged_endgames
from train.evaluation.ladder import Ladder
from train.evaluation.options import EndgameOptions
from train.evaluation.policy_score import score_policy
from train.fitting.bootstrap import Bootstrap
from train.fitting.stages import BootstrapOptions, Stage
from train.labels import LabelOptions
from train.labels.sampling import sample_block
from train.rl.options import preset
from train.rl.tensor_ppo import TensorPPO
from train.tuning.objectives import WinRate

SEEDS, RULES, GAMES = range(20), Rules(), 10
NEVER_MADE = Path("never-made")


class StopJobError(Exception):
    """Stops a job after the recorded part."""


def rows(*columns):
    return [tuple(row) for row in np.column_stack(columns).tolist()]


def recorded(run, owner, name, note, times=None):
    """Return a job that collects what *note* returns for the calls of *owner*'s function *name*, and stops after *times* calls."""

    def job(seed):
        real, notes = getattr(owner, name), []

        def spy(*arguments, **options):
            notes.append(note(*arguments, **options))
            if len(notes) == times:
                raise StopJobError
            return real(*arguments, **options)

        with pytest.MonkeyPatch.context() as patch, suppress(StopJobError):
            patch.setattr(owner, name, spy)
            run(seed)
        return {key for keys in notes for key in keys}

    return job


def openings(run, times=1):
    """Return a job that collects its random openings, continued to 20 plies, where equal positions by chance are unlikely."""
    random_positions = batch.random_positions

    def note(count, plies, rules, *, seed):
        return rows(*random_positions(count, 20, rules, seed=seed)) if np.ndim(plies) == 0 else []

    return recorded(run, batch, "random_positions", note, times)


def labels(seed):
    return rows(*sample_block(LabelOptions(count=GAMES, empties=(30, 30), seed=seed, play_depth=1), 0, threads=1))


def tournament(seed):
    options = TournamentOptions(("random", "random"), games=2, seed=seed)
    positions = [Position(RULES, *boards) for boards in rows(*batch.random_positions(GAMES, 12))]
    players = [options.make_agent(player, game) for player in range(2) for game in range(3)]
    return [tuple(player.choose(position) for position in positions) for player in players]


def win_rate(seed):
    objective = WinRate(panel=("random", "random"), games=GAMES, openings=8, seed=seed, threads=1)
    for number in range(2):
        objective.losses([evaluators.get_formula("six-factor")], number)


def stages(seed):
    run = Bootstrap(NEVER_MADE, BootstrapOptions(6, seed=seed, stages=(Stage(1, 8, 100),)))
    return [run._label_options(number, run.stages[0]).seed for number in range(4)]


def ppo(seed):
    small = {"size": 4, "channels": 4, "blocks": 1, "num_envs": 64}
    TensorPPO(NEVER_MADE, preset(**small, seed=seed)).set_up()


def score(seed):
    policy = lambda boards, masks: masks.argmax(axis=1)  # noqa: E731
    score_policy(policy, games=GAMES, opponents=("random",), endgames=ENDGAMES, seed=seed)


def alphazero(seed):
    run = SelfPlayRun(NEVER_MADE, SelfPlayOptions(seed=seed, device="cpu"))
    return [run._seed(generation, part) for generation in range(3) for part in range(2)]


ENDGAMES = packaged_endgames(RULES).rows(np.arange(4))
JOBS = {
    "random positions": lambda seed: rows(*batch.random_positions(GAMES, 20, seed=seed)),
    "random openings": lambda seed: [one.moves for one in islice(opening_sequence("random", RULES, 12, seed), GAMES)],
    "labels": labels,
    "tournament": tournament,
    "stages": stages,
    "alphazero": alphazero,
    "ppo": recorded(ppo, TorchVectorEnv, "reset", lambda _, seed: range(seed, seed + 64), 1),
    "self-play": openings(lambda seed: self_play("random", GAMES, RULES, seed=seed)),
    "ladder": openings(lambda seed: Ladder(RULES, GAMES, seed, ("random",))),
    "score": openings(score),
    "win rate": openings(win_rate, None),
    "openings of a match": lambda seed: {
        game.opening.moves for game, _ in play_match("random", "random", 2, RULES, opening_plies=12, seed=seed).sides
    },
    "endgames": lambda seed: rows(*_sample(EndgameOptions(positions=2, empties=(14, 14), seed=seed), 1)[:2]),
}


#: Jobs that compile a kernel of their own, or take a second.
SLOW_JOBS = "endgames", "win rate", "labels"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_JOBS else name for name in JOBS]
)
def test_neighbouring_seeds_share_no_games(name):
    of_seeds = [set(JOBS[name](seed)) for seed in SEEDS]
    assert all(of_seeds)
    assert len(set().union(*of_seeds)) == sum(map(len, of_seeds))

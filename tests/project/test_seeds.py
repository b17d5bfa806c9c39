"""Runs with neighbouring seeds have no games in common."""

import math
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from models.evaluator import NetworkEvaluator
from reversi_env import Position, Rules, batch
from reversi_env.envs.torch_vector import TorchVectorEnv
from search import evaluators
from search.agents.book import packaged_book
from studies.game_tree import winner
from studies.game_tree.counting import positions_by_round
from studies.game_tree.kernels import ROUNDS, count_breadths
from studies.reports import report_003
from tests.oracles.strategies import random_moves, wthor_file, wthor_record
from train.alphazero.options import SelfPlayOptions
from train.alphazero.run import SelfPlayRun
from train.arena.batch import self_play
from train.arena.match import play_match
from train.arena.openings import opening_sequence
from train.arena.options import TournamentOptions
from train.book.check import sampled_rows
from train.book.options import CheckOptions
from train.evaluation.endgames import _sample
from train.evaluation.exam import packaged_endgames, packaged_sets, recorded_scores, wthor_sample
from train.evaluation.ladder import Ladder
from train.evaluation.options import EndgameOptions, PuzzleOptions
from train.evaluation.policy_score import score_policy
from train.fitting import probcut as cuts
from train.fitting.bootstrap import Bootstrap
from train.fitting.stages import BootstrapOptions, Stage
from train.labels import LabelOptions
from train.labels.sampling import sample_block
from train.rl.options import preset
from train.rl.tensor_ppo import TensorPPO
from train.tuning.objectives import LabelError, WinRate

SEEDS, RULES, GAMES = range(50), Rules(), 10
NEVER_MADE, WTHOR_GAMES, BOOK = Path("never-made"), 150, packaged_book(Rules(variant="reversed"))


class StopJobError(Exception):
    """What matters of a job is over."""


def rows(*columns):
    return [tuple(row) for row in np.column_stack(columns).tolist()]


def recorded(run, owner, name, note, times=None):
    """A job that returns what *note* says of the arguments of *owner*'s function *name*, and is stopped after so many calls."""

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


def boards_of(made):
    return rows(made.own, made.opp)


def openings(run, times=1):
    """A job that returns the random openings it begins with, continued to 20 plies, where by chance no two are alike."""
    random_positions = batch.random_positions

    def note(count, plies, rules, *, seed):
        return rows(*random_positions(count, 20, rules, seed=seed)) if np.ndim(plies) == 0 else []

    return recorded(run, batch, "random_positions", note, times)


def breadths(seed):
    moves, visits = np.zeros((2, GAMES, ROUNDS), np.int64)
    boards = (np.uint64(board) for board in (*RULES.start_boards, RULES.playable))
    count_breadths(GAMES, *boards, 1, np.uint64(seed), False, moves, visits, np.zeros(GAMES, np.int64))
    return rows(moves)


def labels(seed):
    return rows(*sample_block(LabelOptions(count=GAMES, empties=(30, 30), seed=seed, play_depth=1), 0, threads=1))


def label_error(seed):
    objective = LabelError(positions=GAMES, empties=(4, 4), seed=seed, threads=1)
    return [row for one in (objective, objective.held_out()) for row in rows(one.truth().own, one.truth().opp)]


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


def probcut(seed):
    """The seeds of both samples that ProbCut is fitted to; no game is played."""
    seeds = []

    def spy(player, rules, empties, count, sample_seed, threads=None):
        seeds.append(sample_seed)
        if len(seeds) == 2:
            raise StopJobError
        return []

    with pytest.MonkeyPatch.context() as patch, suppress(StopJobError), TemporaryDirectory() as folder:
        patch.setattr(cuts, "own_positions", spy)
        cuts.add_probcut(NetworkEvaluator().file(Rules(6)), Path(folder), seed=seed)
    return set(seeds)


def puzzles(seed):
    """Positions by the options that a puzzle's candidates are drawn by, but from quicker games and with more empty squares."""
    quick = {"count": GAMES, "shard_rows": GAMES, "block_rows": GAMES, "empties": (30, 30), "play_depth": 1}
    return rows(*sample_block(replace(PuzzleOptions(seed=seed).candidates, **quick), 0, threads=1))


ENDGAMES = packaged_endgames(RULES).rows(np.arange(4))
JOBS = {
    "random positions": lambda seed: rows(*batch.random_positions(GAMES, 20, seed=seed)),
    "random openings": lambda seed: [one.moves for one in islice(opening_sequence("random", RULES, 12, seed), GAMES)],
    "positions by round": lambda seed: rows(*positions_by_round(RULES, GAMES, [30], seed)[30][:2]),
    "breadth": breadths,
    "labels": labels,
    "label error": label_error,
    "tournament": tournament,
    "stages": stages,
    "alphazero": alphazero,
    "ppo": recorded(ppo, TorchVectorEnv, "reset", lambda _, seed: range(seed, seed + 64), 1),
    "self-play": openings(lambda seed: self_play("random", GAMES, RULES, seed=seed)),
    "ladder": openings(lambda seed: Ladder(RULES, GAMES, seed, ("random",))),
    "score": openings(score),
    "win rate": openings(win_rate, None),
    "winner": openings(lambda seed: winner.measure(winner.WinnerOptions(player="random", games=GAMES, seed=seed))),
    "openings of a match": lambda seed: {
        game.opening.moves for game, _ in play_match("random", "random", 2, RULES, opening_plies=12, seed=seed).sides
    },
    "report 003": openings(lambda seed: report_003.measure(report_003.PlyOptions(games=GAMES, seed=seed))),
    "endgames": lambda seed: rows(*_sample(EndgameOptions(positions=2, empties=(14, 14), seed=seed), 1)[:2]),
    "probcut": probcut,
    "puzzles": puzzles,
}


@pytest.mark.parametrize("name", JOBS)
def test_neighbouring_seeds_share_nothing(name):
    of_seeds = [set(JOBS[name](seed)) for seed in SEEDS]
    assert all(of_seeds)
    assert len(set().union(*of_seeds)) == sum(map(len, of_seeds))


def test_probcut_and_the_stages_of_a_bootstrap_have_streams_of_their_own():
    assert not probcut(0) & set(stages(0))


@pytest.fixture(scope="module")
def wthor(tmp_path_factory):
    """A folder with a WTHOR file of random games."""
    path = tmp_path_factory.mktemp("wthor") / "WTH_2000.wtb"
    path.write_bytes(wthor_file(*(wthor_record(random_moves(Position.initial(), seed)) for seed in range(WTHOR_GAMES))))
    return path.parent


FINITE = {
    "wthor sample": lambda folder, count, seed: rows(*wthor_sample([*folder.iterdir()], 20, count, seed)),
    "wthor scores": lambda folder, count, seed: boards_of(recorded_scores([*folder.iterdir()], count, seed)),
    "packaged": lambda _, count, seed: boards_of(*packaged_sets(RULES, positions=count, empties=(10,), seed=seed)),
    "book check": lambda _, count, seed: sampled_rows(BOOK, CheckOptions(positions=count, seed=seed)).tolist(),
}
SET_SIZES = {
    "packaged": int((packaged_endgames(RULES).empties == 10).sum()),
    "book check": int((BOOK.depth == 0).sum()),
}


@pytest.mark.parametrize("name", FINITE)
def test_samples_of_neighbouring_seeds_overlap_by_chance(name, wthor):
    """The number shared by two samples is hypergeometric, and independent between pairs of samples."""
    total, count = SET_SIZES.get(name, WTHOR_GAMES), 30
    of_seeds = [set(FINITE[name](wthor, count, seed)) for seed in SEEDS]
    assert all(len(sample) == count for sample in of_seeds)
    share = count / total
    mean, variance = count * share, count * share * (1 - share) * (total - count) / (total - 1)
    for pairs in (list(pairwise(of_seeds)), list(combinations(of_seeds, 2))):
        shared = sum(len(one & other) for one, other in pairs)
        assert shared <= len(pairs) * mean + 3 * math.sqrt(len(pairs) * variance)

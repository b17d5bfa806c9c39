"""Runs with neighbouring seeds have no games in common, and their scores vary as much as the standard error says."""

from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from play.cli.measure import match
from reversi_env import Position, Rules, batch
from reversi_env.envs.torch_vector import TorchVectorEnv
from search import agents, evaluators
from studies import exam_positions, report_003, winner
from studies.counting import positions_by_round
from studies.statistics import ROUNDS, count_breadths
from train.alphazero.options import SelfPlayOptions
from train.alphazero.run import SelfPlayRun
from train.fitting.bootstrap import Bootstrap, BootstrapOptions
from train.fitting.stages import Stage
from train.games.batch import compiled_player, play_games
from train.games.openings import Openings, opening_sequence
from train.games.options import TournamentOptions
from train.games.playing import play_match
from train.games.self_play import self_play
from train.judging.endgames import EndgameOptions, _sampled
from train.judging.exam import packaged_endgames
from train.labels import LabelOptions
from train.labels.sampling import sample_block
from train.rl.environment import TrainingEnv
from train.rl.ladder import Ladder
from train.rl.network import PolicyValueNet
from train.rl.opponents import SelfPlayPool
from train.rl.options import Architecture, preset
from train.rl.scoring import score_policy
from train.rl.tensor_ppo import TensorPPO
from train.tuning.objectives import LabelError, WinRate

SEEDS, RULES, GAMES = range(50), Rules(), 10
NEVER_MADE = Path("never-made")


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


def seed_of(*arguments, seed, **options):
    return [seed]


def openings(run, times=1):
    """A job that returns the random openings it begins with, continued to 20 plies, where by chance no two are alike."""
    random_positions = batch.random_positions

    def note(count, plies, rules, *, seed):
        return rows(*random_positions(count, 20, rules, seed=seed)) if np.ndim(plies) == 0 else []

    return recorded(run, batch, "random_positions", note, times)


# --- jobs: from a seed to what no other run may have --------------------------------------------------


def breadths(seed):
    moves, visits = np.zeros((2, GAMES, ROUNDS), np.int64)
    boards = (np.uint64(board) for board in (*RULES.start_boards, RULES.playable))
    count_breadths(GAMES, *boards, 1, np.uint64(seed), False, moves, visits, np.zeros(GAMES, np.int64))
    return rows(moves)


def labels(seed):
    return rows(*sample_block(LabelOptions(count=GAMES, empties=(30, 30), seed=seed, play_depth=1), 0, threads=1))


def label_error(seed):
    objective = LabelError(positions=GAMES, empties=(4, 4), seed=seed, threads=1)
    return [row for one in (objective, objective.checked()) for row in rows(one.truth().own, one.truth().opp)]


def tournament(seed):
    options = TournamentOptions(("random", "random"), games=2, seed=seed)
    positions = [Position(RULES, *boards) for boards in rows(*batch.random_positions(GAMES, 12))]
    players = [options.make_agent(player, game) for player in range(2) for game in range(3)]
    return [tuple(player.choose(position) for position in positions) for player in players]


def win_rate(seed):
    objective = WinRate(panel=("random", "random"), games=GAMES, openings=8, seed=seed, threads=1)
    for number in range(2):
        objective.losses([evaluators.formula("six-factor")], number)


def stages(seed):
    run = Bootstrap(NEVER_MADE, BootstrapOptions(6, seed=seed, stages=(Stage(1, 8, 100),)))
    return [run._label_options(number, run.stages[0]).seed for number in range(4)]


def pool(seed):
    made = SelfPlayPool(("six-factor:depth=1", "mobility:depth=1"), Rules(4), 0.5, 2, seed)
    for _ in range(3):
        made.add(PolicyValueNet(4, Architecture(4, 1)))
    words = [one.words.bit_generator.state["state"]["state"] for one in made.baselines]
    return [*words, *(one.generator.initial_seed() for one in made.selves)]


def tensor_ppo(seed):
    small = {"size": 4, "algorithm": "tensor-ppo", "channels": 4, "blocks": 1, "envs": 64}
    TensorPPO(NEVER_MADE, preset(**small, seed=seed)).set_up()


def score(seed):
    policy = lambda boards, masks: masks.argmax(axis=1)  # noqa: E731
    score_policy(policy, games=GAMES, opponents=("random",), endgames=ENDGAMES, seed=seed)


def alphazero(seed):
    run = SelfPlayRun(NEVER_MADE, SelfPlayOptions(seed=seed, device="cpu"))
    return [run._seed(generation, part) for generation in range(3) for part in range(2)]


def exam_seeds(empties):
    sample = partial(exam_positions.own_games, RULES, empties, 1)
    return recorded(sample, exam_positions, "self_play", seed_of, 1)


ENDGAMES = packaged_endgames(RULES).rows(np.arange(4))
JOBS = {
    "random positions": lambda seed: rows(*batch.random_positions(GAMES, 20, seed=seed)),
    "random openings": lambda seed: [one.moves for one in islice(opening_sequence("random", RULES, 12, seed), GAMES)],
    "positions by round": lambda seed: rows(*positions_by_round(RULES, GAMES, [30], seed)[30]),
    "breadth": breadths,
    "labels": labels,
    "label error": label_error,
    "tournament": tournament,
    "stages": stages,
    "pool": pool,
    "alphazero": alphazero,
    "ppo": lambda seed: TrainingEnv(64, SelfPlayPool(("random",), Rules(4), 0.5, 2, seed)).seed(seed),
    "tensor ppo": recorded(tensor_ppo, TorchVectorEnv, "reset", lambda _, seed: range(seed, seed + 64), 1),
    "self-play": openings(lambda seed: self_play("random", GAMES, RULES, seed=seed)),
    "ladder": openings(lambda seed: Ladder(RULES, GAMES, seed, ("random",))),
    "score": openings(score),
    "win rate": openings(win_rate, None),
    "winner": openings(lambda seed: winner.measure(winner.WinnerOptions(player="random", games=GAMES, seed=seed))),
    "match": recorded(
        lambda seed: match._play_here(("random", "random"), {}, 2, RULES, 0, seed, None), agents, "make", seed_of, 2
    ),
    "openings of a match": lambda seed: {
        game.opening.moves for game, _ in play_match("random", "random", 2, RULES, opening_plies=12, seed=seed).sides
    },
    "report 003": openings(lambda seed: report_003.measure(report_003.PlyOptions(games=GAMES, seed=seed))),
    "endgames": lambda seed: rows(*_sampled(EndgameOptions(positions=2, empties=(14, 14), seed=seed), 1)[:2]),
    "exam positions": lambda seed: set().union(*(exam_seeds(empties)(seed) for empties in range(10, 14))),
}


@pytest.mark.parametrize("name", JOBS)
def test_neighbouring_seeds_share_nothing(name):
    """By chance no two of these games are alike."""
    of_seeds = [set(JOBS[name](seed)) for seed in SEEDS]
    assert all(of_seeds)
    assert len(set().union(*of_seeds)) == sum(map(len, of_seeds))


# --- scores -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("pairing", [("greedy", "random"), ("six-factor:depth=1", "mobility:depth=1")])
def test_scores_of_neighbouring_seeds_vary_by_their_standard_error(pairing):
    """Standard deviations over 40 seeds in a row, the mean of five such rows: of one alone 11 % are chance."""
    rules, rows_of_seeds = Rules(6), np.arange(200).reshape(5, 40)
    players = [compiled_player(spec, rules) for spec in pairing]

    def match(seed):
        results = play_games(*players, Openings.random(rules, 100, 6, seed), rules, seed=seed)
        return results.score, results.score_error

    scores, errors = np.array([[match(int(seed)) for seed in seeds] for seeds in rows_of_seeds]).transpose(2, 0, 1)
    measured, reported = (np.sqrt(squares.mean()) for squares in (scores.var(axis=1, ddof=1), errors**2))
    assert measured == pytest.approx(reported, rel=0.15)

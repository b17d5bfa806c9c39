"""Positions of a dataset: uniform by empties, unique up to symmetry, independent of threads and order."""

import numpy as np
import pytest

from reversi_env import Rules, batch
from reversi_env.errors import TrainError
from search import evaluator
from search.engine.threads import make_thread_states
from search.evaluators.registry import get_evaluator
from tests.oracles.search import canonical_rows, play_game
from train.arena.batch import EvaluatorPlayer, self_play
from train.jobs.processes import LocalExecutor
from train.kernels.noisy_games import play_games
from train.labels import LabelOptions, generate, sample_positions, sampling
from train.labels.generation import label_positions
from train.labels.jobs import LabelWorker, PlayJob
from train.labels.sampling import SamplingPlayers, _Sampling, game_settings, sample_block

GAMES = [Rules(size, variant) for size in (6, 8) for variant in ("normal", "reversed")]
IN_BLOCKS = {"count": 3001, "empties": (7, 13), "shard_rows": 400, "block_rows": 1000, "play_depth": 1}


def options_for(rules, **changes):
    return LabelOptions(size=rules.size, variant=rules.variant, **changes)


def all_positions(options, **how):
    boards = [sample_positions(options, shard, **how) for shard in range(options.shards)]
    return [np.concatenate(side) for side in zip(*boards, strict=True)]


SETTINGS = {
    "noise": {"play_depth": 1, "temperature": (0.0,), "noise": (0.0, 0.1, 0.5), "random_share": 0.2},
    "temperature": {"play_depth": 1, "temperature": (0.0, 1.0, 4.0), "prefixes": (24,)},
    "depth 2": {"play_depth": 2, "temperature": (0.5, 2.0), "prefixes": (1, 10)},
    "best moves": {"play_depth": 2, "temperature": (0.0,), "noise": (0.0,), "prefixes": (12,), "random_share": 0.0},
}


@pytest.mark.parametrize(
    ("rules", "how"),
    [  # the reference takes a second per game of depth 2 on 8x8
        pytest.param(rules, how, id=f"{name}-{rules}")
        for name, how in SETTINGS.items()
        for rules in GAMES
        if rules.size == 6 or how["play_depth"] == 1
    ],
)
def test_games_equal_a_plain_reference(rules, how):
    options = options_for(rules, empties=(2, 20), seed=2**63 + 5, **how)
    evaluator, games, reached = get_evaluator("six-factor"), (16 if options.play_depth == 1 else 8) // rules.size, 0
    own, opp, key = (np.zeros((games, options.strata), np.uint64) for _ in range(3))
    play_games(
        *(make_thread_states(rules), evaluator.record(rules), *(np.uint64(board) for board in rules.start_boards)),
        *(game_settings(options), np.uint64(options.seed), np.uint64(10)),
        *(np.ones(options.strata, np.bool_), own, opp, key),
    )
    for i in range(games):
        positions, prefix = play_game(options, evaluator, 10 + i)
        for column in range(options.strata):
            position = positions.get(2 + column)
            boards = (0, 0) if position is None else (position.own, position.opp)
            assert (int(own[i, column]), int(opp[i, column])) == boards
            assert (key[i, column] == 0) == (position is None)
        assert all(empties < rules.square_count - 4 - prefix for empties in positions)  # none of the random opening
        reached += len(positions)
    assert reached > games * 6


def test_only_wanted_strata_are_recorded():
    """The games stay the same: the strata that a dataset still needs must not change its positions."""
    options = LabelOptions(size=6, empties=(4, 20))
    rules, nets = options.rules, get_evaluator("six-factor").record(options.rules)
    taken = []
    for wanted in (np.ones(options.strata, np.bool_), np.arange(options.strata) % 3 == 2):
        own, opp, key = (np.zeros((50, options.strata), np.uint64) for _ in range(3))
        start = (np.uint64(board) for board in rules.start_boards)
        games = (game_settings(options), np.uint64(1), np.uint64(0), wanted)
        play_games(make_thread_states(rules), nets, *start, *games, own, opp, key)
        taken.append((own, key))
    (all_own, all_keys), (own, keys) = taken
    assert (own[:, 2::3] == all_own[:, 2::3]).all()
    assert (keys[:, 2::3] == all_keys[:, 2::3]).all()
    assert not np.delete(keys, np.s_[2::3], axis=1).any()


@pytest.mark.parametrize("rules", [*GAMES, Rules(4)], ids=str)
def test_a_dataset_is_uniform_and_unique_up_to_symmetry(rules):
    small = {"count": 90, "empties": (5, 7), "shard_rows": 20, "block_rows": 40}
    options = options_for(rules, **(small if rules.size == 4 else IN_BLOCKS))
    assert options.blocks > 2
    own, opp = all_positions(options)
    assert len(own) == options.count
    assert len(set(canonical_rows(own, opp))) == options.count
    empties = rules.square_count - np.bitwise_count(own | opp)
    assert (empties == options.empties[0] + np.arange(options.count) % options.strata).all()
    batch.checked_boards(own, opp, rules)
    assert not batch.is_over(own, opp, rules).any()


def test_threads_and_shard_order_do_not_matter():
    options = LabelOptions(**IN_BLOCKS)
    own, opp = all_positions(options, threads=1)
    for block in reversed(range(options.blocks)):
        rows = slice(block * 800, min(block * 800 + 800, options.count))
        block_own, block_opp = sample_block(options, block, threads=2)
        assert (block_own == own[rows]).all()
        assert (block_opp == opp[rows]).all()
    one_own, one_opp = sample_positions(options, 5)
    assert (one_own == own[2000:2400]).all()
    assert (one_opp == opp[2000:2400]).all()


def test_an_evaluator_object_can_be_the_player():
    options = LabelOptions(count=200)
    changed = get_evaluator("six-factor").with_weights(mobility_weight=-500)
    (named, _), (same, _), (other, _) = (
        sample_positions(options, 0, player=player) for player in (None, get_evaluator("six-factor"), changed)
    )
    assert (named == same).all()
    assert not (named == other).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::search.evaluators.function.SlowEvaluatorWarning")
def test_an_error_of_the_player_is_raised():
    @evaluator
    def broken(position):
        """Raise an error."""
        raise ValueError("mine")

    options = LabelOptions(size=6, count=20, empties=(4, 8), play_depth=1)
    for _ in range(2):
        with pytest.raises(ValueError, match="mine"):
            sample_positions(options, 0, player=broken)
        with pytest.raises(ValueError, match="mine"):
            self_play(EvaluatorPlayer(broken, Rules(6)), 2, Rules(6))
        worker = LabelWorker(options, label_positions, "cpu", 1)
        worker._players = SamplingPlayers(options, broken)
        with pytest.raises(ValueError, match="mine"):
            worker(PlayJob(0, 0, 128, 0, np.ones(options.strata, np.bool_)))


@pytest.mark.parametrize("executor", [None, LocalExecutor(0)], ids=["threads", "jobs"])
def test_played_games_are_not_repeated_on_resumption(tmp_path, monkeypatch, executor):
    monkeypatch.setattr(sampling, "MAX_GAMES", 256)
    options = LabelOptions(size=6, count=4500, empties=(6, 8), shard_rows=1500, play_depth=1)
    generate(options, tmp_path / "whole")
    rounds_played, rounds = [], _Sampling.play_round

    def interrupt(doing, done, total):
        if doing == "sampling" and len(rounds_played) == 2:
            raise KeyboardInterrupt

    def play_round(self, play):
        rounds_played.append(self.games)
        rounds(self, play)

    monkeypatch.setattr(_Sampling, "play_round", play_round)
    with pytest.raises(KeyboardInterrupt):
        generate(options, tmp_path / "cut", executor=executor, progress=interrupt)
    assert [path.name for path in (tmp_path / "cut").glob("games-*")] == ["games-0000.safetensors"]
    generate(options, tmp_path / "cut", executor=executor)
    assert rounds_played == [256 * number for number in range(len(rounds_played))]
    assert len(rounds_played) > 3
    whole, cut = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "cut"))
    assert cut == whole


def test_too_many_positions_and_missing_shards_are_refused():
    with pytest.raises(TrainError, match="9 empties"):
        sample_positions(LabelOptions(size=4, count=5000, empties=(9, 9)), 0)
    with pytest.raises(TrainError, match="shard=3"):
        sample_positions(LabelOptions(count=250, shard_rows=100), 3)


def test_fewer_positions_are_returned_if_allowed():
    options = LabelOptions(size=4, count=3000, empties=(4, 9), play_depth=1, noise=(1.0,), prefixes=(1,))
    own, opp = sample_block(options, 0, fewer=True)
    empties = 16 - np.bitwise_count(own | opp)
    counts = [int((empties == e).sum()) for e in range(4, 10)]
    assert counts[0] == 500
    assert 0 < counts[-1] < 500
    assert len(np.unique(canonical_rows(own, opp), axis=0)) == len(own)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 4, "empties": (5, 12)}, "empties=5-12"),
        *(({"noise": (0.1,) * 65}, "at most 64"), ({"player": "six-facto"}, "six-facto")),
        ({"labeller": "greedy"}, "greedy"),
        ({"labeller": "discs:time=1"}, "'discs:time=1': option 'time'"),
        ({"labeller": "discs:depth=0"}, "'discs:depth=0': depth='0'"),
    ],
)
def test_invalid_options_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        LabelOptions(**changes)

"""Batch functions equal `Position` one by one, on one thread and on all, and refuse bad arrays."""

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.kernels.bitboard import PASS_SQUARE

CASES = [Rules(4), Rules(6, "reversed"), Rules(8), Rules(8, start="parallel")]
LONGEST = {4: 10, 6: 28, 8: 56}


@pytest.fixture(params=CASES, ids=str)
def rules(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["serial", "parallel"])
def parallel(request):
    return request.param


@pytest.fixture
def boards(rules):
    return batch.random_positions(300, np.arange(300) % LONGEST[rules.size], rules, seed=11)


def positions(boards, rules):
    return [Position(rules, int(own), int(opp)) for own, opp in zip(*boards, strict=True)]


def test_questions_about_positions(boards, rules, parallel):
    single = positions(boards, rules)
    assert batch.legal_moves(*boards, rules, parallel=parallel).tolist() == [p.legal_board() for p in single]
    assert batch.is_over(*boards, rules, parallel=parallel).tolist() == [p.is_over() for p in single]
    assert batch.frontier(*boards, rules, parallel=parallel).tolist() == [p.frontier() for p in single]
    assert batch.stable_discs(*boards, rules, parallel=parallel).tolist() == [p.stable() for p in single]
    assert batch.position_hash(*boards, parallel=parallel).tolist() == [p.hash64() for p in single]
    own, opp, symmetry = batch.canonical(*boards, parallel=parallel)
    assert [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)] == [p.canonical() for p in single]
    assert [p.transformed(int(k)) for p, k in zip(single, symmetry, strict=True)] == [p.canonical() for p in single]
    assert batch.image_hash(*boards).tolist() == [p.canonical().hash64() for p in single]


def test_children_and_play(boards, rules, parallel):
    children = batch.expand(*boards, rules, parallel=parallel)
    expected = [
        (index, PASS_SQUARE if action == rules.pass_action else rules.square_of(action), child.own, child.opp)
        for index, position in enumerate(positions(boards, rules))
        for action in position.legal_actions()
        for child in [position.play(action)]
    ]
    assert list(zip(*(column.tolist() for column in children), strict=True)) == expected
    own, opp = boards[0][children.parent], boards[1][children.parent]
    assert np.array_equal(
        np.stack(batch.play(children.square, own, opp, rules, parallel=parallel)),
        np.stack([children.own, children.opp]),
    )
    turned = batch.flips(children.square, own, opp, rules, parallel=parallel)
    assert np.array_equal(turned, opp & ~children.own)
    assert (turned[children.square != PASS_SQUARE] != 0).all()


def test_nothing_turns_by_a_move_off_the_board():
    own, opp = np.array([1 << 18], np.uint64), np.array([1 << 9], np.uint64)  # a line to the frame's corner
    assert batch.flips(0, own, opp, Rules(6)).tolist() == [0]
    assert batch.flips(0, own, opp).tolist() == [1 << 9]


def test_no_game_is_longer_than_two_plies_a_square():
    for plies in (2**63, 129, np.array([1, 2**63], np.uint64)):
        with pytest.raises(ReversiError, match=r"plies .*"):
            batch.random_positions(2, plies)
    assert Position.initial().perft(10**30) == 0


def test_final_scores(rules, parallel):
    """Random games played to their end have the score that `Position` gives them."""
    own, opp = batch.random_positions(200, LONGEST[rules.size], rules, seed=1)
    for _ in range(40):
        children = batch.expand(own, opp, rules)
        parents, first = np.unique(children.parent, return_index=True)
        own[parents], opp[parents] = children.own[first], children.opp[first]
    assert batch.is_over(own, opp, rules).all()
    expected = [p.score() for p in positions((own, opp), rules)]
    assert batch.final_scores(own, opp, rules, parallel=parallel).tolist() == expected
    assert len(set(expected)) > 3


def test_random_positions_are_reproducible_and_of_the_asked_length(rules):
    one = batch.random_positions(500, 6, rules, seed=3)
    assert np.array_equal(one, batch.random_positions(500, 6, rules, seed=3, parallel=True))
    assert not np.array_equal(one, batch.random_positions(500, 6, rules, seed=4))
    discs = np.bitwise_count(one[0] | one[1])
    assert discs.max() == 10
    assert (discs == 10).mean() > (0.5 if rules.size == 4 else 0.99)


def test_random_play_is_uniform():
    """The four first moves are equally likely: chi-square below the 0.1 % point of three degrees of freedom."""
    _own, opp = batch.random_positions(40_000, 1, seed=2)
    _, counts = np.unique(opp, return_counts=True)
    assert counts.size == 4
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 16.27


def test_random_games_have_the_known_mean_length():
    """Random 8x8 games last about 60.4 plies with passes; serial and parallel play the same games."""
    plies = batch.random_plies(20_000, seed=9)
    assert plies == batch.random_plies(20_000, seed=9, parallel=True)
    assert abs(plies / 20_000 - 60.4) < 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batch.legal_moves([1, 2], [4]), "own has 2 boards and opp 1"),
        (lambda: batch.legal_moves([[1]], [[2]]), "one-dimensional"),
        (lambda: batch.legal_moves([1.5], [2.0]), "expected uint64"),
        (lambda: batch.legal_moves([1], [1]), "discs of both colours on one square in position 0"),
        (lambda: batch.legal_moves([1], [2], Rules(6)), "off the 6x6 board"),
        (lambda: batch.play([0], *batch.start(1)), "square 0 is illegal in position 0"),
        (lambda: batch.play([64], *batch.start(1)), "square 64 is illegal"),
        (lambda: batch.play([65], *batch.start(1)), "square 65"),
        (lambda: batch.play([19, 19], *batch.start(3)), "expected 3 integers"),
        (lambda: batch.random_positions(1, -1), "plies -1"),
        (lambda: batch.random_positions(3, 2.9), "plies 2.9"),
        (lambda: batch.random_positions(3, [1, 2]), "one for each of 3 positions"),
        (lambda: batch.random_positions(-1, 2), "count=-1"),
        (lambda: batch.random_positions(1, 2, seed=1.7), "seed=1.7"),
        (lambda: batch.random_positions(1, 2, 6), "expected Rules"),
        (lambda: batch.random_plies(1, seed=-1), "seed=-1"),
        (lambda: batch.random_positions(1, 70), "no random game of 70 plies"),
    ],
)
def test_bad_arrays_are_named(call, message):
    with pytest.raises(ReversiError, match=message):
        call()

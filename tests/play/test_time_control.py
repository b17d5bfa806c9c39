"""The time of each move on a clock, and the combination of limits in a `Thinker`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from play.thinker import Thinker, default_agent
from play.time_control import MIN_SECONDS, OVERHEAD_SECONDS, TimeControl
from reversi_env import Position, ReversiError, Rules
from reversi_env.rules import BLACK
from tests.oracles.strategies import reachable_positions


def positions_of_black(size):
    """Yield black's positions in the game of first legal moves."""
    position = Position.initial(Rules(size))
    while not position.is_over():
        if position.turn == BLACK and not position.must_pass():
            yield position
        position = position.play(position.legal_moves()[0])


LASTING = [TimeControl(seconds) for seconds in (1.0, 3.0, 20.0, 60.0, 600.0)]
LASTING += [TimeControl(20.0, increment=3.0), TimeControl(0.0, increment=2.0)]


@pytest.mark.parametrize("size", [4, 6, 8])
@pytest.mark.parametrize("clock", LASTING)
@pytest.mark.parametrize(("seconds", "part"), [(TimeControl.usual_seconds, 10), (TimeControl.max_seconds, 50)])
def test_moves_with_full_time_never_exhaust_the_clock(size, clock, seconds, part):
    for position in positions_of_black(size):
        share = seconds(clock, position)
        assert MIN_SECONDS <= share <= max(clock.left, MIN_SECONDS)
        clock = clock.after(share + OVERHEAD_SECONDS / part)
    assert clock.left > 0


def test_opening_gets_little_time_and_late_midgame_most():
    clock, shares = TimeControl(600.0), {}
    for position in positions_of_black(8):
        shares[position.empties] = clock.usual_seconds(position)
        clock = clock.after(shares[position.empties])
    opening = max(share for empties, share in shares.items() if empties > 52)
    midgame = [share for empties, share in shares.items() if 30 < empties <= 40]
    solving = max(share for empties, share in shares.items() if 18 <= empties <= 30)
    assert 2 * opening < min(midgame)
    assert max(midgame) < 1.5 * min(midgame)
    assert max(midgame) < solving


AT_MOST = [st.floats(0, 1e6), st.floats(0, 1e4), st.integers(0, 50), st.integers(0, 50), st.floats(0, 1e4)]


@given(reachable_positions(), *AT_MOST)
def test_time_shares_stay_within_bounds(position, left, period, moves, in_period, increment):
    clock = TimeControl(left, period, moves, in_period, increment)
    share, most = clock.usual_seconds(position), clock.max_seconds(position)
    per_move = period / moves + increment if moves else 0  # the period may begin during the move
    assert MIN_SECONDS <= share <= most <= max(left, per_move, MIN_SECONDS)
    after = clock.after(share)
    assert after.left >= 0
    assert after.in_period <= max(moves, in_period)


def test_periods_restart():
    clock = TimeControl(10.0, 30.0, 2)
    clock = clock.after(4.0)
    assert (clock.left, clock.in_period) == (6.0, 0)
    clock = clock.after(8.0)  # two seconds of the first period and one of its moves are used
    assert (clock.left, clock.in_period) == (28.0, 1)
    clock = clock.after(5.0)
    assert (clock.left, clock.in_period) == (30.0, 2)


def test_an_increment_is_added_once_per_move():
    assert [TimeControl(10.0, increment=2.0).after(seconds).left for seconds in (3.0, 11.0)] == [9.0, 2.0]


def test_invalid_clocks_are_refused():
    for arguments in ((-1.0,), (float("nan"),), (1.0, -1.0), (1.0, 1.0, -1)):
        with pytest.raises(ReversiError, match="clock"):
            TimeControl(*arguments)


@pytest.mark.parametrize(
    ("spec", "options", "asked", "expected"),
    [
        *(("six-factor", {}, {}, (1.0, None)), ("six-factor", {}, {"time": 5.0}, (5.0, None))),
        *(("six-factor", {}, {"depth": 3}, (None, 3)), ("six-factor:time=2", {}, {"time": 5.0}, (2.0, None))),
        ("six-factor:time=2", {}, {"depth": 4}, (2.0, 4)),
        ("six-factor:depth=6", {}, {"depth": 9, "time": 1.0}, (1.0, 6)),
        ("six-factor:time=2", {}, {"time": 5.0, "soft": 1.0}, (2.0, None)),
        ("six-factor", {"depth": 3}, {}, (None, 3)),
        ("six-factor:depth=2", {"depth": None}, {}, (None, 2)),
    ],
)
def test_limits_of_spec_and_clock_are_combined(spec, options, asked, expected):
    limits = Thinker(spec, **options)._limits(asked.get("time"), asked.get("depth"), asked.get("soft"))
    assert (limits.time, limits.depth) == expected
    assert limits.soft == asked.get("soft")


def test_the_default_agent_plays_every_board_and_variant():
    for size in (4, 6, 8):
        for variant in ("normal", "reversed"):
            Thinker(default_agent(Rules(size, variant))).check(Rules(size, variant))


def test_thinking_in_a_finished_game_is_an_error():
    with pytest.raises(ReversiError, match="is over"):
        Thinker("random").think(Position.from_text("X" * 16))

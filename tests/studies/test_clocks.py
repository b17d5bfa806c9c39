"""Games under clocks: each side keeps to its own, and both ways of sharing it out are played."""

import pytest

from play.time_control import TimeControl
from reversi_env import Position, Rules
from reversi_env.rules import BLACK, WHITE
from search.engine.engine import Engine
from studies.players.clocks import WAYS, equal_shares, play_game


@pytest.mark.parametrize("way", WAYS)
def test_a_game_under_clocks(way):
    engines = [Engine("six-factor", Rules(4), megabytes=1) for _ in range(2)]
    ways = {BLACK: (WAYS[way], engines[0]), WHITE: (equal_shares, engines[1])}
    score, clocks = play_game(ways, 100.0, Position.initial(Rules(4)))
    assert -16 <= score <= 16
    assert all(0 < clock.left < 100 for clock in clocks.values())


def test_equal_shares_are_equal():
    position, clock = Position.initial(), TimeControl(600.0)
    first = equal_shares(clock, position).time
    clock = clock.after(first)
    assert first == pytest.approx(equal_shares(clock, position.play("d3").play("c3")).time, rel=0.02)

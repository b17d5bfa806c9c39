"""Options check themselves by what their fields say, and come back from JSON as they were."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from reversi_env.errors import RulesError, TrainError
from reversi_env.options import GameOptions, option, option_fields


@dataclass(frozen=True)
class Example(GameOptions):
    """One field of each sort."""

    count: int = option(3, "how many", low=1, high=10)
    rounds: int = option(1, low=1)
    rate: float = option(0.5, low=0.0, high=1e-3 * 1000)
    games: int = option(2, low=2, high=10, even=True)
    depth: int | None = option(None, low=1, high=9)
    fast: bool = True
    loss: Literal["plain", "structural"] = "plain"
    names: tuple[str, ...] = ("a",)
    range: tuple[int, int] = option((1, 2), low=0, high=60)
    shares: tuple[float, ...] = option((0.5,), low=0, high=1)
    temperature: float = option(1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 11}, "count=11: expected an integer from 1 to 10"),
        ({"count": True}, "count=True: expected an integer from 1 to 10"),
        ({"count": None}, "count=None: expected an integer from 1 to 10"),
        ({"rounds": 0}, "rounds=0: expected an integer, 1 or more"),
        ({"rate": float("nan")}, "rate=nan: expected a number from 0 to 1"),
        ({"depth": 1.0}, "depth=1.0: expected an integer from 1 to 9"),
        ({"fast": 1}, "fast=1: expected True or False"),
        ({"loss": "huber"}, "loss='huber': expected one of plain, structural"),
        ({"names": "abc"}, "names='abc': expected one or more texts"),
        ({"range": [1]}, r"range=(1,): expected two integers from 0 to 60"),
        ({"shares": [0.5, 2]}, "shares=(0.5, 2): expected one or more numbers from 0 to 1"),
        ({"shares": ()}, "shares=(): expected one or more numbers from 0 to 1"),
        ({"games": 3}, "games=3: expected an even number from 2 to 10"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(changes, message):
    with pytest.raises(TrainError) as error:
        Example(**changes)
    assert str(error.value) == message


def test_integers_of_numpy_become_those_of_python():
    assert type(Example(count=np.int64(3)).count) is int


def test_options_come_back_from_json_and_tell_what_they_are():
    options = Example(size=6, depth=4, names=("x", "y"))
    assert Example.from_dict(json.loads(json.dumps(options.as_dict()))) == options
    assert Example.from_dict({"temperature": 3.0}).temperature == 3.0
    with pytest.raises(RulesError):
        Example(size=5)
    with pytest.raises(TrainError, match="cuont.*did you mean 'count'"):
        Example.from_dict({"cuont": 1})
    by_name = {one.name: one for one in option_fields(Example)}  # what a command line needs
    assert (by_name["count"].help, by_name["count"].default, by_name["count"].type) == ("how many", 3, int)
    assert (by_name["depth"].optional, by_name["loss"].choices) == (True, ("plain", "structural"))

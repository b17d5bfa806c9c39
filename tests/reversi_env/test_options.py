"""Options: validation by the declarations of their fields, and JSON round trips."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from reversi_env.errors import RulesError, TrainError
from reversi_env.options import GameOptions, option, option_fields


@dataclass(frozen=True)
class Example(GameOptions):
    """One field of each type."""

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
    ("name", "value", "limit"),
    [
        *(("count", value, "10") for value in (11, True, None)),
        *(
            ("rounds", 0, "1"),
            ("rate", float("nan"), "1"),
            ("depth", 1.0, "9"),
            ("fast", 1, "True"),
            ("games", 3, "10"),
        ),
        *(("loss", "huber", "plain, structural"), ("names", "abc", ""), ("range", (1,), "60")),
        *(("shares", value, "0 to 1") for value in ((0.5, 2), ())),
    ],
)
def test_invalid_value_error_names_value_and_expectation(name, value, limit):
    with pytest.raises(TrainError, match=re.escape(f"{name}={value!r}: expected ") + f".*{limit}"):
        Example(**{name: value})


def test_numpy_integers_become_python_integers():
    assert type(Example(count=np.int64(3)).count) is int


def test_options_round_trip_json_and_list_their_fields():
    options = Example(size=6, depth=4, names=("x", "y"))
    assert Example.from_dict(json.loads(json.dumps(options.as_dict()))) == options
    assert Example.from_dict({"temperature": 3.0}).temperature == 3.0
    with pytest.raises(RulesError):
        Example(size=5)
    with pytest.raises(TrainError, match="cuont.*did you mean 'count'"):
        Example.from_dict({"cuont": 1})
    by_name = {one.name: one for one in option_fields(Example)}  # used by the command line
    assert (by_name["count"].help, by_name["count"].default, by_name["count"].type) == ("how many", 3, int)
    assert (by_name["depth"].optional, by_name["loss"].choices) == (True, ("plain", "structural"))

"""Options of a command that are the fields of a class of options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import pytest
import typer

from play.cli.job_options import given, options_from
from play.cli.usage import Application, UsageError, complaint
from reversi_env.options import GameOptions, option


@dataclass(frozen=True)
class Example(GameOptions):
    """One field of each sort, and one that is no option of the command line."""

    count: int = option(3, "how many", low=1, high=10)
    learning_rate: float = option(0.5, "step of the optimiser", low=0, high=1)
    depth: int | None = option(None, "plies", low=1, high=9)
    fast: bool = option(False, "no care")
    loss: Literal["plain", "structural"] = option("plain", "which errors count")
    opponents: tuple[str, ...] = option(("random",), "who plays")
    empties: tuple[int, int] = option((1, 2), "empty squares", low=0, high=60)
    noise: tuple[float, ...] = option((0.5, 1.0), "shares of random moves", low=0, high=1)
    secret: int = 5


@pytest.fixture
def run(capsys):
    """Run a command over `Example`: the values of its options, by field."""

    def run(*arguments, **how):
        app = Application(add_completion=False)

        @app.command()
        @options_from(f"{__name__}:Example", named={"opponents": "opponent"}, **how)
        def job(context: typer.Context, word: str, flag: bool = False) -> None:
            print(json.dumps([given(context), word]))

        app([*map(str, arguments), "--", "--rate"], standalone_mode=False)
        values, word = json.loads(capsys.readouterr().out)
        assert word == "--rate"
        return values

    return run


def test_fields_are_options_with_the_same_defaults(run):
    values = run()
    assert Example.from_dict(values) == Example()
    assert "secret" not in values


def test_what_is_given_comes_as_the_class_has_it(run):
    line = "--size 6 -v reversed --count 7 --learning-rate 0.25 -d 4 --fast --loss structural --opponent a --opponent b:c=1"
    values = run(*line.split(), "--empties", "8-12", "--noise", "0,1")
    assert Example.from_dict(values) == Example(
        *(6, "reversed", 7, 0.25, 4, True, "structural", ("a", "b:c=1"), (8, 12), (0.0, 1.0))
    )


def test_with_presets_only_what_is_given_is_passed_on(run):
    assert run(presets=True) == {}
    assert run("--count", 4, "--no-fast", presets=True) == {"count": 4, "fast": False}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--count", 11), "--count 11: expected 10 or less"),
        (("--loss", "other"), "--loss other: expected one of 'plain', 'structural'"),
        (("--depth", "x"), "--depth x: expected a whole number"),
        (("--secret", 1), "No such option: --secret"),
    ],
)
def test_bounds_and_choices_are_those_of_the_field(run, arguments, words):
    with pytest.raises(UsageError) as error:
        run(*arguments)
    assert words in complaint(error.value)

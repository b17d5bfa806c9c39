"""Options of a command that are the fields of an `Options` class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from cyclopts import App, CycloptsError

from play.cli.app import usage_error
from play.cli.options import NOTHING, options_of
from reversi_env.options import GameOptions, option


@dataclass(frozen=True)
class Example(GameOptions):
    """Options with one field of each type, and a field without a command line option."""

    count: int = option(3, "how many", low=1, high=10)
    learning_rate: float = option(0.5, "step of the optimiser", low=0, high=1)
    depth: int | None = option(None, "plies", low=1, high=9)
    fast: bool = option(False, "less precision")
    loss: Literal["plain", "structural"] = option("plain", "which errors count")
    opponents: tuple[str, ...] = option(("random",), "opponents")
    empties: tuple[int, int] = option((1, 2), "empty squares", low=0, high=60)
    noise: tuple[float, ...] = option((0.5, 1.0), "shares of random moves", low=0, high=1)
    secret: int = 5


def preset(size: int, device: str) -> Example:
    return Example(size=size, count=size, learning_rate=0.1 if device == "cpu" else 0.2)


Choice: Any = options_of(Example, preset=preset, named={"opponents": "opponent"})
RequiredChoice: Any = options_of(Example, required=("count",))


def typed(chosen: Choice = NOTHING) -> dict[str, Any]:
    return dict(chosen)


def required(chosen: RequiredChoice) -> dict[str, Any]:
    return dict(chosen)


def run(line: str, function: Any = typed) -> Any:
    """Run a command with the options of `Example`; return the options that were typed."""
    app = App(name="job", result_action="return_value", print_error=False, exit_on_error=False)
    app.default(function)
    return app(line.split())


def test_only_typed_options_are_passed_and_required_ones_checked():
    assert run("") == {}
    assert run("--count 4 --no-fast") == {"count": 4, "fast": False}
    assert run("--count 2", required) == {"count": 2}
    with pytest.raises(CycloptsError, match="--count"):
        run("", required)


def test_help_shows_preset_defaults_by_board_and_device(capsys):
    run("--help")
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "how many [default: 4/6/8]" in words
    assert "step of the optimiser [default: 0.1, cuda: 0.2]" in words
    assert "which errors count [default: plain]" in words


def test_values_have_the_types_of_the_fields():
    line = "--size 6 -v reversed --count 7 --learning-rate 0.25 -d 4 --fast --loss structural --opponent a --opponent b:c=1"
    assert Example(**run(f"{line} --empties 8-12 --noise 0,1")) == Example(
        *(6, "reversed", 7, 0.25, 4, True, "structural", ("a", "b:c=1"), (8, 12), (0.0, 1.0))
    )
    assert run("--empties 7") == {"empties": (7, 7)}


WRONG = "--count 11|--count 2.5|--depth x|--learning-rate nan|--loss other|--empties 3-x|--noise 0.1,2|--size 8.5"


@pytest.mark.parametrize("line", [*WRONG.split("|"), "--count " + "9" * 30])
def test_a_wrong_value_names_its_option(line):
    with pytest.raises(CycloptsError) as error:
        run(line)
    assert f"{line}: expected " in usage_error(error.value)


def test_unknown_options_are_refused():
    for line in ("--secret 1", "--count", "word"):
        with pytest.raises(CycloptsError):
            run(line)

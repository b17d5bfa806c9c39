"""`Options`: what a job is asked to do, as a frozen dataclass whose fields say by themselves what they are and may be.

A field is declared by `option`, with its help, its bounds or its choices; the type is its annotation. The check of all fields, the
form in JSON and the command line's options follow from that::

    @dataclass(frozen=True)
    class FitOptions(Options):
        epochs: int = option(20, "times that every position is seen", low=1, high=10_000)
        loss: Literal["plain", "structural"] = option("plain", "which errors count")

Types are bool, int, float, str, Literal, tuples of these (never empty), each of them or None, and other dataclasses, which check
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from numbers import Integral
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from reversi_env.errors import ReversiError, TrainError, did_you_mean, quoted
from reversi_env.rules import Rules, Variant


@dataclass(frozen=True)
class OptionField:
    """What is known of one option: its type without None, whether it may be None, help, bounds (both included), choices."""

    name: str
    type: Any
    optional: bool
    default: Any
    help: str
    low: float | None
    high: float | None
    choices: tuple[Any, ...]
    even: bool = False

    @property
    def is_tuple(self) -> bool:
        return get_origin(self.type) is tuple

    def widened(self, other: OptionField) -> OptionField:
        """The same, with the bounds of both."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return replace(self, low=low, high=high)

    def wrong(self, value: Any) -> str | None:
        """What was expected instead of *value*; None if nothing is wrong with it."""
        if value is None and self.optional:
            return None
        if self.is_tuple:
            return self._wrong_items(value)
        if self.choices:
            known = any(type(value) is type(choice) and value == choice for choice in self.choices)
            return None if known else f"one of {', '.join(map(str, self.choices))}"
        kind = self.type
        if kind not in _KINDS or self._fits(kind, value):
            return None
        return f"{'an even number' if self.even else _KINDS[kind]}{self._range}"

    def parse(self, texts: Sequence[str]) -> Any:
        """Return the value that *texts* stand for; a `ValueError` says what was expected.

        A pair of integers is a range such as ``10-14``, several numbers are separated by commas or are texts of their own, as
        several words are.
        """
        value: Any
        kind, *others = get_args(self.type) if self.is_tuple else (self.type,)
        if kind not in _NUMBERS:
            value = tuple(texts) if self.is_tuple else texts[-1]
        else:
            is_range = (kind, *others) == (int, int)
            parts = texts[-1].split("-") if is_range else ",".join(texts).split(",") if self.is_tuple else [texts[-1]]
            if is_range and len(parts) == 1:
                parts *= 2
            try:
                numbers = tuple(_NUMBERS[kind](part) for part in parts)
            except ValueError:
                numbers = ()
            value = numbers if self.is_tuple else numbers[0] if numbers else texts[-1]
            if any(abs(number) > MAX_INTEGER for number in numbers if isinstance(number, int)):
                raise ValueError(f"expected a number up to {MAX_INTEGER}")
        if expected := self.wrong(value):
            raise ValueError(f"expected {expected}")
        return value

    def _wrong_items(self, values: Any) -> str | None:
        kind, *others = get_args(self.type)
        count = None if others == [...] else 1 + len(others)
        right_size = isinstance(values, tuple) and (len(values) == count if count else bool(values))
        if kind not in _KINDS or (right_size and all(self._fits(kind, value) for value in values)):
            return None
        return f"{_COUNTS.get(count, count)} {_KINDS[kind].partition(' ')[2]}s{self._range}"

    def _fits(self, kind: Any, value: Any) -> bool:
        if kind in (bool, str):
            return isinstance(value, kind)
        if isinstance(value, bool) or not isinstance(value, int if kind is int else (int, float)):
            return False
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        return math.isfinite(value) and low <= value <= high and not (self.even and value % 2)

    @property
    def _range(self) -> str:
        if self.low is None:
            return "" if self.high is None else f", {self.high} or less"
        return f", {self.low} or more" if self.high is None else f" from {_number(self.low)} to {_number(self.high)}"


#: The largest integer that a text may stand for.
MAX_INTEGER = 10**15
_COUNTS = {None: "one or more", 2: "two", 3: "three"}
_KINDS = {int: "an integer", float: "a number", bool: "True or False", str: "a text"}


def _integer(text: str) -> int:
    if len(text) > 100:
        raise ValueError("too long")  # Python itself refuses only thousands of digits
    return int(text)


_NUMBERS: dict[Any, Any] = {int: _integer, float: float}


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[Any] = (),
    even: bool = False,
) -> Any:
    """A field of `Options`. *low* and *high* bound a number, or every number of a tuple; a Literal brings its *choices* itself.

    An *even* number is one of games: every opening is played from both sides.
    """
    about = {"help": help, "low": low, "high": high, "choices": tuple(choices), "even": even}
    return field(default=default, metadata=about)


@cache
def option_fields(kind: type[Options]) -> tuple[OptionField, ...]:
    """All options of a class, in order: for whoever makes a command line or a table of them."""
    hints = get_type_hints(kind)
    return tuple(_described(one, hints[one.name]) for one in fields(kind))


def _described(one: Any, hint: Any) -> OptionField:
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        hint = next(part for part in get_args(hint) if part is not NoneType)
    about = {"help": "", "low": None, "high": None, "choices": (), **one.metadata}
    about["choices"] = about["choices"] or (get_args(hint) if get_origin(hint) is Literal else ())
    return OptionField(one.name, hint, optional, one.default, **about)


@dataclass(frozen=True)
class Options:
    """Base of all options. A value that is wrong raises an `error`, which names the option and what was expected.

    A class that has more to check does so in its own ``__post_init__``, after this one's.
    """

    error: ClassVar[type[ReversiError]] = TrainError

    def __post_init__(self) -> None:
        for one in option_fields(type(self)):  # type: ignore[arg-type]  # mypy: no Hashable of a frozen class's type
            value = getattr(self, one.name)
            if one.is_tuple and isinstance(value, list):  # as JSON has it
                value = tuple(value)
            elif isinstance(value, Integral) and not isinstance(value, int):  # as numpy has it
                value = int(value)
            object.__setattr__(self, one.name, value)
            if expected := one.wrong(value):
                raise self.error(f"{one.name}={quoted(value)}: expected {expected}")

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON and files have them."""
        return _plain(self)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        known = option_fields(cls)  # type: ignore[arg-type]
        return {one.name: _plain(one.default) for one in known if one.default is not MISSING}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The options of `as_dict`, or some of them; a name that is none of theirs is refused."""
        known = [one.name for one in fields(cls)]
        for name in values:
            if name not in known:
                near = did_you_mean(name, known)
                raise cls.error(f"option {quoted(name)} is unknown{near}: expected some of {', '.join(known)}")
        return cls(**values)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str], **defaults: Any) -> Self:
        """Return the options that texts stand for, such as ``{"depth": "6"}``; *defaults* hold for those without a text."""
        known = {one.name: one for one in option_fields(cls)}  # type: ignore[arg-type]
        values: dict[str, Any] = {}
        for name, text in texts.items():
            try:
                if not text:
                    raise ValueError("expected a value")
                values[name] = known[name].parse([text]) if name in known else text
            except ValueError as error:
                raise cls.error(f"{name}={quoted(text)}: {error}") from None
        return cls.from_dict(defaults | values)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (tuple, list)) else value


@dataclass(frozen=True)
class GameOptions(Options):
    """Options of a job about one game; a game that does not exist is refused."""

    size: int = option(8, "Board size: 4, 6 or 8.")
    variant: Variant = option("normal", "Rules: normal (most discs win) or reversed (fewest discs win).")

    def __post_init__(self) -> None:
        Rules(self.size, self.variant)
        super().__post_init__()

    @property
    def rules(self) -> Rules:
        return Rules(self.size, self.variant)


def derive_seed(seed: int, *stream: int) -> int:
    """Return a 64-bit seed for the part *stream* of a run with *seed*, such as a round, or a round and an opponent.

    Runs with neighbouring seeds have unrelated parts. Sums such as ``seed + round`` would make them share games.

    >>> derive_seed(0, 1) == derive_seed(1, 0)
    False
    """
    import numpy as np  # the help of a command imports its options, but not numpy

    return int(np.random.SeedSequence(seed, spawn_key=stream).generate_state(1, np.uint64)[0])

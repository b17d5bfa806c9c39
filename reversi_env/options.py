"""`Options`: the options of a job, as a frozen dataclass that checks its fields.

A field is declared by `option`, with its help, bounds or choices; the type is its annotation. The check of all fields, the form in
JSON and the options of the command line follow from the declaration::

    @dataclass(frozen=True)
    class FitOptions(Options):
        epochs: int = option(20, "Passes over all positions.", low=1, high=10_000)
        loss: Literal["plain", "structural"] = option("plain", "Loss function.")

Types are bool, int, float, str, Literal, tuples of these (never empty), each of them or None, and other dataclasses, which check
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from numbers import Integral
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from reversi_env.errors import ReversiError, TrainError, did_you_mean, quoted
from reversi_env.rules import Rules, Variant


@dataclass(frozen=True)
class OptionField:
    """One option: its type without None, whether it may be None, default, help, bounds (inclusive) and choices."""

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

    @property
    def item_types(self) -> tuple[Any, ...]:
        """The types of a tuple's items, or the only type."""
        return get_args(self.type) if self.is_tuple else (self.type,)

    def expectation(self, value: Any) -> str | None:
        """Return what was expected in place of *value*, or None if *value* is valid."""
        if value is None and self.optional:
            return None
        if self.choices and not self.is_tuple:
            valid = any(type(value) is type(choice) and value == choice for choice in self.choices)
            return None if valid else f"one of {', '.join(map(str, self.choices))}"
        kind, *others = self.item_types
        if kind not in _KINDS:
            return None
        count = None if others == [...] else 1 + len(others)
        items = value if self.is_tuple else (value,)
        right_count = isinstance(items, tuple) and (len(items) == count if count else bool(items))
        if right_count and all(self._fits(kind, item) for item in items):
            return None
        plural = f"{_COUNTS.get(count, count)} {_KINDS[kind].partition(' ')[2]}s"
        return f"{plural if self.is_tuple else 'an even number' if self.even else _KINDS[kind]}{self._range}"

    def parse(self, texts: Sequence[str]) -> Any:
        """Return the value of command-line *texts*. A `ValueError` says what was expected.

        A pair of integers is a range such as ``10-14``. Several numbers are separated by commas or are separate texts; words
        are separate texts.
        """
        value: Any = tuple(texts) if self.is_tuple else texts[-1]
        kind = self.item_types[0]
        if kind in (int, float):
            is_range = self.item_types == (int, int)
            parts = texts[-1].split("-") if is_range else ",".join(texts).split(",") if self.is_tuple else [texts[-1]]
            try:
                numbers = tuple(kind(part) for part in parts)
            except ValueError:
                numbers = ()
            if any(abs(number) > MAX_INTEGER for number in numbers if isinstance(number, int)):
                raise ValueError(f"expected a number up to {MAX_INTEGER}")
            if is_range and len(numbers) == 1:
                numbers *= 2
            value = numbers if self.is_tuple else numbers[0] if numbers else texts[-1]
        if expected := self.expectation(value):
            raise ValueError(f"expected {expected}")
        return value

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


#: The largest integer that a text may have.
MAX_INTEGER = 10**15
_COUNTS = {None: "one or more", 2: "two", 3: "three"}
_KINDS = {int: "an integer", float: "a number", bool: "True or False", str: "a text"}


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
    """Declare a field of `Options`. *low* and *high* bound a number, or every number of a tuple. A Literal has its own *choices*.

    Numbers of games are *even*, because every opening is played with both colours.
    """
    return field(
        default=default, metadata={"help": help, "low": low, "high": high, "choices": tuple(choices), "even": even}
    )


@cache
def option_fields(kind: type[Options]) -> tuple[OptionField, ...]:
    """Return all options of a class, in order."""
    hints = get_type_hints(kind)
    return tuple(_option_field(one, hints[one.name]) for one in fields(kind))


def _option_field(one: Any, hint: Any) -> OptionField:
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        hint = next(part for part in get_args(hint) if part is not NoneType)
    metadata = {"help": "", "low": None, "high": None, "choices": (), **one.metadata}
    metadata["choices"] = metadata["choices"] or (get_args(hint) if get_origin(hint) is Literal else ())
    return OptionField(one.name, hint, optional, one.default, **metadata)


@dataclass(frozen=True)
class Options:
    """Base of all options. A wrong value raises `error`, which names the option and what was expected.

    A subclass with more checks has its own ``__post_init__``, which calls this one first.
    """

    error: ClassVar[type[ReversiError]] = TrainError

    def __post_init__(self) -> None:
        for one in option_fields(type(self)):  # type: ignore[arg-type]  # mypy: no Hashable of a frozen class's type
            value = getattr(self, one.name)
            if one.is_tuple and isinstance(value, list):  # from JSON
                value = tuple(value)
            elif isinstance(value, Integral) and not isinstance(value, int):  # from numpy
                value = int(value)
            object.__setattr__(self, one.name, value)
            if expected := one.expectation(value):
                raise self.error(f"{one.name}={quoted(value)}: expected {expected}")

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        return _plain(self)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        options = option_fields(cls)  # type: ignore[arg-type]
        return {one.name: _plain(one.default) for one in options if one.default is not MISSING}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the options of `as_dict`, or of a part of it. An unknown name raises `error`."""
        known = [one.name for one in fields(cls)]
        for name in values:
            if name not in known:
                near = did_you_mean(name, known)
                raise cls.error(f"option {quoted(name)} is unknown{near}: expected some of {', '.join(known)}")
        return cls(**values)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str], **defaults: Any) -> Self:
        """Return the options of texts such as ``{"depth": "6"}``; *defaults* are the values of options without a text."""
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
    """Options of a job about one game."""

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

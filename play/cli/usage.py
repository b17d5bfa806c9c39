"""The application and its commands: typer's, with numbers that stay within reason and errors that name what was typed."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from play.cli.job_options import JobOptions, keep_values

#: The largest whole number that an option takes: no game, position or node count comes near, and kernels' integers hold it.
LARGEST_NUMBER = 10**15
#: Characters of a value that are shown in an error.
MOST_SHOWN = 60
#: An option or argument that is wrong: click's error, which typer keeps in a place of its own.
UsageError: Any = typer.BadParameter.__base__

if TYPE_CHECKING:
    _Base = TyperCommand
else:
    _Base = object


class _Plain:
    """Reads a parameter's value without pydantic, which takes a tenth of a second to load, where the value is plain.

    That is what it should be already, or a number as people write it, within its limits. Everything else, and so every error, is
    left to typer. It stands in the place where typer keeps its own reader.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command wants it."""
        if value is None and not param.multiple and param.nargs == 1:
            return None
        kind, limits = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        if get_origin(kind) is Literal and value in get_args(kind):
            return value
        plain = value
        if isinstance(value, str) and kind in _NUMBERS and _NUMBERS[kind].fullmatch(value):
            plain = kind(value)
        if type(plain) is kind and (kind is str or isinstance(plain, Enum) or _is_within(plain, limits)):
            return plain
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


_NUMBERS = {int: re.compile(r"-?[0-9]{1,15}"), float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")}


def _is_within(value: Any, limits: Any) -> bool:
    low, high = limits.min, limits.max
    return isinstance(value, (int, float)) and (low is None or value >= low) and (high is None or value <= high)


class _Checked(_Base):
    """What commands and groups of commands have in common: options of a job, and numbers that stay within reason."""

    _own_params: list[Any]
    _all_params: list[Any] | None = None

    @property
    def job_options(self) -> JobOptions | None:
        """Where the command takes options from, beside its own."""
        return getattr(self.callback, "job_options", None)

    @property
    def params(self) -> list[Any]:
        """All parameters: arguments, ``--out``, the job's options, which are loaded only now, and the others."""
        job = self.job_options
        if job is None:
            return self._own_params
        if self._all_params is None:
            first = [one for one in self._own_params if one.param_type_name == "argument" or one.name == "out"]
            rest = [one for one in self._own_params if one not in first]
            self._all_params = first + job.parameters() + rest
        return self._all_params

    @params.setter
    def params(self, params: list[Any]) -> None:
        self._own_params = params

    def _own(self, arguments: list[str]) -> int:
        """How many of the arguments are the command's own, the first ones."""
        return len(arguments)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; refuse numbers that no kernel can hold."""
        parameter: Any
        job = self.job_options
        for parameter in self.get_params(ctx):
            if getattr(parameter, "_runtime_param", self) is None:
                parameter._runtime_param = _Plain()
        try:
            rest = super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            for number in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(number, int) and abs(number) > LARGEST_NUMBER:
                    wrong = f"{parameter.opts[0]} {_cut(number)}: expected a number up to {LARGEST_NUMBER}"
                    raise UsageError(wrong, ctx)
        if job is not None and not ctx.resilient_parsing:
            keep_values(ctx, job)
        return rest


class Command(_Checked, TyperCommand):
    """A command."""


class ClosedPipe(Exception):  # noqa: N818 - nothing is wrong
    """Whoever reads our output has seen enough. Not a `BrokenPipeError`, which typer makes a failure of."""


class _Group(_Checked, TyperGroup):
    """A command with commands of its own."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipe from error

    def _own(self, arguments: list[str]) -> int:
        """All before the name of a command, whose options may have the old names of others."""
        place, flags = 0, {name for one in self.params if one.is_flag for name in (*one.opts, *one.secondary_opts)}
        while place < len(arguments) and arguments[place].startswith("-"):
            place += 1 if arguments[place] in flags or re.match(r"--.*=|-\w.", arguments[place]) else 2
        return place


class Application(typer.Typer):
    """Commands of these kinds; the whole tree is built once a process, which takes a tenth of a second."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Decorate a function that is a command."""
        return super().command(name, **{"cls": Command, **options})

    @cached_property
    def _command(self) -> Callable[..., Any]:
        return typer.main.get_command(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        return self._command(*args, **kwargs)


def complaint(error: Any) -> str | None:
    """A usage error in one line; None for a command without its arguments, which has shown its help already."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return None
    command = error.ctx.command_path if error.ctx else "reversi"
    return f"{command}: {_wrong_value(error) or ' '.join(error.format_message().split())} (see {command} --help)"


def _wrong_value(error: Any) -> str | None:
    """What was given and what was expected, if it was a number or a choice that pydantic refused for typer."""
    refusals = getattr(error.__cause__, "errors", None)
    parameter = getattr(error, "param", None)
    if refusals is None or parameter is None:
        return None
    [refusal, *_] = refusals()
    limits = refusal.get("ctx", {})
    number = "a whole number" if refusal["type"].startswith("int") else "a number"
    words = {
        "greater_than_equal": lambda: f"expected {limits['ge']:.10g} or more",
        "less_than_equal": lambda: f"expected {limits['le']:.10g} or less",
        "value_error": lambda: (
            str(limits["error"]).partition(" is not ")[2].strip(".").replace("one of", "expected one of")
        ),
    }.get(refusal["type"], lambda: f"expected {number}")
    return f"{parameter.opts[0]} {_cut(refusal['input'])}: {words()}"


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"

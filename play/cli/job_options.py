"""Options of the command line that are the fields of a class of options: `reversi label --count` is ``LabelOptions.count``.

A command over a job declares what is not in the job's options, and takes the rest from them::

    @options_from("train.labels.options:LabelOptions")
    def label(context: typer.Context, out: …) -> None:
        options = LabelOptions(**given(context))

The class is loaded when the options of that one command are asked for, so that ``reversi --help`` loads none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import typer

from play.cli.options import LETTERS, complete_spec, number_list, number_range

if TYPE_CHECKING:
    from reversi_env.options import OptionField

#: Where a context keeps the values of a job's options.
_VALUES = "reversi.job_options"
#: Options that name agents, which the shell completes.
_SPECS = ("player", "panel", "opponents", "agents")
#: The heading of what is on or off: a table without the column of their second names has room for all other names in 80 columns.
SWITCHES = "On or off"
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class JobOptions:
    """Which class a command takes options from, and how.

    * ``place``: the class, as ``module:name``.
    * ``presets``: the game decides what is not given, so that no default is shown and only what was given is passed on.
    * ``without``: fields that are no options of the command.
    * ``named``: other names of options than those of their fields; ``required``: fields that must be given.
    * ``more``: further classes, for other kinds of the job, by the heading under which the help shows their options. What
      they have in common with those before is one option, which takes what one of them takes: the class itself says no.
    """

    place: str
    presets: bool = False
    without: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> list[OptionField]:
        """The fields that are options of the command."""
        return [one for one, _ in self._with_headings()]

    def _with_headings(self) -> list[tuple[OptionField, str | None]]:
        """The same, each with the heading that the help shows above it."""
        found: dict[str, tuple[OptionField, str | None]] = {}
        for heading, place in ((None, self.place), *self.more.items()):
            for one in _fields_of(place):
                if one.help and one.name not in self.without:
                    known, above = found.get(one.name, (one, heading))
                    found[one.name] = known.widened(one), above
        return list(found.values())

    def option_name(self, one: OptionField) -> str:
        """``--learning-rate`` for ``learning_rate``."""
        return f"--{self.named.get(one.name, one.name).replace('_', '-')}"

    def parameters(self) -> list[Any]:
        """The options as typer has them."""

        def declared(**_: Any) -> None:
            """Stands for the command, to let typer make its options."""

        signature = inspect.Signature([self._parameter(*one) for one in self._with_headings()])
        declared.__signature__ = signature  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False)
        app.command()(declared)
        return list(typer.main.get_command(app).params)

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields' values, of what typer read; those that were not given are left to the class."""
        found = {one.name: self._value(one, given[one.name]) for one in self.fields()}
        return {name: value for name, value in found.items() if value is not None}

    def _parameter(self, one: OptionField, heading: str | None = None) -> inspect.Parameter:
        name = self.option_name(one)
        kind, default = _typed(one)
        if one.default is MISSING or one.name in self.required:
            default = inspect.Parameter.empty
        elif self.presets:
            kind, default = kind | None, None
        how: dict[str, Any] = {"min": one.low, "max": one.high} if kind in _NUMBERS else {}
        if one.name in _SPECS:
            how["autocompletion"] = complete_spec
        flag = f"{name}/--no-{name[2:]}" if kind == bool | None or default is True else name
        if flag != name:
            heading = heading or SWITCHES
        letters = [LETTERS[name]] if name in LETTERS else []
        declared = typer.Option(flag, *letters, help=one.help, rich_help_panel=heading, **how)
        return inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared]
        )

    def _value(self, one: OptionField, value: Any) -> Any:
        if value is None or not one.is_tuple:
            return value
        items = get_args(one.type)
        if items[0] is str:
            return tuple(value) or None
        name = self.option_name(one)
        return number_range(value, name) if items == (int, int) else number_list(value, name, items[0])


_NUMBERS = (int, float, int | None, float | None)


def _fields_of(place: str) -> tuple[OptionField, ...]:
    from reversi_env.options import option_fields

    module, _, name = place.partition(":")
    return option_fields(getattr(import_module(module), name))


def _typed(one: OptionField) -> tuple[Any, Any]:
    """The type and default of the command's option: a tuple is a text such as ``10-14`` or ``0.5,1,2``, or may be repeated."""
    kind, default = one.type, None if one.default is MISSING else one.default
    if one.choices:
        kind = Literal[one.choices]
    elif one.is_tuple:
        items = get_args(kind)
        kind = list[str] if items[0] is str else str
        if default is not None and kind is str:
            default = ("-" if items == (int, int) else ",").join(f"{number:g}" for number in default)
        elif default is not None:
            default = list(default)
    return (kind | None if default is None and kind is not bool else kind), default


def options_from(place: str, **how: Any) -> Callable[[Function], Function]:
    """Decorate a command that takes options from the class at *place*; `JobOptions` says *how*."""

    def decorated(function: Function) -> Function:
        function.job_options = JobOptions(place, **how)  # type: ignore[attr-defined]
        return function

    return decorated


def given(context: typer.Context) -> dict[str, Any]:
    """The values of the job's options, by field."""
    values: dict[str, Any] = context.meta[_VALUES]
    return values


def keep_values(context: Any, job: JobOptions) -> None:
    """Take the job's options out of those of the command, where `given` finds them."""
    taken = {one.name: context.params.pop(one.name) for one in job.fields()}
    context.meta[_VALUES] = job.values(taken)

"""What the studies have in common: options that know the command which repeats them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from reversi_env.options import GameOptions, option_fields
from search import evaluators
from train.jobs.provenance import commit


def provenance(machine: str) -> dict[str, str | None]:
    """Commit, machine and date of what was measured just now."""
    return {"commit": commit("studies"), "machine": machine, "date": f"{datetime.now(UTC):%Y-%m-%d}"}


@dataclass(frozen=True)
class StudyOptions(GameOptions):
    """Options of a study, in the order of the command's."""

    #: The command after ``reversi``, an argument of the class.
    study: ClassVar[str]

    def __init_subclass__(cls, study: str = "") -> None:
        cls.study = study

    @property
    def command(self) -> str:
        words = ["reversi", self.study]
        for one in option_fields(type(self)):  # type: ignore[arg-type]  # mypy: no Hashable of a frozen class's type
            value, name = getattr(self, one.name), f"--{one.name.replace('_', '-')}"
            if not one.help:  # evaluators: they stand by themselves
                words[2:2] = value
            elif value is None or one.type is bool:
                words += [name] if value else []
            else:
                words += [name, "-".join(map(str, value)) if one.is_tuple else str(value)]
        return " ".join(words)

    def measured(self, **values: Any) -> dict[str, Any]:
        """What was found, with the game it was found in and the command that finds it again."""
        return {
            "size": self.size,
            "variant": self.variant,
            **values,
            "command": self.command,
            "options": self.as_dict(),
        }


@dataclass(frozen=True)
class EvaluatorStudyOptions(StudyOptions):
    """Options of a study of evaluators, by default the published ones."""

    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", evaluators.published_names())
        super().__post_init__()
        for name in self.names:
            evaluators.get_evaluator(name).record(self.rules)  # what is missing is missed now

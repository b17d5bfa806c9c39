"""`Repeatable`: options of an experiment that know the game and the command that repeats it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from reversi_env import Rules
from reversi_env.rules import Variant


class Repeatable:
    """For a dataclass whose fields are the command's options, by name and in their order; ``experiment`` is its name there."""

    experiment: ClassVar[str]
    size: int
    variant: Variant

    @property
    def rules(self) -> Rules:
        """The game."""
        return Rules(self.size, self.variant)

    @property
    def command(self) -> str:
        """What repeats it."""
        own: Any = self
        options = [f"--{field.name.replace('_', '-')} {getattr(own, field.name)}" for field in fields(own)]
        return " ".join(["reversi experiment", self.experiment, *options])

"""What an environment is asked to play, checked and turned into the records that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces

from reversi_env.core import episodes
from reversi_env.errors import ReversiError, shown
from reversi_env.position import Position
from reversi_env.rules import BLACK, WHITE, Rules, Start, Variant

ColourChoice = Literal["black", "white", "random", "alternate"]
RewardChoice = Literal["win", "discs", "shaped"]
ObservationChoice = Literal["planes", "flat", "dict"]
IllegalChoice = Literal["lose", "raise", "random"]

PLAYER_NAMES = ("black", "white")
_ILLEGAL_CODES = {
    "lose": episodes.ILLEGAL_LOSES,
    "random": episodes.ILLEGAL_IS_RANDOM,
    "raise": episodes.ILLEGAL_IS_REFUSED,
}


class SettingsError(ReversiError):
    """An option of an environment that does not exist, or a value that it does not take."""


@dataclass(frozen=True)
class Settings:
    """The options that the single and the vector environment share; `ReversiEnv` documents them."""

    size: int = 8
    variant: Variant = "normal"
    colour: ColourChoice = "black"
    start: Start | Position | str | None = None
    opening_plies: int = 0
    empties: int | None = None
    reward: RewardChoice = "win"
    discount: float = 1.0
    observation: ObservationChoice = "planes"
    illegal: IllegalChoice = "lose"

    def __post_init__(self) -> None:
        _check_choice("colour", self.colour, get_args(ColourChoice))
        _check_choice("reward", self.reward, get_args(RewardChoice))
        _check_choice("observation", self.observation, get_args(ObservationChoice))
        _check_choice("illegal", self.illegal, get_args(IllegalChoice))
        most = self.rules.square_count - 4
        _check_whole("opening_plies", self.opening_plies, 0, most)
        if self.empties is not None:
            _check_whole("empties", self.empties, 1, most)
        if (
            isinstance(self.discount, bool)
            or not isinstance(self.discount, (int, float))
            or not 0 <= self.discount <= 1
        ):
            raise SettingsError(f"discount={shown(self.discount)}: expected a number from 0 to 1")
        self.start_position()

    @property
    def rules(self) -> Rules:
        """The game."""
        return Rules(self.size, self.variant, "parallel" if self.start == "parallel" else "standard")

    def start_position(self) -> Position:
        """The position that episodes (or their random openings) begin with."""
        if self.start is None or self.start in get_args(Start):
            return Position.initial(self.rules)
        position = Position.from_text(self.start, BLACK, self.rules) if isinstance(self.start, str) else self.start
        if not isinstance(position, Position):
            raise SettingsError(
                f"start={shown(self.start)}: expected 'standard', 'parallel', a Position or a board text"
            )
        if position.rules.size != self.size:
            raise SettingsError(
                f"start is a {position.rules.size}x{position.rules.size} position: expected {self.size}x{self.size}"
            )
        if position.is_over():
            raise SettingsError(f"start is a finished game: expected a position with a legal move\n{position}")
        return position

    def with_options(self, options: dict[str, Any] | None) -> Settings:
        """These settings with the `reset` options of one episode: ``start``, ``opening_plies``, ``empties``, ``colour``."""
        known = ("start", "opening_plies", "empties", "colour")
        return replace(self, **{key: value for key, value in (options or {}).items() if key in known})

    def game(self) -> np.ndarray:
        """The kernels' GAME record, as an array of one."""
        rules, start = self.rules, self.start_position()
        record = np.zeros(1, episodes.GAME)
        record["playable"] = rules.playable
        record["start_own"], record["start_opp"] = start.own, start.opp
        record["start_turn"] = episodes.BLACK_PLAYER if start.turn == BLACK else episodes.WHITE_PLAYER
        record["opening_plies"] = self.opening_plies
        record["empties"] = -1 if self.empties is None else self.empties
        record["squares"] = rules.square_count
        record["sign"] = rules.sign
        record["colour"] = get_args(ColourChoice).index(self.colour)
        record["reward"] = get_args(RewardChoice).index(self.reward)
        record["discount"] = self.discount
        record["illegal"] = _ILLEGAL_CODES[self.illegal]
        record["observation"] = episodes.FLAT if self.observation == "flat" else episodes.PLANES
        return record

    def squares(self) -> np.ndarray:
        """The frame's square of every action but the pass, as the kernels want it."""
        return np.array(list(self.rules.squares()), np.uint64)

    def board_space(self) -> spaces.Box:
        """Space of the board part of an observation."""
        if self.observation == "flat":
            return spaces.Box(-1, 1, (self.rules.square_count,), np.int8)
        return spaces.Box(0, 1, (2, self.size, self.size), np.int8)

    def observation_space(self) -> spaces.Space:
        """Space of a whole observation."""
        if self.observation != "dict":
            return self.board_space()
        mask = spaces.Box(0, 1, (self.rules.square_count + 1,), np.int8)
        return spaces.Dict({"observation": self.board_space(), "action_mask": mask})

    def action_space(self) -> spaces.Discrete:
        """One action a square and, last, the pass."""
        return spaces.Discrete(self.rules.square_count + 1)


def no_start_found(settings: Settings) -> SettingsError:
    """The error for a start that leaves the agent nothing to decide."""
    asked = f"empties={settings.empties}" if settings.empties is not None else f"opening_plies={settings.opening_plies}"
    return SettingsError(
        f"no start with {asked} found that leaves the agent a move: expected a start with more of the game to come"
    )


def position_of(state: np.void, rules: Rules) -> Position:
    """The `Position` of one STATE record."""
    return Position(rules, int(state["own"]), int(state["opp"]), WHITE if state["turn"] else BLACK)


def last_action_of(state: np.void, rules: Rules) -> int | None:
    """The last move of one STATE record as an action, None before the first."""
    sq = int(state["last_square"])
    if sq < 0:
        return None
    return rules.pass_action if sq == episodes.PASS_SQUARE else rules.action_of(sq)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"{name}={shown(value)}: expected one of {', '.join(map(repr, choices))}")


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise SettingsError(f"{name}={shown(value)}: expected a whole number from {low} to {high}")

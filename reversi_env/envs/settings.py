"""The options of an environment, their checks, and the records that the kernels read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any, Literal, Self, get_args

import numpy as np
from gymnasium import logger, spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from reversi_env.errors import ReversiError, check_integer, did_you_mean, quoted
from reversi_env.kernels import episodes, observations
from reversi_env.options import GameOptions, option
from reversi_env.position import Position
from reversi_env.rules import BLACK, WHITE, Rules, Start

ColourChoice = Literal["black", "white", "random", "alternate"]
RewardChoice = Literal["win", "discs", "shaped"]
ObservationChoice = Literal["planes", "flat", "dict"]
IllegalChoice = Literal["lose", "raise", "random"]
PlaneChoice = Literal["legal", "last_move"]
DtypeChoice = Literal["int8", "float32"]

#: Options that `reset(options=…)` may change for one episode: its start and the agent's colour.
START_OPTIONS = ("start", "opening_plies", "empties")
RESET_OPTIONS = (*START_OPTIONS, "colour")

_ILLEGAL_CODES = {
    "lose": episodes.ILLEGAL_LOSES,
    "random": episodes.ILLEGAL_IS_RANDOM,
    "raise": episodes.ILLEGAL_RAISES,
}


class SettingsError(ReversiError):
    """An option of an environment that does not exist, or a value that it does not take."""


class UnknownOptionError(SettingsError, TypeError):
    """An option that does not exist. It is a `TypeError` too, as for any function."""


@dataclass(frozen=True)
class Settings(GameOptions):
    """The options that the single and the vector environment share; `ReversiEnv` documents them."""

    error = SettingsError

    colour: ColourChoice = "black"
    start: Any = None  # Start | Position | str | None
    opening_plies: int = 0
    empties: int | None = None
    reward: RewardChoice = "win"
    discount: float = option(1.0, low=0, high=1)
    observation: ObservationChoice = "planes"
    illegal: IllegalChoice = "lose"
    extra_planes: Any = ()  # Sequence[PlaneChoice]
    dtype: DtypeChoice = "int8"
    channels_last: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_planes()
        max_plies = self.rules.square_count - 4
        check_integer("opening_plies", self.opening_plies, 0, max_plies, SettingsError)
        if self.empties is not None:
            check_integer("empties", self.empties, 1, max_plies, SettingsError)
        self._check_start()

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """Return the settings with these options. An unknown one raises an `UnknownOptionError`."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise unknown_option_error(name, known)
        return cls(**options)

    @property
    def rules(self) -> Rules:
        parallel = isinstance(self.start, str) and self.start == "parallel"
        return Rules(self.size, self.variant, "parallel" if parallel else "standard")

    def start_position(self) -> Position:
        """The position that episodes (or their random openings) begin with."""
        if isinstance(self.start, Position):
            return self.start
        if self.start is None or (isinstance(self.start, str) and self.start in get_args(Start)):
            return Position.initial(self.rules)
        if isinstance(self.start, str):
            return Position.from_text(self.start, BLACK, self.rules)
        raise SettingsError(f"start={quoted(self.start)}: expected 'standard', 'parallel', a Position or a board text")

    def with_options(self, options: Mapping[str, Any] | None, known: tuple[str, ...] = RESET_OPTIONS) -> Self:
        """Return these settings changed by the *known* ones among the `reset` options of one episode."""
        if options is None:
            return self
        if not isinstance(options, Mapping):
            raise SettingsError(f"options={quoted(options)}: expected a dict such as {{'empties': 20}}")
        return replace(self, **{key: options[key] for key in known if key in options})

    def game(self) -> np.ndarray:
        """The kernels' GAME record, as an array of one."""
        rules, start = self.rules, self.start_position()
        record = np.zeros(1, episodes.GAME)
        record["playable"] = rules.playable
        record["start_own"], record["start_opp"] = start.own, start.opp
        record["start_turn"] = episodes.BLACK_PLAYER if start.turn == BLACK else episodes.WHITE_PLAYER
        record["opening_plies"] = self.opening_plies
        record["empties"] = -1 if self.empties is None else self.empties
        record["square_count"] = rules.square_count
        record["sign"] = rules.sign
        record["colour"] = get_args(ColourChoice).index(self.colour)
        record["reward"] = get_args(RewardChoice).index(self.reward)
        record["discount"] = self.discount
        record["illegal"] = _ILLEGAL_CODES[self.illegal]
        record["observation"] = observations.FLAT if self.observation == "flat" else observations.PLANES
        return record

    def squares(self) -> np.ndarray:
        """Return the frame's square of every action except the pass, uint64."""
        return np.array(list(self.rules.squares()), np.uint64)

    def board_space(self) -> spaces.Box:
        dtype = np.dtype(self.dtype).type
        if self.observation == "flat":
            return spaces.Box(-1, 1, (self.rules.square_count,), dtype)
        planes = 2 + len(self.extra_planes)
        shape = (self.size, self.size, planes) if self.channels_last else (planes, self.size, self.size)
        return spaces.Box(0, 1, shape, dtype)

    def boards(self, written: np.ndarray, masks: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the boards of observations, from the rows that the kernels have *written* for these states.

        With the default dtype and planes this is a view of *written*.
        """
        plain = (len(written), -1) if self.observation == "flat" else (len(written), 2, self.size, self.size)
        boards = written.reshape(plain)
        if self.dtype == "int8" and not self.extra_planes and not self.channels_last:
            return boards
        if self.observation == "flat":
            return boards.astype(self.dtype)
        observations_out = np.empty((len(written), *self.board_space().shape), self.dtype)
        planes = np.moveaxis(observations_out, -1, 1) if self.channels_last else observations_out
        planes[:, :2] = boards
        for number, name in enumerate(self.extra_planes, start=2):
            # The plane of the last move is empty after a pass and before the first move.
            squares = (
                masks[:, :-1] if name == "legal" else states["last_square"][:, None] == self.squares().astype(np.int8)
            )
            planes[:, number] = squares.reshape(-1, self.size, self.size)
        return observations_out

    @property
    def game_number(self) -> int:
        """Number of the board size and the variant, stored in every state."""
        return 2 * self.size + (self.variant == "reversed")

    def observation_space(self) -> spaces.Space:
        if self.observation != "dict":
            return self.board_space()
        mask = spaces.Box(0, 1, (self.rules.square_count + 1,), np.int8)
        return spaces.Dict({"observation": self.board_space(), "action_mask": mask})

    def action_space(self) -> spaces.Discrete:
        """Return the space of one action per square and, last, the pass."""
        return spaces.Discrete(self.rules.square_count + 1)

    def _check_planes(self) -> None:
        extra = self.extra_planes
        is_list = isinstance(extra, Iterable) and not isinstance(extra, str)
        if not is_list or not set(extra) <= set(get_args(PlaneChoice)) or len(set(extra)) < len(extra):
            raise SettingsError(f"extra_planes={quoted(extra)}: expected some of {get_args(PlaneChoice)}, each once")
        object.__setattr__(self, "extra_planes", tuple(extra))
        if self.observation == "flat" and (extra or self.channels_last):
            raise SettingsError("observation='flat' has no planes: expected neither extra_planes nor channels_last")

    def _check_start(self) -> None:
        start = self.start_position()
        size, empties = start.rules.size, self.rules.square_count - (start.own | start.opp).bit_count()
        if size != self.size:
            raise SettingsError(f"start is a {size}x{size} position: expected {self.size}x{self.size}")
        if start.rules.variant != self.variant:
            raise SettingsError(f"start is a position of the {start.rules.variant} game: expected {self.variant}")
        if start.is_over():
            raise SettingsError(f"start is a finished game: expected a position with a legal move\n{start}")
        if self.empties is not None and self.empties > empties:
            raise SettingsError(f"empties={self.empties}: the start has {empties}, expected no more than that")


def unknown_option_error(name: str, known: Iterable[str]) -> UnknownOptionError:
    """Return the error for a keyword that is not one of the *known* ones, all of which it lists."""
    near = did_you_mean(name, known)
    return UnknownOptionError(f"unexpected keyword argument {quoted(name)}{near}: expected some of {', '.join(known)}")


def refuse_unknown(environment: type, unknown: Mapping[str, Any]) -> None:
    """Raise an `UnknownOptionError` if there are *unknown* keyword arguments; it lists those of the constructor."""
    if unknown:
        parameters = signature(environment).parameters.values()
        raise unknown_option_error(min(unknown), [one.name for one in parameters if one.kind != one.VAR_KEYWORD])


def warn_unknown_options(options: Mapping[str, Any] | None, known: tuple[str, ...]) -> None:
    """Warn of unknown options of `reset`, and list the *known* ones."""
    if unknown := [str(name) for name in options or () if name not in known]:
        near = did_you_mean(unknown[0], known)
        logger.warn(f"reset(options=…): {quoted(unknown[0])} is unknown{near} and ignored: expected {', '.join(known)}")


def reset_mask(options: Mapping[str, Any] | None, count: int, begun: bool) -> np.ndarray:
    """Return which of *count* games `reset` begins: those of ``options["reset_mask"]``, or all."""
    mask = (options or {}).get("reset_mask")
    if mask is None:
        return np.ones(count, np.bool_)
    array = mask.cpu().numpy() if hasattr(mask, "cpu") else np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (count,) or not array.any():
        raise SettingsError(f"reset_mask {quoted(mask)}: expected {count} booleans, at least one of them True")
    if not begun and not array.all():
        raise ResetNeeded("no episode has begun: reset all games before resetting some")
    return array


def check_shaping_has_opponent(settings: Settings, opponents: int) -> None:
    """Raise for shaped rewards in two-player mode: they add up over the transitions of one agent."""
    if settings.reward == "shaped" and not opponents:
        raise SettingsError("reward='shaped' in two-player mode changes the best policies: expected 'win' or 'discs'")


def no_start_error(settings: Settings) -> SettingsError:
    """Return the error for a start without a decision for the agent."""
    options = ", ".join(f"{name}={quoted(getattr(settings, name))}" for name in RESET_OPTIONS)
    return SettingsError(f"{options}: expected a start that leaves the agent a move; choose one earlier in the game")


def checked_states(states: Any, count: int, settings: Settings, pool: np.ndarray) -> np.ndarray:
    """Return a copy of *states*, or raise unless they are *count* states of this game with opponents of the *pool*."""
    if not isinstance(states, np.ndarray) or states.dtype != episodes.STATE or states.shape != (count,):
        raise SettingsError(f"state {quoted(states)}: expected what get_state() of {count} game(s) returned")
    own, opp = states["own"], states["opp"]
    if (states["game"] != settings.game_number).any():
        raise SettingsError(f"state of another game: expected {settings.size}x{settings.size} {settings.variant}")
    if (own & opp).any() or ((own | opp) & ~np.uint64(settings.rules.playable)).any():
        raise SettingsError("state with impossible discs: expected what get_state() of such a game returned")
    numbers = states["opponent"]
    if pool.size:
        valid = (numbers >= 0) & (numbers < pool.size)
        valid &= states["kind"] == pool["kind"][numbers.clip(0, pool.size - 1)]
    else:
        valid = states["kind"] == episodes.NO_OPPONENT
    if not (valid | (states["over"] != 0)).all():
        raise SettingsError("state of a game against another opponent: expected an environment with the same opponents")
    return states.copy()


def position_of(state: np.void, rules: Rules) -> Position:
    return Position(rules, int(state["own"]), int(state["opp"]), WHITE if state["turn"] else BLACK)


def last_action_of(state: np.void, rules: Rules) -> int | None:
    """Return the last move of a STATE record as an action, or None before the first move."""
    sq = int(state["last_square"])
    if sq < 0:
        return None
    return rules.pass_action if sq == episodes.PASS_SQUARE else rules.action_of(sq)


def checked_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return Gymnasium's mode from the mode, its name (``"SAME_STEP"``) or its value (``"SameStep"``)."""
    if isinstance(mode, str) and mode in AutoresetMode.__members__:
        return AutoresetMode[mode]
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = ", ".join(AutoresetMode.__members__)
        raise SettingsError(f"autoreset_mode={quoted(mode)}: expected one of {names}") from None


def shared_seed(seed: int | Sequence[int | None] | None, count: int) -> int | None:
    """Return one seed for the generator that *count* games share (``np_random``); None unless all games have a seed."""
    if isinstance(seed, (int, np.integer)):
        return int(seed)
    seeds, seeded = game_seeds(seed, count)
    return int(np.random.SeedSequence(seeds.tolist()).generate_state(1, np.uint64)[0]) if seeded.all() else None


def game_seeds(seed: int | Sequence[int | None] | None, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the 64-bit seed of every game, and which games have one."""
    is_sequence = isinstance(seed, (Sequence, np.ndarray))
    seeds: list[Any] = list(seed) if is_sequence else [seed]  # type: ignore[arg-type]
    if is_sequence and len(seeds) != count:
        raise SettingsError(f"{len(seeds)} seeds: expected one for each of the {count} environments")
    for number in seeds:
        if number is not None:
            check_integer("seed", number, 0, error=SettingsError)
    values = np.array([int(number or 0) % 2**64 for number in seeds], np.uint64)
    seeded = np.array([number is not None for number in seeds])
    return (values, seeded) if is_sequence else (values + np.arange(count, dtype=np.uint64), np.repeat(seeded, count))

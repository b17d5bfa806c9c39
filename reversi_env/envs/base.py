"""The base of the Gymnasium and the PettingZoo environment: one game, its random generator and its pictures."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium import logger
from gymnasium.error import InvalidAction, ResetNeeded

from reversi_env.envs.settings import Settings, SettingsError, last_action_of, position_of
from reversi_env.errors import check_integer, quoted
from reversi_env.kernels import episodes, observations
from reversi_env.position import Position

RENDER_MODES = ["ansi", "rgb_array", "human"]
RENDER_FPS = 4
#: The mask and the index of the single environment, for kernels that take a batch.
ALL = np.ones(1, np.bool_)
FIRST = np.zeros(1, np.int64)


class SingleGameMixin:
    """The state of one game, without its step."""

    metadata: dict[str, Any]
    render_mode: str | None

    def _set_up(self, settings: Settings, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise SettingsError(f"render_mode={quoted(render_mode)}: expected one of {RENDER_MODES}")
        self.render_mode = render_mode
        self.settings, self.rules = settings, settings.rules
        self._game, self._squares = settings.game(), settings.squares()
        self._raises_if_illegal = settings.illegal == "raise"
        self._state = np.zeros(1, episodes.STATE)
        self._state["over"], self._state["game"] = 1, settings.game_number
        self._window: Any = None
        self._seed(None)

    def render(self) -> Any:
        """The board as text, as an RGB array, or in a window, by ``render_mode``."""
        if self.render_mode is None:
            logger.warn("render() does nothing without a render_mode: expected render_mode='ansi', for instance")
            return None
        position, last = self.position(), last_action_of(self._state[0], self.rules)
        if not position.own | position.opp:
            raise ResetNeeded("no game has begun: call reset() before render()")
        from reversi_env import rendering

        if self.render_mode == "ansi":
            return rendering.render_ansi(position, last)
        frame = rendering.render_rgb(position, last)
        if self.render_mode == "rgb_array":
            return frame
        self._window = self._window or rendering.Window(fps=self.metadata["render_fps"])
        self._window.show(frame)
        return None

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None

    def position(self) -> Position:
        """The position, from the same side as the observation."""
        return position_of(self._state[0], self.rules)

    def end_of_game(self) -> dict[str, int]:
        """The finished game's ``score`` in discs for the agent or the player that acted last, and ``winner`` (0, 1; -1: nobody)."""
        score, winner = np.zeros((2, 1), np.int64)
        episodes.write_final_results(self._state, self._game, FIRST, score, winner)
        return {"score": int(score[0]), "winner": int(winner[0])}

    def sample_legal(self) -> int:
        """A uniformly random legal action, drawn from the environment's own seeded generator."""
        return int(observations.sample_one(self._state, self._game))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_window": None}

    def _seed(self, seed: int | None) -> None:
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        check_integer("seed", seed, 0, error=SettingsError)
        episodes.seed_all(self._state, np.array([int(seed) % 2**64], np.uint64), ALL)

    @contextmanager
    def _rolled_back_on_error(self) -> Iterator[None]:
        before = self._state.copy()
        try:
            yield
        except BaseException:
            self._state = before
            raise

    def action_number(self, action: Any) -> int:
        """Return *action* as an int: an integer, or an array or tensor of one, from 0 to the pass."""
        number = action
        if type(action) is not int:
            try:
                number = action.item() if hasattr(action, "item") else action
                number = -1 if isinstance(number, bool) else operator.index(number)
            except (TypeError, ValueError, RuntimeError):  # RuntimeError: torch's, for several elements
                number = -1
        if not 0 <= number <= self.rules.pass_action:
            raise InvalidAction(f"action {quoted(action)}: expected an integer from 0 to {self.rules.pass_action}")
        return int(number)

    def _refuse_if_illegal(self, action: int, mask: np.ndarray) -> None:
        if not mask[action]:
            legal = ", ".join(f"{number} ({self.rules.name_of(int(number))})" for number in np.flatnonzero(mask))
            name = self.rules.name_of(action)
            raise InvalidAction(f"action {action} ({name}) is illegal: expected one of {legal}, see the action mask")

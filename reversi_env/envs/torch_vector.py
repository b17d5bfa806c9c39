"""The tensor environment: many games whose state, observations, masks and rewards are torch tensors on a GPU or on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from reversi_env.envs.opponents import BUILT_IN
from reversi_env.envs.settings import (
    RESET_OPTIONS,
    Settings,
    SettingsError,
    UnknownOptionError,
    check_shaping_has_opponent,
    checked_autoreset_mode,
    checked_states,
    game_seeds,
    no_start_error,
    reset_mask,
    shared_seed,
    warn_unknown_options,
)
from reversi_env.envs.torch_batch import HostBatch
from reversi_env.errors import check_integer, extra_libraries, quoted
from reversi_env.kernels import autoreset, episodes

with extra_libraries():
    import torch

if TYPE_CHECKING:
    from reversi_env.gpu.episodes import DeviceBatch

Layout = Literal["planes", "half", "packed"]
#: Attributes that a copy of the environment creates, and the tensors of the last step that it copies.
_MEMORY = ("_batch", "_infos", "_truncated", "_terminated")
_LAST_STEP = ("flags", "rewards", "final_boards")
StepResult = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]


class TorchVectorEnv(VectorEnv):
    """A Gymnasium `VectorEnv` of games as torch tensors, one kernel launch per step; on the CPU the same games bit for bit.

    Environment *i* of ``reset(seed=s)`` plays the episodes of `ReversiEnv` with ``seed=s + i``, and of `ReversiVectorEnv`
    with ``autoreset_mode="SAME_STEP"``: where a step ends an episode, the next one begins in the same step, and the
    observation is already its first one.

    **Devices.** ``device="cuda"`` (or ``"cuda:1"``) needs the extra ``cuda`` and a GPU; a `MissingExtra` or a `GpuError`
    says which is missing. ``"cpu"`` runs the CPU kernels, on several threads for many games (``parallel`` as in
    `ReversiVectorEnv`). ``"auto"`` (default) is the GPU if torch sees one; `device` is the one in use. On a GPU every call
    returns when its kernel is queued on torch's current stream, like any torch operation.

    **Options.** ``opponent``: None (two-player mode: each action is for the side to move), ``"random"`` or ``"greedy"``.
    ``size``, ``variant``, ``colour``, ``start``, ``opening_plies``, ``empties``, ``reward``, ``discount`` and ``illegal``
    are those of `ReversiEnv`, without ``illegal="raise"``, which would wait for the device. A number out of range counts as an
    illegal action.

    **Tensors** (*N* environments, *S* the board's side, boards from the side to move or, with an opponent, the agent's):

    =================== ===================== ==================================================================================
    observations        uint8 (N, 2, S, S)    ``layout="planes"``: own discs, opponent's discs, as 0 and 1
    observations        float16 (N, 2, S, S)  ``layout="half"``: the same, for the first layer of a network
    observations        int64 (N, 2)          ``layout="packed"``: own and opponent's discs as bits of the 8x8 frame, a1 lowest;
                                              these are the state itself, nothing is written
    rewards             float32 (N,)          of the player that acted (two-player mode) or of the agent
    terminated          bool (N,)             whether this step has ended an episode
    truncated           bool (N,)             never
    action_mask         bool (N, S*S+1)       in the infos, not for ``"packed"``: legal actions, the last one the pass, which is
                                              legal where no square is
    legal               int64 (N,)            in the infos: legal squares as bits of the frame, 0 where only the pass is legal
    boards              int64 (N, 2)          in the infos: the packed boards, for every layout
    to_move             uint8 (N,)            in the infos: 0 black, 1 white
    agent               uint8 (N,)            in the infos, with an opponent: the agent's colour
    illegal_action      bool (N,)             in the infos: whether this step's action was illegal
    final_boards        int64 (N, 2)          in the infos: the last finished episode's end, valid where one has ended: `terminated`
                                              marks those that this step has ended
    final_score         int8 (N,)             in the infos: its result in discs for the player that acted, or for the agent
    winner              int8 (N,)             in the infos: who won it: 0 black, 1 white, -1 nobody
    =================== ===================== ==================================================================================

    All are **the environment's own memory, overwritten by the next step**: clone what you keep. (A `copy` or pickle of the
    environment has its own memory.) For numpy arrays, wrap it in Gymnasium's ``ArrayConversion``.

    >>> import torch
    >>> envs = TorchVectorEnv(256, device="cpu", size=6)
    >>> observations, infos = envs.reset(seed=1)
    >>> logits = torch.zeros(256, 37).masked_fill(~infos["action_mask"], -torch.inf)
    >>> observations, rewards, terminated, truncated, infos = envs.step(logits.argmax(-1))
    >>> observations.shape, observations.dtype
    (torch.Size([256, 2, 6, 6]), torch.uint8)
    >>> observations, *_ = envs.random_step()  # legal moves drawn by the environments themselves
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        opponent: str | None = None,
        device: str | torch.device = "auto",
        layout: Layout = "planes",
        parallel: bool | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        max_episode_steps: int | None = None,
        **settings: Any,
    ) -> None:
        check_integer("num_envs", num_envs, 1, error=SettingsError)
        if checked_autoreset_mode(autoreset_mode) != AutoresetMode.SAME_STEP:
            raise SettingsError(f"autoreset_mode={quoted(autoreset_mode)}: expected SAME_STEP, the only mode here")
        if layout not in get_args(Layout):
            raise SettingsError(f"layout={quoted(layout)}: expected one of {', '.join(map(repr, get_args(Layout)))}")
        self.num_envs, self.layout, self.opponent = int(num_envs), layout, opponent
        self.settings = _checked_settings(settings)
        self.rules = self.settings.rules
        max_plies = 2 * self.rules.square_count  # no pass follows a pass
        if max_episode_steps is not None and max_episode_steps < max_plies:
            raise SettingsError(f"max_episode_steps={quoted(max_episode_steps)}: expected None, or {max_plies} or more")
        self.autoreset_mode = AutoresetMode.SAME_STEP
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = _observation_space(layout, self.rules.size)
        self.single_action_space = spaces.Discrete(self.rules.square_count + 1)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._kind = _opponent_kind(opponent)
        check_shaping_has_opponent(self.settings, int(opponent is not None))
        self._requested_device, self.parallel = _device(device), parallel
        self._set_up()
        self._begun = False
        entropy = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        self._batch.reset(np.full(self.num_envs, autoreset.SEED, np.uint8), entropy, self.settings.game())

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Begin an episode in every game, and wait for the device. *options* are those of `ReversiVectorEnv`.

        *seed*: one number (environment *i* gets ``seed + i``) or one per game; None: the generators continue.
        """
        settings = self.settings.with_options(options)
        warn_unknown_options(options, (*RESET_OPTIONS, "reset_mask"))
        which = reset_mask(options, self.num_envs, self._begun)
        seeds, seeded = game_seeds(seed, self.num_envs)
        super().reset(seed=shared_seed(seed, self.num_envs))
        orders = np.where(which, autoreset.BEGIN + autoreset.SEED * seeded, 0).astype(np.uint8)
        self._batch.reset(orders, seeds, settings.game())
        if (self.get_state()["failed"][which] != 0).any():
            self._begun = False
            raise no_start_error(settings)
        self._begun = True
        return self.observations, self.infos

    def step(self, actions: Any) -> StepResult:
        """Play one action in every game: a tensor of integers, or anything that torch converts to one."""
        self._require_begun("step")
        self._batch.step(self._checked(actions))
        return self._result()

    def random_step(self) -> StepResult:
        """Play a uniformly random legal action in every game, each from the game's own generator."""
        self._require_begun("random_step")
        self._batch.step(None)
        return self._result()

    @property
    def observations(self) -> torch.Tensor:
        """The current observations, in the environment's layout."""
        return self._batch.boards if self.layout == "packed" else self._batch.planes

    @property
    def infos(self) -> dict[str, torch.Tensor]:
        """The tensors of the infos by name, in a new dictionary."""
        return dict(self._infos)

    @property
    def boards(self) -> torch.Tensor:
        """Own and opponent's discs, int64 (N, 2), bits of the 8x8 frame."""
        return self._batch.boards

    @property
    def legal(self) -> torch.Tensor:
        """Legal squares, int64 (N,), bits of the 8x8 frame; 0 where only the pass is legal."""
        return self._batch.legal

    def children(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the positions after every action, without a step, as new tensors.

        Boards, int64 (2, N, squares), seen by the *next* side to move, and the numbers of flipped discs, int8 (N, squares). An
        illegal move has empty boards and flips none.
        """
        return self._batch.children()

    def get_state(self) -> np.ndarray:
        """Return the complete states of all episodes as records on the CPU, the same as those of `ReversiVectorEnv`."""
        states = self._batch.get_states()
        states["game"] = self.settings.game_number
        return states

    def set_state(self, states: np.ndarray) -> None:
        """Restore states from `get_state` of this class, on any device, or of `ReversiVectorEnv`."""
        pool = np.zeros(0 if self.opponent is None else 1, episodes.POOL)
        pool["kind"] = self._kind
        self._batch.set_states(checked_states(states, self.num_envs, self.settings, pool))
        self._begun = True

    def __getstate__(self) -> dict[str, Any]:
        """Return the games and their last step, copied to the CPU, for `copy` and `pickle`."""
        kept = {name: value for name, value in self.__dict__.items() if name not in _MEMORY}
        tensors = {name: getattr(self._batch, name).cpu().clone() for name in _LAST_STEP}
        return kept | {"states": self.get_state(), "last_step": tensors}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        states, last_step = kept.pop("states"), kept.pop("last_step")
        self.__dict__.update(kept)
        self._set_up()
        self._batch.set_states(states)
        for name, tensor in last_step.items():
            getattr(self._batch, name).copy_(tensor)

    def _set_up(self) -> None:
        self._batch = self._make_batch()
        self.device = self._batch.rewards.device
        self._infos = self._named_tensors()
        self._truncated = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._terminated = self._batch.flags[autoreset.TERMINATED].view(torch.bool)

    def _make_batch(self) -> HostBatch | DeviceBatch:
        arguments = (self.num_envs, self.settings, self._kind, self.layout)
        if self._requested_device.type == "cpu":
            return HostBatch(*arguments, parallel=self.parallel)
        from reversi_env.gpu.episodes import DeviceBatch, usable_device

        return DeviceBatch(*arguments, device=usable_device(self._requested_device))

    def _named_tensors(self) -> dict[str, torch.Tensor]:
        flags = self._batch.flags
        named = {
            "action_mask": self._batch.masks,
            "legal": self._batch.legal,
            "boards": self._batch.boards,
            "to_move": flags[autoreset.TO_MOVE],
            "agent": flags[autoreset.AGENT],
            "illegal_action": flags[autoreset.ILLEGAL].view(torch.bool),
            "final_boards": self._batch.final_boards,
            "final_score": flags[autoreset.FINAL_SCORE].view(torch.int8),
            "winner": flags[autoreset.WINNER].view(torch.int8),
        }
        if self.layout == "packed":
            del named["action_mask"]
        if self.opponent is None:
            del named["agent"]
        return named

    def _result(self) -> StepResult:
        return self.observations, self._batch.rewards, self._terminated, self._truncated, self.infos

    def _require_begun(self, name: str) -> None:
        if not self._begun:
            raise ResetNeeded(f"no episode has begun: call reset() before {name}()")

    def _checked(self, actions: Any) -> torch.Tensor:
        try:
            tensor = torch.as_tensor(actions, device=self.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidAction(f"actions {quoted(actions)}: expected {self.num_envs} integers") from error
        is_integer = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
        if tensor.shape != (self.num_envs,) or not is_integer:
            kind = f"{tensor.dtype} and shape {tuple(tensor.shape)}"
            raise InvalidAction(f"actions of {kind}: expected {self.num_envs} integers")
        return tensor.to(torch.int64).contiguous()


def _observation_space(layout: Layout, size: int) -> spaces.Box:
    if layout == "packed":
        limits = np.iinfo(np.int64)
        return spaces.Box(limits.min, limits.max, (2,), np.int64)
    return spaces.Box(0, 1, (2, size, size), np.uint8 if layout == "planes" else np.float16)


def _checked_settings(settings: dict[str, Any]) -> Settings:
    for name in settings.keys() & {"observation", "extra_planes", "dtype", "channels_last"}:
        raise UnknownOptionError(f"unexpected keyword argument {name!r}: expected layout='planes', 'half' or 'packed'")
    checked = Settings.of(settings)
    if checked.illegal == "raise":
        raise SettingsError("illegal='raise' would wait for the device after every step: expected 'lose' or 'random'")
    return checked


def _opponent_kind(opponent: str | None) -> int:
    if opponent is None:
        return episodes.NO_OPPONENT
    if not isinstance(opponent, str) or opponent not in BUILT_IN:
        raise SettingsError(f"opponent={quoted(opponent)}: expected None, {' or '.join(map(repr, BUILT_IN))}")
    return BUILT_IN[opponent]


def _device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with suppress(RuntimeError, TypeError):
        checked = torch.device(device)
        if checked.type in ("cuda", "cpu"):
            return checked
    raise SettingsError(f"device={quoted(device)}: expected 'auto', 'cuda' or 'cpu'")

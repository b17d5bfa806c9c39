"""A batch of episodes in a GPU's memory: torch tensors that the kernels work on, launched on torch's current stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from reversi_env.core import episodes, rollout
from reversi_env.envs.settings import Settings
from reversi_env.extras import extra_libraries
from reversi_env.gpu.driver import SIMULATED, GpuError, cuda, launcher, require_gpu, shared_array

with extra_libraries():
    import torch

LAYOUTS = {"packed": PACKED, "planes": BYTES, "half": HALVES}
#: What a reset may change of a game, in the order of `rollout.set_start`.
START_FIELDS = ["start_own", "start_opp", "start_turn", "opening_plies", "empties", "colour"]


def usable_device(device: torch.device) -> torch.device:
    """The device with its number, if both torch and numba can use it; the CPU where numba simulates a GPU."""
    require_gpu()
    if SIMULATED:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise GpuError(f"device={str(device)!r}: torch {torch.__version__} sees no GPU; expected a build with CUDA")
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise GpuError(f"device={str(device)!r}: torch sees {torch.cuda.device_count()} GPU(s), numbered from 0")
    return torch.device("cuda", index)


class DeviceBatch:
    """The twin of `HostBatch`. Methods return when the work is queued; the tensors are right for whatever torch queues next."""

    def __init__(self, count: int, settings: Settings, kind: int, layout: str, *, device: torch.device) -> None:
        self._count, self._kind, self._game = count, kind, settings.game()
        self._device = device
        squares, size, code = settings.rules.square_count, settings.size, LAYOUTS[layout]
        plane_words, mask_words = word_counts(squares, code, count)
        rows = 0 if layout == "packed" else count

        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self._words, self.flags = zeros(rollout.WORDS, count), zeros(rollout.FLAGS, count, dtype=torch.uint8)
        self.rewards = zeros(count, dtype=torch.float32)
        # At least one word each: an array of none has no address.
        planes, masks = zeros(max(plane_words, 1)), zeros(max(mask_words, 1))
        self.boards, self.legal = self._words[: rollout.LEGAL].T, self._words[rollout.LEGAL]
        self.final_boards = self._words[rollout.FINAL_OWN :].T
        numbers = planes.view(torch.float16 if layout == "half" else torch.uint8)
        self.planes = numbers[: rows * 2 * squares].view(rows, 2, size, size)
        flat_masks = masks.view(torch.uint8)[: rows * (squares + 1)]
        self.masks = flat_masks.view(torch.bool).view(rows, squares + 1)

        self._state_arguments = (
            shared_array(self._words, np.uint64),
            shared_array(self.flags),
            shared_array(self.rewards),
        )
        self._observation_arguments = (shared_array(planes, np.uint64), shared_array(masks, np.uint64))
        self._no_actions = shared_array(zeros(1))
        constants = tuple(value.item() for value in self._game[0])
        self._kernels = kernels_for(constants, kind, code)
        self._block = block_size(squares, code)
        self._only_gpu = SIMULATED or torch.cuda.device_count() == 1

    def reset(self, orders: np.ndarray, seeds: np.ndarray, game: np.ndarray) -> None:
        """Carry out the orders (`rollout.BEGIN`, `rollout.SEED`) with the given seeds, on *game*."""
        start = game[START_FIELDS].tolist()[0]
        numbers = np.array([number % 2**64 for number in start], np.uint64)
        # The tensors may go when this returns: torch gives their memory to nobody before the kernel is through.
        arrays = [shared_array(torch.from_numpy(a.view(np.int64)).to(self._device)) for a in (numbers, seeds)]
        order_array = shared_array(torch.from_numpy(orders).to(self._device))
        arguments = (arrays[0], order_array, arrays[1])
        self._launch("reset", *self._state_arguments, *arguments, *self._observation_arguments)

    def step(self, actions: torch.Tensor | None) -> None:
        """Play the actions (int64), or random ones for None: one launch."""
        given, name = (self._no_actions, "random_step") if actions is None else (shared_array(actions), "step")
        self._launch(name, *self._state_arguments, given, *self._observation_arguments)

    def children(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The boards after every move, int64 (2, N, squares), and the discs turned, int8 (N, squares)."""
        shape = (self._count, int(self._game["squares"][0]))
        boards = torch.empty((2, *shape), dtype=torch.int64, device=self._device)
        turned = torch.empty(shape, dtype=torch.int8, device=self._device)
        arguments = (self._state_arguments[0], shared_array(boards, np.uint64), shared_array(turned))
        self._launch("expand", *arguments, threads=turned.numel())
        return boards, turned

    def get_states(self) -> np.ndarray:
        """The states as `STATE` records on the CPU."""
        states = np.zeros(self._count, episodes.STATE)
        words = self._words.cpu().numpy().view(np.uint64)
        rollout.words_to_states(words, self._game, self._kind, states)
        return states

    def set_states(self, states: np.ndarray) -> None:
        """Go on from these records."""
        words = np.zeros((rollout.WORDS, self._count), np.uint64)
        rollout.states_to_words(states, words)
        self._words[: rollout.FINAL_OWN] = torch.from_numpy(words[: rollout.FINAL_OWN].view(np.int64)).to(self._device)
        for row, name in ((rollout.TO_MOVE, "turn"), (rollout.AGENT, "agent")):
            self.flags[row] = torch.from_numpy(states[name].astype(np.uint8)).to(self._device)
        nothing = np.zeros(self._count, np.uint8)
        self.reset(nothing, nothing.astype(np.uint64), self._game)  # writes the observations

    def _launch(self, name: str, *arguments: Any, threads: int = 0) -> None:
        handle = 0 if SIMULATED else torch.cuda.current_stream(self._device).cuda_stream
        blocks = ((threads or self._count) + self._block - 1) // self._block
        kernel = launcher(getattr(self._kernels, name), blocks, self._block, handle)
        if self._only_gpu:
            kernel(*arguments)
        else:
            with cuda.gpus[self._device.index]:
                kernel(*arguments)

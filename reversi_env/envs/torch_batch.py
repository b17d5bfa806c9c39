"""A batch of episodes in the CPU's memory, shared with torch tensors: the backend of `TorchVectorEnv` without a GPU."""

import numpy as np

from reversi_env.envs.settings import Settings
from reversi_env.errors import extra_libraries
from reversi_env.kernels import autoreset, episodes, observations

with extra_libraries():
    import torch


class HostBatch:
    """The kernels' own arrays, and tensors on the same memory. Every method's results are in the tensors when it returns."""

    def __init__(self, count: int, settings: Settings, kind: int, layout: str, *, parallel: bool | None) -> None:
        self._kind, self._parallel, self._layout = kind, parallel, layout
        self._game, self._squares = settings.game(), settings.squares()
        squares, size = self._squares.size, settings.size
        self._states = np.zeros(count, episodes.STATE)
        self._states["over"] = 1
        self._flags = np.zeros((autoreset.FLAGS, count), np.uint8)
        self._rewards = np.zeros(count, np.float32)
        self._finals = np.zeros((count, 2), np.uint64)
        self._no_actions = np.zeros(1, np.int64)
        rows = 0 if layout == "packed" else count
        self._planes = np.zeros((rows, 2 * squares), np.int8)
        self._masks = np.zeros((rows, squares + 1), np.int8)

        words = torch.from_numpy(self._states.view(np.int64).reshape(count, -1))
        self.boards, self.legal = words[:, :2], words[:, 2]  # the record begins with own, opp, legal
        self.flags, self.rewards = torch.from_numpy(self._flags), torch.from_numpy(self._rewards)
        self.final_boards = torch.from_numpy(self._finals.view(np.int64))
        self.masks = torch.from_numpy(self._masks.view(np.bool_))
        self._bytes = torch.from_numpy(self._planes.view(np.uint8)).view(rows, 2, size, size)
        self._halves = torch.zeros(self._bytes.shape, dtype=torch.float16) if layout == "half" else None
        self.planes = self._bytes if self._halves is None else self._halves

    def reset(self, orders: np.ndarray, seeds: np.ndarray, game: np.ndarray) -> None:
        """Carry out the orders (`autoreset.BEGIN`, `autoreset.SEED`) with these seeds and the start of *game*."""
        written = (self._rewards, self._flags)
        autoreset.reset_rows(
            orders.size, self._states, game, self._kind, orders, seeds, *written, parallel=self._parallel
        )
        self._observe()

    def step(self, actions: torch.Tensor | None) -> None:
        """Play the actions (int64), or random ones for None."""
        action_array = self._no_actions if actions is None else actions.numpy()
        written = (self._rewards, self._flags, self._finals)
        played = (self._states, self._game, actions is None, action_array)
        autoreset.step_rows(self._states.size, *played, *written, parallel=self._parallel)
        self._observe()

    def children(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The boards after every move, int64 (2, N, squares), and the numbers of flipped discs, int8 (N, squares)."""
        shape = (self._states.size, self._squares.size)
        boards, flipped = np.empty((2, *shape), np.uint64), np.empty(shape, np.int8)
        autoreset.expand_rows(self._states.size, self._states, self._squares, boards, flipped, parallel=self._parallel)
        return torch.from_numpy(boards.view(np.int64)), torch.from_numpy(flipped)

    def get_states(self) -> np.ndarray:
        return self._states.copy()

    def set_states(self, states: np.ndarray) -> None:
        self._states[:] = states
        self._flags[autoreset.TO_MOVE], self._flags[autoreset.AGENT] = states["turn"], states["agent"]
        self._observe()

    def _observe(self) -> None:
        if self._layout == "packed":
            return
        to_move = self._flags[autoreset.TO_MOVE].view(np.int8)
        rows = (self._states, self._squares, self._planes, self._masks, to_move)
        observations.observe_planes(self._states.size, *rows, parallel=self._parallel)
        if self._halves is not None:
            self._halves.copy_(self._bytes)

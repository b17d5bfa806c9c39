"""Exact scores of many positions on a GPU. At the same time the CPU solves the few positions that take too long on the GPU."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from reversi_env import ReversiError, Rules
from reversi_env.batch import checked_boards
from reversi_env.errors import extra_libraries
from reversi_env.gpu.driver import SIMULATED, shared_array
from reversi_env.gpu.episodes import usable_device
from reversi_env.rules import checked_rules
from search.engine.solver import MAX_GPU_EMPTIES, solve_batch
from search.engine.threads import make_thread_states
from search.gpu import endgame

with extra_libraries():
    import torch

#: Positions of one launch: many more than the GPU has threads, so that few threads are idle at the end.
LAUNCH_POSITIONS = 1 << 20
#: Entries of the GPU's table, 16 bytes each.
TABLE_ENTRIES = 1 << 24
#: Turns of the kernel's loop after which a position with twelve empties is left to the CPU, and their growth per further empty
#: square: six times the mean of random positions.
TURNS_AT_TWELVE, TURNS_GROWTH = 250_000, 2.85
#: Blocks per multiprocessor that its shared memory has room for.
BLOCKS_ON_A_MULTIPROCESSOR = 4


def solve_batch_cuda(
    own: np.ndarray,
    opp: np.ndarray,
    rules: Rules | None = None,
    *,
    device: str = "cuda",
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> np.ndarray:
    """Return exact scores (int8, side to move) of arrays of positions with at most 16 empties: `solve_batch` on a GPU.

    *threads* of the CPU solve the positions that take too long on the GPU. *progress* is called with the number of positions
    solved so far.
    """
    rules = checked_rules(rules)
    own, opp = checked_boards(own, opp, rules)
    empties = rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
    if own.size and empties.max() > MAX_GPU_EMPTIES:
        row = int(np.argmax(empties))
        raise ReversiError(f"position {row} has {empties[row]} empties: expected at most {MAX_GPU_EMPTIES} on a GPU")
    job = _Job(rules, usable_device(torch.device(device)))
    scores = np.zeros(own.size, np.int8)
    on_cpu: list[tuple[np.ndarray, Future[np.ndarray]]] = []
    done = 0
    with ThreadPoolExecutor(1) as cpu:
        for rows in _launches(empties):
            scores[rows] = job.launch(own[rows], opp[rows], int(empties[rows].max()))
            unsolved = rows[scores[rows] == endgame.UNSOLVED]
            if unsolved.size:
                future = cpu.submit(solve_batch, own[unsolved], opp[unsolved], rules, threads=threads)
                on_cpu.append((unsolved, future))
            done += rows.size - unsolved.size
            progress(done)
        for unsolved, future in on_cpu:
            scores[unsolved] = future.result()
            done += unsolved.size
            progress(done)
    return scores


def _launches(empties: np.ndarray) -> Iterator[np.ndarray]:
    order = np.argsort(-empties, kind="stable")
    for start in range(0, order.size, LAUNCH_POSITIONS):
        yield order[start : start + LAUNCH_POSITIONS]


class _Job:
    """The game, the device and its table of bounds, which all launches of a call share."""

    def __init__(self, rules: Rules, device: torch.device) -> None:
        self.rules, self.device = rules, device
        entries = 1 << 10 if SIMULATED else TABLE_ENTRIES
        self.table = torch.zeros((entries, 2), dtype=torch.int64, device=device)
        thread = make_thread_states(rules, 1)[0]
        self.corners = np.uint64(thread["corners"] if thread["corner_reply"] else 0)
        self.grid = (1, 4) if SIMULATED else (self._blocks(), endgame.BLOCK)

    def launch(self, own: np.ndarray, opp: np.ndarray, max_empties: int) -> np.ndarray:
        """Return the scores of positions, or UNSOLVED."""
        boards = [torch.from_numpy(array.view(np.int64)).to(self.device) for array in (own, opp)]
        scores = torch.zeros(own.size, dtype=torch.int8, device=self.device)
        ticket = torch.zeros(1, dtype=torch.int64, device=self.device)
        limit = int(TURNS_AT_TWELVE * TURNS_GROWTH ** max(max_empties - 12, 0))
        endgame.solve_positions[self.grid](
            *(shared_array(board, np.uint64) for board in boards),
            np.uint64(self.rules.playable),
            np.int64(self.rules.sign),
            self.corners,
            np.int64(limit),
            shared_array(self.table, np.uint64),
            shared_array(scores),
            shared_array(ticket),
        )
        return scores.cpu().numpy()

    def _blocks(self) -> int:
        return BLOCKS_ON_A_MULTIPROCESSOR * torch.cuda.get_device_properties(self.device).multi_processor_count

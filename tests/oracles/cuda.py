"""Compare GPU kernels with the CPU in a separate process, on a GPU or on a simulator.

``python -m tests.oracles.cuda games|solver|trees JOB …`` prints a line for each job. numba reads ``NUMBA_ENABLE_CUDASIM=1`` and
triton ``TRITON_INTERPRET=1`` when they are imported.
"""

from __future__ import annotations

import copy
import sys
import threading
import time
import warnings
from importlib import import_module

import numpy as np
import pytest
import torch

from models.bitboards import planes
from models.mcts.search import TreeSearch, kernels_for
from reversi_env import ReversiError, Rules, batch, functional
from reversi_env.envs.torch_vector import TorchVectorEnv
from search.engine.solver import solve_batch

HAS_GPU = torch.cuda.is_available()
#: Environment variables that make numba or triton run GPU kernels on the CPU; empty if there is a GPU.
NUMBA_SIMULATES = {} if HAS_GPU else {"NUMBA_ENABLE_CUDASIM": 1}
TRITON_SIMULATES = {} if HAS_GPU else {"TRITON_INTERPRET": 1}
#: Size of the batch: one full and one partial block of the simulator; the masks' bytes are no multiple of eight.
COUNT = 17
#: Seconds between two polls of a block's threads by the simulator.
PAUSE = 0.0003


def repair_simulator():
    """Patch the simulator of numba-cuda 0.30, which is otherwise incorrect and slow."""
    kernelapi = import_module("numba.cuda.simulator.kernelapi")
    lock = threading.Lock()

    def shared_array(self, shape, dtype, alignment=None):
        """Return a block's shared array. The original has no lock and searches the whole traceback for the line."""
        frame = sys._getframe(1)
        line = (frame.f_code.co_filename, frame.f_lineno)
        with lock:
            if line not in self._allocations:
                kind = kernelapi.numpy_support.as_dtype(dtype) if isinstance(dtype, kernelapi.types.Type) else dtype
                self._allocations[line] = np.empty(shape, kind)
            return self._allocations[line]

    def set_after_a_pause(*elements):
        """Replace the ``set`` at the start of each pass of numba's thread loop, which would otherwise hold the GIL."""
        time.sleep(PAUSE)
        return set(*elements)

    kernelapi.FakeCUDAShared.array = shared_array
    import_module("numba.cuda.simulator.kernel").set = set_after_a_pause


def numba_device():
    """Return the device of the kernels' tensors: "cpu" for the simulator."""
    from reversi_env.gpu.driver import SIMULATED

    if SIMULATED:
        repair_simulator()
    return "cpu" if SIMULATED else "cuda"


def assert_same(results, expected):
    for one, other in zip(results, expected, strict=True):
        if isinstance(one, dict):
            assert one.keys() == other.keys()
            for name in one:
                assert one[name].dtype == other[name].dtype, name
                assert torch.equal(one[name].cpu(), other[name].cpu()), name
        else:
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert torch.equal(one.cpu(), other.cpu())


def first_legal(envs):
    """Return the first legal action of every game, or the first square for packed boards, which have no mask."""
    masks = envs.infos.get("action_mask", torch.zeros(COUNT, 1, dtype=torch.bool))
    return masks.to(torch.uint8).argmax(-1)


def play(kernel_device, size, variant, opponent, layout, steps, resets, **options):
    """Compare random steps and given, partly illegal actions, then optionally *resets*; return the number of ended episodes."""
    options |= {"size": size, "variant": variant, "opponent": opponent, "layout": layout, "colour": "random"}
    simulated, cpu = (TorchVectorEnv(COUNT, device=device, **options) for device in ("cuda", "cpu"))
    ended = 0
    assert_same(simulated.reset(seed=9), cpu.reset(seed=9))
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        if step % 4:
            result, expected = simulated.random_step(), cpu.random_step()
        else:
            wild = torch.randint(-2, size * size + 4, (COUNT,), generator=generator)
            actions = torch.where(torch.rand(COUNT, generator=generator) < 0.9, first_legal(cpu), wild)
            result, expected = simulated.step(actions.to(kernel_device)), cpu.step(actions)
        assert_same(result, expected)
        ended += int(expected[2].sum())
    assert (simulated.get_state() == cpu.get_state()).all()
    if resets:
        check_resets(simulated, cpu)
    return ended


def check_resets(simulated, cpu):
    """Compare partial resets, other starts, lists of seeds, and states moved between the devices."""
    mask = torch.arange(COUNT) % 3 == 0
    options = {"reset_mask": mask, "empties": 3, "colour": "white" if cpu.opponent else "black"}
    assert_same(simulated.reset(options=options), cpu.reset(options=options))
    seeds = [None if i % 2 else 2**63 + i for i in range(COUNT)]
    assert_same(simulated.reset(seed=seeds), cpu.reset(seed=seeds))
    cpu.random_step()
    simulated.set_state(cpu.get_state())
    assert (simulated.get_state() == cpu.get_state()).all()
    assert_same(simulated.random_step()[:4], cpu.random_step()[:4])
    simulated, cpu = copy.deepcopy((simulated, cpu))
    assert_same(simulated.random_step()[:4], cpu.random_step()[:4])
    assert_same(simulated.children(), cpu.children())


def check_states(kernel_device, size, variant):
    """Compare `reversi_env.gpu.states` with the CPU after every kind of action, for rows and broadcast.

    On the CPU a number that is no action is an error. On a GPU it forfeits the game, like a move to an occupied square.
    """
    from reversi_env.gpu import states

    rules = Rules(size, variant)
    occupied = size * size // 2 + size // 2

    def step_on_cpu(state, actions):
        return functional.step(state, torch.where((actions < 0) | (actions > size * size), occupied, actions))

    cpu = functional.init(COUNT, rules, seed=3, empties=3, device="cpu")
    for step in range(3):
        wild = torch.arange(COUNT) * 5 % (size * size + 3) - 1
        actions = torch.where(torch.arange(COUNT) % 4 == step, wild, functional.legal(cpu).to(torch.uint8).argmax(-1))
        result = states.step(functional.to(cpu, kernel_device), actions.to(kernel_device))
        cpu = step_on_cpu(cpu, actions)
        assert_same(result, cpu)
    gpu = functional.clone(functional.to(cpu, kernel_device))
    for name in ("legal", "observe", "score"):
        assert_same([getattr(states, name)(gpu)], [getattr(functional, name)(cpu)])
    assert set(cpu.status.tolist()) == {0, 1, 2}
    symmetries = torch.arange(COUNT) % 8
    assert_same(states.symmetry(gpu, symmetries.to(kernel_device)), functional.symmetry(cpu, symmetries))
    rows, every = (slice(0, 2), None), torch.arange(3) + size * size - 2
    result = states.step(functional.take(gpu, rows), every.to(kernel_device))
    assert_same(result, step_on_cpu(functional.take(cpu, rows), every))
    assert_same(gpu, cpu)
    assert states.step(gpu, actions.to(kernel_device), out=gpu) is gpu
    assert_same(gpu, step_on_cpu(cpu, actions))


def run_games(jobs):
    """Print the number of ended episodes per job ``SIZE,VARIANT,OPPONENT,LAYOUT,STEPS``; any difference is an error."""
    device, sizes = numba_device(), set()
    for job in jobs:
        size, variant, opponent, layout, steps, *more = job.split(",")
        extra = dict(pair.split("=") for pair in more)
        extra = {name: float(value) if name == "discount" else value for name, value in extra.items()}
        opponent = None if opponent == "none" else opponent
        ended = play(device, int(size), variant, opponent, layout, int(steps), size not in sizes, **extra)
        if size not in sizes:
            check_states(device, int(size), variant)
        sizes.add(size)
        print(job, ended, flush=True)


def run_solver(jobs):
    """Print the numbers of wrong scores and of positions left to the CPU per job ``SIZE,VARIANT,EMPTIES,COUNT``.

    With ``,tired`` the kernel leaves a position to the CPU after a few turns.
    """
    numba_device()
    from search.gpu import endgame, solver

    board = np.array([1], np.uint64)
    with pytest.raises(ReversiError, match="62 empties"):
        solver.solve_batch_cuda(board, 2 * board)
    for job in jobs:
        size, variant, empties, count, *mode = job.split(",")
        rules = Rules(int(size), variant)
        own, opp = batch.random_positions(int(count), rules.square_count - 4 - int(empties), rules, seed=7)
        solver.TURNS_AT_TWELVE = 60 if "tired" in mode else 10**9
        left_over: list[int] = []
        launch = solver._Job.launch

        def counting(self, *arguments, launch=launch, left_over=left_over):
            scores = launch(self, *arguments)
            left_over.append(int((scores == endgame.UNSOLVED).sum()))
            return scores

        solver._Job.launch = counting
        done: list[int] = []
        scores = solver.solve_batch_cuda(own, opp, rules, progress=done.append)
        solver._Job.launch = launch
        assert done[-1] == own.size
        print(int((scores != solve_batch(own, opp, rules)).sum()), sum(left_over))


SEARCHES = [
    (8, "normal", {"simulations": 12, "max_considered_actions": 4}),
    (6, "reversed", {"simulations": 12, "method": "puct", "max_depth": 3}),
    (4, "reversed", {"simulations": 20, "max_depth": 2}),
    (4, "normal", {"simulations": 20, "method": "puct"}),
    (4, "normal", {"simulations": 17, "exact": 4}),
]


def random_function(size, seed=1, device="cpu"):
    """Return a network whose logits and values are a random function of the position, in double precision."""
    rules, generator = Rules(size), torch.Generator().manual_seed(seed)
    weights = torch.randn((128, rules.square_count + 1), dtype=torch.float64, generator=generator).to(device)

    def logits_and_values(own, opp):
        outputs = torch.cat([planes(own), planes(opp)], 1).to(torch.float64) @ weights
        return torch.sin(outputs[:, :-1]), 4 * torch.sin(outputs[:, -1])

    return logits_and_values


def run_trees(jobs):
    """Compare searches with and without kernels, with noise, in double precision, where rounding changes no choice.

    The only job is ``cuda``, for a GPU, with more games.
    """
    warnings.simplefilter("error", RuntimeWarning)  # a kernel that cannot run warns
    device = jobs[0] if jobs else "cpu"
    assert kernels_for(torch.device(device)), "no kernels: expected triton, and TRITON_INTERPRET=1 on a CPU"
    for size, variant, options in SEARCHES:
        rules, count = Rules(size, variant), 200 if device == "cuda" else 1
        plies = torch.arange(0, rules.square_count - 8, rules.square_count // 3).repeat(count)
        own, opp = batch.random_positions(len(plies), plies.numpy(), rules, seed=3)
        roots = functional.to(functional.from_boards(own, opp, rules), device)
        network = random_function(size, device=device)
        fast, plain = (TreeSearch(network, rules, compiled=compiled, **options) for compiled in (True, False))
        noise = plain.noise(len(roots.own), torch.Generator(device).manual_seed(5)).double()
        outputs, expected = fast.run(roots, noise), plain.run(roots, noise)
        for name, one, other in zip(outputs._fields, outputs, expected, strict=True):
            where = f"{name} of {size}x{size} {options}: "
            torch.testing.assert_close(one, other, msg=lambda text, where=where: where + text)
        print(size, variant, options, len(roots.own), "games alike", flush=True)


if __name__ == "__main__":
    {"games": run_games, "solver": run_solver, "trees": run_trees}[sys.argv[1]](sys.argv[2:])

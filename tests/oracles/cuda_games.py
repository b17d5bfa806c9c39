"""Run in a process of its own by `test_simulated`: the GPU's kernels against the CPU's, step by step.

``python -m tests.oracles.cuda_games SIZE,VARIANT,OPPONENT,LAYOUT,STEPS …`` prints how many episodes ended in each, and fails
at the first difference. On a GPU, or on numba's simulator with ``NUMBA_ENABLE_CUDASIM=1``, which numba reads when it is imported.
"""

from __future__ import annotations

import copy
import sys

import torch

from reversi_env import Rules, functional
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.gpu import states
from reversi_env.gpu.driver import SIMULATED

#: On the smaller boards a full block of the simulator's threads and one that is not (`kernels.block_size`); the masks' bytes
#: are no multiple of eight.
COUNT = 17
#: Where the kernels' tensors are: the simulator works on those of the CPU.
DEVICE = "cpu" if SIMULATED else "cuda"
if SIMULATED:
    import tests.oracles.cuda_repairs  # noqa: F401 - repairs the simulator


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
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
    """The first legal action of every game; for packed boards, which come without a mask, the first square."""
    masks = envs.infos.get("action_mask", torch.zeros(COUNT, 1, dtype=torch.bool))
    return masks.to(torch.uint8).argmax(-1)


def play(size, variant, opponent, layout, steps, **options):
    """Random steps, then given actions, some of them illegal or no actions at all; episodes that ended."""
    options |= {"size": size, "variant": variant, "opponent": opponent, "layout": layout, "colour": "random"}
    simulated, cpu = (TorchVectorEnv(COUNT, device=device, **options) for device in ("cuda", "cpu"))
    ended = 0
    assert_same(simulated.reset(seed=9), cpu.reset(seed=9))
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        if step % 4:
            found, expected = simulated.random_step(), cpu.random_step()
        else:
            wild = torch.randint(-2, size * size + 4, (COUNT,), generator=generator)
            actions = torch.where(torch.rand(COUNT, generator=generator) < 0.9, first_legal(cpu), wild)
            found, expected = simulated.step(actions.to(DEVICE)), cpu.step(actions)
        assert_same(found, expected)
        ended += int(expected[2].sum())
    assert (simulated.get_state() == cpu.get_state()).all()
    check_resets(simulated, cpu)
    return ended


def check_resets(simulated, cpu):
    """Some games only, other starts, seeds of their own, and states carried from one device to the other."""
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


def check_states(size, variant):
    """Pure states (`reversi_env.gpu.states`) after every kind of action, in rows and broadcast, against numpy's."""
    rules = Rules(size, variant)
    cpu = functional.init(COUNT, rules, seed=3, empties=3, device="cpu")
    for step in range(3):
        wild = torch.arange(COUNT) * 5 % (size * size + 3) - 1
        actions = torch.where(torch.arange(COUNT) % 4 == step, wild, functional.legal(cpu).to(torch.uint8).argmax(-1))
        found = states.step(functional.to(cpu, DEVICE), actions.to(DEVICE))
        cpu = functional.step(cpu, actions)
        assert_same(found, cpu)
    gpu = functional.clone(functional.to(cpu, DEVICE))
    for ask in ("legal", "observe", "score"):
        assert_same([getattr(states, ask)(gpu)], [getattr(functional, ask)(cpu)])
    assert set(cpu.status.tolist()) == {0, 1, 2}
    numbers = torch.arange(COUNT) % 8
    assert_same(states.symmetry(gpu, numbers.to(DEVICE)), functional.symmetry(cpu, numbers))
    rows, every = (slice(0, 2), None), torch.arange(3) + size * size - 2
    found = states.step(functional.take(gpu, rows), every.to(DEVICE))
    assert_same(found, functional.step(functional.take(cpu, rows), every))
    assert_same(gpu, cpu)
    assert states.step(gpu, actions.to(DEVICE), out=gpu) is gpu
    assert_same(gpu, functional.step(cpu, actions))


if __name__ == "__main__":
    sizes = set()
    for text in sys.argv[1:]:
        size, variant, opponent, layout, steps, *more = text.split(",")
        extra = dict(pair.split("=") for pair in more)
        extra = {name: float(value) if name == "discount" else value for name, value in extra.items()}
        count = play(int(size), variant, None if opponent == "none" else opponent, layout, int(steps), **extra)
        if size not in sizes:
            check_states(int(size), variant)
        sizes.add(size)
        print(text, count, flush=True)

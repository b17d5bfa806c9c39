"""`TorchVectorEnv`: plies per second and memory bandwidth, Pgx, equality with the CPU, play by a network; tokens per second."""

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice, product
from time import perf_counter
from typing import Any

import torch
from torch import nn

from benchmarks import peers
from benchmarks.timing import rate
from reversi_env import Rules, functional
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.kernels.parallel import shared_pool
from reversi_env.rules import Variant
from train.jobs.provenance import cpu_name
from train.sequences.labels import label_games
from train.sequences.options import StreamOptions
from train.sequences.streams import GameStream

GPU_BATCHES = (4096, 65_536, 2**20, 2**22)
CPU_BATCHES = (256, 4096, 65_536)
#: Games in a batch of tokens.
TOKEN_BATCHES = {"cpu": 1000, "cuda": 1 << 18}
#: Steps before a measurement, after which the games are at different plies.
WARM_UP_STEPS = 70
VARIANTS: tuple[Variant, ...] = ("normal", "reversed")
GAMES = tuple((size, variant) for size in (8, 6, 4) for variant in VARIANTS)


def device_name(device: str) -> str:
    """Return the GPU's name and CUDA's version, or the processor's name."""
    if device == "cpu":
        return cpu_name()
    return f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"


def wait_for(device: str) -> None:
    """Wait until all queued work is done."""
    if device == "cuda":
        torch.cuda.synchronize()


def copy_bandwidth(device: str) -> float:
    """Return bytes per second that torch reads and writes when it copies a large tensor, best of ten."""
    count = 2**31 if device == "cuda" else 2**27
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> int:
        target.copy_(source)
        wait_for(device)
        return 2 * count

    return rate(copy, 10)


def bytes_per_ply(size: int = 8) -> int:
    """Return the bytes of a step per environment: planes, mask, five words of state twice, reward, four flags."""
    squares = size * size
    return 2 * squares + (squares + 1) + 2 * 5 * 8 + 4 + 4


def plies_per_second(device: str, batch: int, *, given_actions: bool = False, repeats: int = 3) -> float:
    """Return plies per second of 8x8 two-player games, uint8 planes and masks written at every step, best of *repeats*.

    Random legal moves are drawn inside the step's launch. With ``given_actions=True`` every step gets the actions of the first
    step; most of them are illegal and replaced by a random move.
    """
    envs = TorchVectorEnv(batch, device=device, illegal="random" if given_actions else "lose", parallel=True)
    envs.reset(seed=1)
    _, _, _, _, infos = envs.random_step()
    actions = infos["action_mask"].to(torch.uint8).argmax(-1)
    step: Callable[[], Any] = (lambda: envs.step(actions)) if given_actions else envs.random_step
    for _ in range(WARM_UP_STEPS):
        step()
    wait_for(device)
    steps = _steps_of_about_a_second(step, device)

    def run() -> int:
        for _ in range(steps):
            step()
        wait_for(device)
        return batch * steps

    return rate(run, repeats)


def _steps_of_about_a_second(step: Callable[[], Any], device: str) -> int:
    began = perf_counter()
    for _ in range(20):
        step()
    wait_for(device)
    return max(20, min(2000, int(20 / (perf_counter() - began))))


def pgx_rate(device: str) -> dict[str, Any] | str:
    """Return plies per second of Pgx's Othello on the same device, in another process, or why there are none."""
    try:
        rate = peers.measured("pgx", device)
    except RuntimeError as error:
        return f"failed: {error}"
    if rate is None:
        return f"not installed: {', '.join(name for name in peers.MODULES['pgx'] if not find_spec(name))}"
    if device == "cuda" and rate["backend"] != "gpu":
        return f"jax runs on {rate['backend']}, not on the GPU"
    return rate


def _different(pairs: Mapping[str, tuple[torch.Tensor, torch.Tensor]]) -> set[str]:
    return {name for name, (ours, theirs) in pairs.items() if not torch.equal(ours.cpu(), theirs.cpu())}


def equal_to_cpu(device: str, plies: int, batch: int = 65_536) -> Iterator[dict[str, Any]]:
    """Play random games of every size and variant on *device* and on the CPU, and compare everything after each step.

    At least *plies* in two-player mode, and a tenth of that against each built-in opponent. The other side is the serial
    CPU build; for ``device="cpu"`` it is compared with the parallel one.
    """
    for (size, variant), opponent in product(GAMES, (None, "random", "greedy")):
        wanted = plies if opponent is None else plies // 10
        rows = min(batch, max(256, wanted // 150))
        steps = -(-wanted // rows)
        game = {"size": size, "variant": variant, "opponent": opponent}
        options: dict[str, Any] = game | {"colour": "random"}
        envs = (
            TorchVectorEnv(rows, device=device, parallel=True, **options),
            TorchVectorEnv(rows, device="cpu", **options),
        )
        for one in envs:
            one.reset(seed=1)
        differ: set[str] = set()
        for _ in range(steps):
            ours, theirs = ({**_step_outputs(one), "boards": one.boards, "legal": one.legal} for one in envs)
            differ |= _different({name: (ours[name], theirs[name]) for name in ours})
        generators = (torch.from_numpy(one.get_state()["random"].view("int64").copy()) for one in envs)
        differ |= _different({"generators": tuple(generators)})  # type: ignore[dict-item]
        yield {**game, "plies": rows * steps, "differ": sorted(differ), "equal": not differ}


def _step_outputs(envs: TorchVectorEnv) -> dict[str, torch.Tensor]:
    observations, rewards, terminated, _, infos = envs.random_step()
    names = ("action_mask", "to_move", "final_score", "final_boards")
    return {"observation": observations, "reward": rewards, "end": terminated} | {name: infos[name] for name in names}


def states_rates(device: str, count: int, repeats: int = 10) -> dict[str, float]:
    """Return steps per second of *count* pure states in the middle of 8x8 games, and the seconds of a branch of all of them.

    A branch gathers states by a tensor of parents into new memory, as a tree search does.
    """
    state = functional.to(functional.init(min(count, 65_536), seed=1, opening_plies=20), device)
    parents = torch.randint(state.shape[0], (count,), device=device, generator=torch.Generator(device).manual_seed(1))
    state = functional.take(state, parents)
    actions = functional.legal(state).to(torch.uint8).argmax(-1)

    def step() -> int:
        functional.step(state, actions)
        wait_for(device)
        return count

    def branch() -> int:
        functional.take(state, parents)
        wait_for(device)
        return count

    return {"count": count, "steps_per_second": rate(step, repeats), "branch_seconds": count / rate(branch, repeats)}


def states_equal_to_environments(device: str, plies: int, batch: int = 65_536) -> list[dict[str, Any]]:
    """Play random games of every size and variant by `TorchVectorEnv` and by pure states, and compare them after every ply."""
    comparisons = []
    for size, variant in GAMES:
        rows = min(batch, max(256, plies // 150))
        steps, generator = -(-plies // rows), torch.Generator(device).manual_seed(1)
        envs = TorchVectorEnv(rows, device=device, size=size, variant=variant, reward="discs")
        envs.reset(seed=1)
        start = state = functional.init(rows, Rules(size, variant), device=device)
        differ: set[str] = set()
        for _ in range(steps):
            masks = envs.infos["action_mask"]
            noise = 1 + torch.rand(masks.shape, device=device, generator=generator)
            actions = (noise * masks).argmax(-1)
            observations, rewards, terminated, _, infos = envs.step(actions)
            after = functional.step(state, actions)
            state = functional.where(terminated, start, after)
            differ |= _different(
                {
                    "end": (functional.is_over(after), terminated),
                    "reward": (functional.reward(after, "discs"), rewards),
                    "observation": (functional.observe(state), observations),
                    "action_mask": (functional.legal(state), infos["action_mask"]),
                    "boards": (torch.stack([state.own, state.opp], -1), envs.boards),
                    "legal": (state.legal, envs.legal),
                    "to_move": (state.turn, infos["to_move"]),
                }
            )
        game = {"size": size, "variant": variant, "opponent": None}
        comparisons.append({**game, "plies": rows * steps, "differ": sorted(differ), "equal": not differ})
    return comparisons


def small_policy(channels: int = 64, layers: int = 6) -> nn.Module:
    """Return a convolutional policy for 8x8: *layers* 3x3 convolutions of *channels* and a linear head with 65 logits."""
    blocks: list[nn.Module] = []
    width = 2
    for _ in range(layers):
        blocks += [nn.Conv2d(width, channels, 3, padding=1), nn.ReLU()]
        width = channels
    return nn.Sequential(*blocks, nn.Conv2d(channels, 4, 1), nn.Flatten(), nn.Linear(256, 65))


@torch.inference_mode()
def policy_play(device: str, batch: int, steps: int = 50) -> dict[str, float]:
    """Return plies per second while a small CNN policy plays both sides, sampling its moves.

    ``share`` is that of the environment: the ratio to its rate with given actions.
    """
    dtype = torch.float16 if device == "cuda" else torch.float32
    torch.manual_seed(1)
    network = small_policy().to(device, dtype)
    envs = TorchVectorEnv(batch, device=device, layout="half" if device == "cuda" else "planes", parallel=True)
    observations, infos = envs.reset(seed=1)

    def run() -> int:
        nonlocal observations, infos
        for _ in range(steps):
            logits = network(observations.to(dtype)).float().masked_fill(~infos["action_mask"], -torch.inf)
            # Gumbel noise: a sample of the softmax
            actions = (logits - torch.empty_like(logits).exponential_().log()).argmax(-1)
            observations, _, _, _, infos = envs.step(actions)
        wait_for(device)
        return batch * steps

    plies = rate(run, 1)
    share = plies / plies_per_second(device, batch, given_actions=True)
    return {"batch": batch, "share": share, "plies_per_second": plies}


def tokens_per_second(device: str, *labels: str, threads: int | None = None, batches: int = 20) -> float:
    """Return tokens of random 8x8 games per second, padding not counted, on *threads* of the CPU or all: best of three runs."""
    options, pool = StreamOptions(), shared_pool()
    stream, before = GameStream(options, TOKEN_BATCHES[device], device=device), pool.threads
    each = int((stream.batch(0) != 0).sum())

    def run() -> int:
        for tokens in islice(stream, batches):
            if labels:
                label_games(tokens, options, labels)
        wait_for(device)
        return batches * each

    pool.threads = threads or before
    try:
        return rate(run, 3)
    finally:
        pool.threads = before

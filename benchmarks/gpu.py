"""What `TorchVectorEnv` does: plies a second against the bandwidth, Pgx beside it, equality with the CPU, a network's share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import torch
from torch import nn

from benchmarks import peers
from benchmarks.timing import rate
from reversi_env import Rules, functional
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.rules import Variant
from train.jobs.provenance import cpu_name

GPU_BATCHES = (4096, 65_536, 2**20, 2**22)
CPU_BATCHES = (256, 4096, 65_536)
#: Steps that bring the games out of step with each other before a measurement.
WARM_UP_STEPS = 70
VARIANTS: tuple[Variant, ...] = ("normal", "reversed")
GAMES = tuple((size, variant) for size in (8, 6, 4) for variant in VARIANTS)


def device_name(device: str) -> str:
    """The GPU's name and CUDA's version, or the processor's name."""
    if device == "cpu":
        return cpu_name()
    return f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"


def wait_for(device: str) -> None:
    """Return when all queued work is done."""
    if device == "cuda":
        torch.cuda.synchronize()


def copy_bandwidth(device: str) -> float:
    """Bytes a second that torch reads and writes when it copies a large tensor, best of ten."""
    count = 2**31 if device == "cuda" else 2**27
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> int:
        target.copy_(source)
        wait_for(device)
        return 2 * count

    return rate(copy, 10)


def bytes_per_ply(size: int = 8) -> int:
    """Bytes that a step must read and write for one environment: planes, mask, five words of state twice, reward, four flags."""
    squares = size * size
    return 2 * squares + (squares + 1) + 2 * 5 * 8 + 4 + 4


def plies_per_second(device: str, batch: int, *, given_actions: bool = False, repeats: int = 3) -> float:
    """Plies a second of 8x8 two-player games, uint8 planes and masks written at every step, best of *repeats*.

    Random legal moves are drawn inside the step's launch; with ``given_actions=True`` every step is given actions instead (those
    of the first step again and again, most of them illegal and answered by a random move).
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
    """Plies a second of Pgx's Othello on the same device, in a process of its own; or why there is no figure."""
    try:
        rate = peers.measured("pgx", device)
    except RuntimeError as error:
        return f"failed: {error}"
    if rate is None:
        return f"not installed: {', '.join(name for name in peers.MODULES['pgx'] if not find_spec(name))}"
    if device == "cuda" and rate["backend"] != "gpu":
        return f"jax runs on {rate['backend']}, not on the GPU"
    return rate


# --- equality with the CPU core -------------------------------------------------------------------------

#: Odd numbers: a product with one loses nothing, so that a difference cannot vanish by itself.
_FACTORS = tuple(0x9E37_79B9_7F4A_7C15 * (2 * k + 1) % 2**63 | 1 for k in range(8))


def equal_to_cpu(device: str, plies: int, batch: int = 65_536) -> Iterator[dict[str, Any]]:
    """Play random games of every size and variant on *device* and on the CPU and compare hashes of all that happened.

    At least *plies* in two-player mode, and a tenth of that against each built-in opponent. The other side is the serial
    CPU build; for ``device="cpu"`` it is compared with the parallel one.
    """
    for size, variant in GAMES:
        for opponent in (None, "random", "greedy"):
            wanted = plies if opponent is None else plies // 10
            rows = min(batch, max(256, wanted // 150))
            steps = -(-wanted // rows)
            options: dict[str, Any] = {"size": size, "variant": variant, "opponent": opponent, "colour": "random"}
            digest = trace_hash(TorchVectorEnv(rows, device=device, parallel=True, **options), steps)
            expected = trace_hash(TorchVectorEnv(rows, device="cpu", **options), steps)
            yield {
                "size": size,
                "variant": variant,
                "opponent": opponent,
                "plies": rows * steps,
                "hash": f"{digest % 2**64:016x}",
                "equal": digest == expected,
            }


def trace_hash(envs: TorchVectorEnv, steps: int) -> int:
    """A hash of every state, observation, mask, reward and end of *steps* random steps, and of the generators' last states."""
    envs.reset(seed=1)
    total = torch.zeros(envs.num_envs, dtype=torch.int64, device=envs.boards.device)
    for _ in range(steps):
        observations, rewards, terminated, _, infos = envs.random_step()
        ends = infos["to_move"].long() + 2 * terminated.long() + 4 * infos["final_score"].long()
        total *= _FACTORS[0]
        total += envs.boards[:, 0] * _FACTORS[1] + envs.boards[:, 1] * _FACTORS[2] + envs.legal * _FACTORS[3]
        total += rewards.view(torch.int32).long() * _FACTORS[4] + ends * _FACTORS[5]
        total += infos["final_boards"][:, 0] * _FACTORS[6] + infos["final_boards"][:, 1] * _FACTORS[7]
        total += _row_hash(observations.reshape(envs.num_envs, -1)) + _row_hash(infos["action_mask"])
    places = torch.arange(envs.num_envs, device=total.device) * 2 + 1
    generators = torch.from_numpy(envs.get_state()["random"].view("int64").copy()).to(total.device)
    return int(((total + generators * _FACTORS[1]) * places).sum())


def _row_hash(rows: torch.Tensor) -> torch.Tensor:
    """A number for every row of 0s and 1s: 16 of them as bits (exact in float32), added up with a factor each."""
    weights = 2 ** (torch.arange(rows.shape[1], device=rows.device) % 16)
    pieces = (rows.to(torch.float32) * weights.to(torch.float32)).split(16, dim=1)
    return sum(
        (piece.sum(1).to(torch.int64) * _FACTORS[k % 8] * (k + 1) for k, piece in enumerate(pieces)),
        start=torch.zeros(rows.shape[0], dtype=torch.int64, device=rows.device),
    )


# --- pure states --------------------------------------------------------------------------------------------


def states_rates(device: str, count: int, repeats: int = 10) -> dict[str, float]:
    """Of *count* pure states in the middle of 8x8 games: steps a second, and the seconds that a branch of all of them takes.

    A branch gathers states by a tensor of parents into memory of its own, as a tree search does.
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

    for warm_up in (step, branch):
        warm_up()
    return {"count": count, "steps_per_second": rate(step, repeats), "branch_seconds": count / rate(branch, repeats)}


#: What of pure states and environments is compared.
COMPARED = ("end", "reward", "observation", "mask", "boards", "legal", "turn")


def states_equal_to_environments(device: str, plies: int, batch: int = 65_536) -> list[dict[str, Any]]:
    """Random games of every size and variant by `TorchVectorEnv` and by pure states on *device*, compared after every ply."""
    comparisons = []
    for size, variant in GAMES:
        rows = min(batch, max(256, plies // 150))
        steps, generator = -(-plies // rows), torch.Generator(device).manual_seed(1)
        envs = TorchVectorEnv(rows, device=device, size=size, variant=variant, reward="discs")
        envs.reset(seed=1)
        start = state = functional.init(rows, Rules(size, variant), device=device)
        differ = dict.fromkeys(COMPARED, torch.zeros((), dtype=torch.bool, device=device))
        for _ in range(steps):
            masks = envs.infos["action_mask"]
            # noise of 0 would be an illegal move's
            noise = 1 + torch.rand(masks.shape, device=device, generator=generator)
            actions = (noise * masks).argmax(-1)
            observations, rewards, terminated, _, infos = envs.step(actions)
            after = functional.step(state, actions)
            state = functional.where(terminated, start, after)
            pairs = (
                (functional.is_over(after), terminated),
                (functional.reward(after, "discs"), rewards),
                (functional.observe(state), observations),
                (functional.legal(state), infos["action_mask"]),
                (torch.stack([state.own, state.opp], -1), envs.boards),
                (state.legal, envs.legal),
                (state.turn, infos["to_move"]),
            )
            for name, (ours, theirs) in zip(COMPARED, pairs, strict=True):
                differ[name] = differ[name] | (ours != theirs).any()
        wrong = [name for name, is_wrong in differ.items() if is_wrong]
        comparisons.append(
            {"size": size, "variant": variant, "plies": rows * steps, "differ": wrong, "equal": not wrong}
        )
    return comparisons


# --- a network that plays -----------------------------------------------------------------------------------


def small_policy(channels: int = 64, layers: int = 6) -> nn.Module:
    """A convolutional policy for 8x8: *layers* 3x3 convolutions of *channels* and a linear head with 65 logits."""
    blocks: list[nn.Module] = []
    width = 2
    for _ in range(layers):
        blocks += [nn.Conv2d(width, channels, 3, padding=1), nn.ReLU()]
        width = channels
    return nn.Sequential(*blocks, nn.Conv2d(channels, 4, 1), nn.Flatten(), nn.Linear(256, 65))


@torch.inference_mode()
def environment_share(device: str, batch: int, steps: int = 50) -> dict[str, float]:
    """Share of the time that the environment takes while a small CNN policy plays both sides, sampling its moves."""
    dtype = torch.float16 if device == "cuda" else torch.float32
    torch.manual_seed(1)
    network = small_policy().to(device, dtype)
    envs = TorchVectorEnv(batch, device=device, layout="half" if device == "cuda" else "planes", parallel=True)
    observations, infos = envs.reset(seed=1)
    watch = _Watch(device)
    for step in range(10 + steps):
        if step == 10:
            watch.start()
        logits = network(observations.to(dtype)).float().masked_fill(~infos["action_mask"], -torch.inf)
        actions = (logits - torch.empty_like(logits).exponential_().log()).argmax(-1)  # Gumbel: a sample of the softmax
        with watch:
            observations, _, _, _, infos = envs.step(actions)
    total, inside = watch.stop()
    return {"batch": batch, "share": inside / total, "plies_per_second": batch * steps / total}


class _Watch:
    """Seconds from start to stop and, of these, inside ``with``: by events on the GPU's own clock, or by the CPU's."""

    def __init__(self, device: str) -> None:
        self._gpu = device == "cuda"
        self._marks: list[tuple[Any, Any]] = []

    def _now(self) -> Any:
        if not self._gpu:
            return perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _seconds(self, first: Any, last: Any) -> float:
        return first.elapsed_time(last) / 1000 if self._gpu else last - first

    def start(self) -> None:
        self._marks.clear()
        self._began = self._now()

    def __enter__(self) -> None:
        self._entered = self._now()

    def __exit__(self, *_: object) -> None:
        self._marks.append((self._entered, self._now()))

    def stop(self) -> tuple[float, float]:
        ended = self._now()
        wait_for("cuda" if self._gpu else "cpu")
        return self._seconds(self._began, ended), sum(self._seconds(*mark) for mark in self._marks)

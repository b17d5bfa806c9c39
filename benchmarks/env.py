"""Speed of the environments, with observations and masks at every step, and of other libraries."""

from collections.abc import Callable

from benchmarks import peers
from benchmarks.timing import best_rates, rate
from reversi_env.envs import ReversiEnv, ReversiVectorEnv
from reversi_env.envs import pettingzoo as aec

BATCH = 4096


def single_rate(opponent: str | None, plies: int, repeats: int) -> float:
    """Return steps per second of the unwrapped single environment with random legal actions, resets included."""
    env = ReversiEnv(opponent=opponent)
    env.reset(seed=1)

    def run() -> int:
        for _ in range(plies):
            _, _, terminated, _, _ = env.step(env.sample_legal())
            if terminated:
                env.reset()
        return plies

    return rate(run, repeats)


def aec_rate(plies: int, repeats: int) -> float:
    """Return plies per second of PettingZoo's usual loop over ``env()``: ``agent_iter``, ``last``, ``step``."""
    env = aec.env()
    env.reset(seed=1)

    def run() -> int:
        played = 0
        while played < plies:
            env.reset()
            for _ in env.agent_iter():
                _, _, terminated, _, _ = env.last()
                if terminated:
                    env.step(None)
                else:
                    env.step(env.sample_legal())
                    played += 1
        return played

    return rate(run, repeats)


def vector_rates(steps: int, repeats: int) -> tuple[float, float]:
    """Return plies per second of the vector environment in two-player mode, batch 4096, on one thread and on all."""
    works: dict[str, Callable[[], int]] = {}
    for name, parallel in (("one", False), ("all", True)):
        envs = ReversiVectorEnv(BATCH, opponent=None, parallel=parallel)
        envs.reset(seed=1)

        def run(envs: ReversiVectorEnv = envs) -> int:
            for _ in range(steps):
                envs.step(envs.sample_legal())
            return steps * envs.num_envs

        works[name] = run
    rates = best_rates(works, repeats)
    return rates["one"], rates["all"]


def peer_rates() -> dict[str, float | None]:
    """Return plies per second of the other libraries on one core; None if one is not installed."""
    by_peer = {peer: peers.measured(peer, "core") for peer in peers.MODULES}
    return {peer: figures["plies_per_second"] if figures else None for peer, figures in by_peer.items()}

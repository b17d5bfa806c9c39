"""The self-play of a generation as jobs for this process or for the workers of a cluster.

A job depends only on the options, its number and the network. Its worker gets the network with the pool of the generation, once
per machine, and keeps the compiled search for the next generation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from models.mcts.search import TreeSearch
from models.residual.inference import InferenceNetwork
from models.residual.net import ResidualNet
from reversi_env.errors import extra_libraries
from train.alphazero.options import SelfPlayOptions
from train.alphazero.self_play import make_search, play_generation
from train.jobs.checkpoints import State
from train.labels.labellers import exact_scores

with extra_libraries():
    import torch


@dataclass(frozen=True)
class GamesJob:
    """Play the games of part *number* of a generation."""

    number: int
    seed: int


def games_jobs(options: SelfPlayOptions, generation: int) -> list[GamesJob]:
    count = options.games // options.job_games if options.job_games else 1
    return [GamesJob(number, derived_seed(options, generation, 0, number)) for number in range(count)]


def derived_seed(options: SelfPlayOptions, generation: int, part: int, number: int = 0) -> int:
    return int(np.random.SeedSequence((options.seed, generation, part, number)).generate_state(1)[0])


class SelfPlayWorker:
    """Plays jobs on a device; their result is their number, and the columns of `Positions`."""

    def __init__(
        self,
        search: TreeSearch,
        options: SelfPlayOptions,
        device: torch.device,
        threads: int | None,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self._search, self._device, self._on_progress = search, device, on_progress
        self._options = replace(options, games=options.job_games or options.games, job_games=0)
        self._solve = partial(exact_scores, rules=options.rules, device=device.type, threads=threads)

    def __call__(self, job: GamesJob) -> tuple[int, dict[str, np.ndarray]]:
        with torch.no_grad():
            positions = play_generation(
                self._search, self._solve, self._options, job.seed, self._device, self._on_progress
            )
        return job.number, {name: column.cpu().numpy() for name, column in positions._asdict().items()}


def cluster_worker(options: SelfPlayOptions, weights: State, threads: int) -> SelfPlayWorker:
    """Return a worker for a Ray task, on the device that Ray gives it."""
    from train.jobs.ray import job_device

    torch.set_num_threads(threads)
    device = job_device()
    network, search = _network_and_search(options, device, threads)
    net = ResidualNet(options.size, channels=options.channels, blocks=options.blocks)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    network.load_weights(net)
    return SelfPlayWorker(search, options, torch.device(device), threads)


@lru_cache(maxsize=1)
def _network_and_search(options: SelfPlayOptions, device: str, threads: int) -> tuple[InferenceNetwork, TreeSearch]:
    """Return the network and the search, whose compilation on a GPU takes long; every generation replaces the weights."""
    net = ResidualNet(options.size, channels=options.channels, blocks=options.blocks)
    network = InferenceNetwork(net, device)
    return network, make_search(network.logits_and_values, options, torch.device(device), threads)

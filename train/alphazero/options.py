"""`SelfPlayOptions`: all options of an AlphaZero run, and presets for each board and device."""

from dataclasses import dataclass
from typing import Any, Literal

from reversi_env.errors import TrainError, check_integer
from reversi_env.options import GameOptions, option


@dataclass(frozen=True)
class SelfPlayOptions(GameOptions):
    """A run in generations of self-play and training, then final steps on the replay window; defaults for 8x8 on one GPU."""

    size: int = option(8, "Board size: 4, 6 or 8 (default: 8).")
    generations: int = option(17, "Number of generations (self-play followed by training).", low=1, high=10_000)
    games: int = option(16_384, "Self-play games per generation.", low=2, high=1 << 22)
    steps: int = option(450, "Gradient steps per generation.", low=1, high=10**7)
    final_steps: int = option(7_000, "Final gradient steps with a decaying learning rate.", low=0, high=10**8)
    batch_size: int = option(8192, "Batch size, in positions.", low=1, high=1 << 20)
    learning_rate: float = option(1e-3, "Learning rate (AdamW).", low=1e-8, high=1.0)
    replay_window: int = option(12, "Replay window: generations that training samples from.", low=2, high=1000)
    greedy_share: float = option(0.125, "Share of games in which one side plays greedily.", low=0.0, high=1.0)
    channels: int = option(128, "Channels of the residual network.", low=1, high=512)
    blocks: int = option(6, "Residual blocks of the network, two convolutions each.", low=1, high=64)
    seed: int = option(0, "Random seed of the whole run.", low=0, high=2**31 - 1)
    simulations: int = option(16, "Tree-search simulations per move.", low=1, high=10_000)
    search: Literal["gumbel", "puct"] = option("gumbel", "Tree search: gumbel (Gumbel AlphaZero) or puct.")
    max_considered_actions: int = option(8, "With gumbel: number of actions considered at the root.", low=1, high=64)
    temperature: float = option(
        1.0, "Sampling temperature of the self-play moves; 0 plays the best move.", low=0.0, high=64.0
    )
    exact: int = option(
        14,
        "Solve positions with at most this many empties (0: none); on a CPU also leaves of the tree.",
        low=0,
        high=16,
    )
    opening_plies: int = option(16, "Maximum number of random plies before a game.", low=0, high=32)
    td_lambda: float = option(
        0.95, "Lambda of the TD(lambda) value targets: 1 uses the game result, 0 the search value.", low=0.0, high=1.0
    )
    eval_every: int = option(
        5, "Generations between evaluations; the last evaluation follows the final steps.", low=1, high=10_000
    )
    eval_games: int = option(
        200, "Evaluation games against each baseline (even; 0: no evaluation).", low=0, high=100_000, even=True
    )
    device: Literal["cpu", "cuda"] = option("cpu", "Device for self-play and training: cpu or cuda (default: cpu).")
    job_games: int = option(
        0,
        "Self-play games per job, a divisor of --games; 0: one job with all games. Each job has its own seed (default: 0; "
        "with --ray 64, with --ray and cuda 2048).",
        low=0,
        high=1 << 22,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.job_games and self.games % self.job_games:
            raise TrainError(f"job_games={self.job_games}: expected a divisor of games={self.games}")
        check_integer("opening_plies", self.opening_plies, 0, self.rules.square_count // 2)
        check_integer("exact", self.exact, 0, self.rules.square_count - 6)

    def replay_generations(self, generation: int) -> int:
        """Return how many of the latest generations to sample from: at first half of all, since the first networks are weak."""
        return max(2, min(self.replay_window, generation // 2 + 2))


#: Default of *job_games* for a run that begins on a cluster.
CLUSTER_JOB_GAMES = {"cpu": 64, "cuda": 2048}
_SIZE_COLUMNS = (
    *("generations", "games", "steps", "final_steps", "channels", "blocks"),
    *("simulations", "max_considered_actions", "exact", "opening_plies"),
)
#: Values for two cores of a CPU, or one GPU. Those for 8x8 on a CPU, and for the smaller boards on a GPU, are untested.
_SIZE_PRESETS = {
    (4, "cpu"): (18, 256, 200, 1200, 16, 2, 16, 16, 6, 4),
    (6, "cpu"): (26, 640, 200, 1200, 24, 2, 8, 4, 8, 8),
    (8, "cpu"): (60, 640, 400, 4000, 32, 3, 16, 8, 8, 10),
    (4, "cuda"): (10, 4096, 450, 1000, 32, 3, 16, 8, 6, 6),
    (6, "cuda"): (20, 8192, 450, 4000, 96, 6, 16, 8, 12, 8),
    (8, "cuda"): (17, 16_384, 450, 7000, 128, 6, 16, 8, 14, 16),
}
_DEVICE_PRESETS: dict[str, dict[str, Any]] = {
    "cpu": {"batch_size": 256, "learning_rate": 2e-3, "replay_window": 8, "greedy_share": 0.0, "td_lambda": 0.9}
}


def preset(size: int = 8, device: str = "cpu", **changes: Any) -> SelfPlayOptions:
    by_size = dict(zip(_SIZE_COLUMNS, _SIZE_PRESETS.get((size, device), ()), strict=False))
    options: dict[str, Any] = {**_DEVICE_PRESETS.get(device, {}), **by_size, "size": size, "device": device}
    return SelfPlayOptions(**(options | changes))

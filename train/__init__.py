"""Learning and judging: labels, fits, games between agents, reviews of games, and reinforcement learning.

* Positions with scores to learn from: `LabelOptions`, `sample_positions`, `label_positions`, `generate` (on disk), `Labels`.
* Networks fitted to them: `FitOptions`, `fit`.
* Agents against each other: `play_match`, `TournamentOptions`, `run_tournament`.
* stable-baselines3: `ReversiVecEnv`.

Whatever needs an extra says so when it is used.
"""

from typing import TYPE_CHECKING

from reversi_env.lazy import lazy_names

if TYPE_CHECKING:
    from train.fitting.fit import fit
    from train.fitting.options import FitOptions
    from train.games.match import play_match
    from train.games.options import TournamentOptions
    from train.games.tournament import run_tournament
    from train.labels import LabelOptions, Labels, generate, label_positions, sample_positions
    from train.rl.sb3 import ReversiVecEnv

_HOMES = {
    "FitOptions": "train.fitting.options",
    "LabelOptions": "train.labels",
    "Labels": "train.labels",
    "ReversiVecEnv": "train.rl.sb3",
    "TournamentOptions": "train.games.options",
    "fit": "train.fitting.fit",
    "generate": "train.labels",
    "label_positions": "train.labels",
    "play_match": "train.games.match",
    "run_tournament": "train.games.tournament",
    "sample_positions": "train.labels",
}

__all__ = [
    "FitOptions",
    "LabelOptions",
    "Labels",
    "ReversiVecEnv",
    "TournamentOptions",
    "fit",
    "generate",
    "label_positions",
    "play_match",
    "run_tournament",
    "sample_positions",
]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

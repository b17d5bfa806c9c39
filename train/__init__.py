"""Learning and judging: labels, fits, games between agents, reviews of games, and reinforcement learning.

* Positions with scores to learn from: `LabelOptions`, `sample_positions`, `label_positions`, `generate` (on disk), `Labels`.
* Networks fitted to them: `FitOptions`, `fit`.
* Agents against each other: `play_match`, `TournamentOptions`, `run_tournament`; their games as data: `self_play`.
* Judged by the solver: `ExactSet`, `EndgameOptions`, `noisy_endgames`; every move of a game: `analyse`.
* Reinforcement learning: `score_policy`, how good any policy is; `ReversiVecEnv`, for stable-baselines3.

Whatever needs an extra says so when it is used.
"""

from typing import TYPE_CHECKING

from reversi_env.lazy import lazy_names

if TYPE_CHECKING:
    from train.fitting.fit import fit
    from train.fitting.options import FitOptions
    from train.games.options import TournamentOptions
    from train.games.playing import play_match
    from train.games.self_play import self_play
    from train.games.tournament import run_tournament
    from train.judging.endgames import EndgameOptions, noisy_endgames
    from train.judging.exact import ExactSet
    from train.judging.review import analyse
    from train.labels import LabelOptions, Labels, generate, label_positions, sample_positions
    from train.rl.sb3 import ReversiVecEnv
    from train.rl.scoring import PolicyScore, score_policy

_HOMES = {
    "EndgameOptions": "train.judging.endgames",
    "ExactSet": "train.judging.exact",
    "FitOptions": "train.fitting.options",
    "LabelOptions": "train.labels",
    "Labels": "train.labels",
    "PolicyScore": "train.rl.scoring",
    "ReversiVecEnv": "train.rl.sb3",
    "TournamentOptions": "train.games.options",
    "analyse": "train.judging.review",
    "fit": "train.fitting.fit",
    "generate": "train.labels",
    "label_positions": "train.labels",
    "noisy_endgames": "train.judging.endgames",
    "play_match": "train.games.playing",
    "run_tournament": "train.games.tournament",
    "sample_positions": "train.labels",
    "score_policy": "train.rl.scoring",
    "self_play": "train.games.self_play",
}

__all__ = [
    "EndgameOptions",
    "ExactSet",
    "FitOptions",
    "LabelOptions",
    "Labels",
    "PolicyScore",
    "ReversiVecEnv",
    "TournamentOptions",
    "analyse",
    "fit",
    "generate",
    "label_positions",
    "noisy_endgames",
    "play_match",
    "run_tournament",
    "sample_positions",
    "score_policy",
    "self_play",
]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

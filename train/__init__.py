"""Learning and judging: labels, fits, games between agents, reviews of games, and reinforcement learning.

* Positions with scores to learn from: `LabelOptions`, `sample_positions`, `label_positions`, `generate` (on disk), `Labels`.
* Networks fitted to them: `FitOptions`, `fit`.
* Agents against each other: `play_match`, `TournamentOptions`, `run_tournament`; their games as data: `self_play`.
* Judged by the solver: `ExactSet`, `EndgameOptions`, `noisy_endgames`; every move of a game: `analyse`.
* Reinforcement learning: `score_policy`, how good any policy is; `ReversiVecEnv`, for stable-baselines3.

Whatever needs an extra says so when it is used.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

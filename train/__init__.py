"""Training and evaluation: datasets, fitting, matches and tournaments, game reviews, reinforcement learning.

* Labelled positions: `LabelOptions`, `sample_positions`, `label_positions`, `generate` (on disk), `Labels`.
* Fitting networks to them: `FitOptions`, `fit`.
* Games of agents: `play_match`, `TournamentOptions`, `run_tournament`; as data: `self_play`.
* Evaluation by the solver: `ExactSet`, `EndgameOptions`, `noisy_endgames`; of every move of a game: `analyse`.
* Reinforcement learning: `score_policy`, `PolicyScore`; `ReversiVecEnv` for stable-baselines3.

An optional dependency that is missing is named when it is used.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

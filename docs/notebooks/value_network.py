# %% [markdown]
# # A value network from solved endgames
#
# Positions near the end of 6×6 games are solved exactly, a small network learns their scores, and alpha-beta searches with it.

# %%
import numpy as np

from models import PatternModule
from reversi_env import Rules
from search import make_agent
from train import FitOptions, LabelOptions, fit, label_positions, play_match, sample_positions

options = LabelOptions(size=6, count=12_000, empties=(4, 12), seed=1)
labels = label_positions(*sample_positions(options, 0), options)
print(f"{len(labels)} positions, mean absolute score {np.abs(labels.score).mean():.1f} discs")

# %% [markdown]
# The network is a sum of rows over patterns of squares, and a small head. A share of the positions is held out, with all symmetric images.

# %%
net = PatternModule("deep", size=6)
report = fit(
    net, labels, FitOptions(epochs=8, batch_size=64), progress=lambda e: print(e.number, round(e.validation_error, 2))
)
report.error_by_empties

# %% [markdown]
# The saved network is an evaluator, compiled into the search without torch. It plays the best published heuristic, both three plies deep and without an endgame solver:

# %%
from pathlib import Path
from tempfile import mkdtemp

path = net.to_network(Rules(6), {"data": "a notebook"}).save_in(Path(mkdtemp()))
mine = make_agent(f"network:depth=3,exact=0,weights={path}")
result = play_match(mine, make_agent("six-factor:depth=3,exact=0"), games=40, rules=Rules(6))
low, high = result.interval()
print(f"{result.wins} won, {result.draws} drawn, {result.losses} lost: {result.score:.0%} ({low:.0%} to {high:.0%})")

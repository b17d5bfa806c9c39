# %% [markdown]
# # Blunders in a tournament game
#
# A game of the WTHOR database (2010, the second one), with a verdict on every move: its value, and the discs that it lost. From 20 empty squares on the values are exact.

# %%
from reversi_env import read_transcript
from train import analyse

game = read_transcript(
    "f5d6c3d3c4f4f6g5e3f3g4h3e6e7d7e2h5c5c6g3h4h6e8d2c2f7c7b3f8g6b4d1f2e1f1a5a3b2g7h8g8d8a1b6b1c1b5h7c8a2a7a6a4a8h2h1b7g2g1b8"
)
review = analyse(game, depth=8, exact=20)
print(review.table())

# %%
review.plot()

# %% [markdown]
# The three worst moves, and the position before the worst of them:

# %%
worst = sorted(review, key=lambda move: -move.loss)[:3]
for move in worst:
    print(f"move {move.number}: {move.move}, {move.loss:.0f} discs lost; {move.best} was better ({move.verdict})")
worst[0].position

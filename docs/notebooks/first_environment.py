# %% [markdown]
# # First environment
#
# A game of Reversi as a Gymnasium environment: reset, masks, steps, and a picture of the board.

# %%
import gymnasium

import reversi_env
from reversi_env import Position, Rules

env = gymnasium.make("Reversi-v0", size=6, opponent="greedy")
observation, info = env.reset(seed=7)
observation.shape, info["action_mask"].sum()

# %% [markdown]
# The observation has two planes, own discs and the opponent's. `info["action_mask"]` has a 1 for every legal action: 36 squares and the pass.
# A notebook shows a position as a picture.

# %%
env.unwrapped.position()

# %%
terminated, rewards = False, []
while not terminated:
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)
    rewards.append(reward)
print(f"{len(rewards)} moves, reward {rewards[-1]:+.0f}")
env.unwrapped.position()

# %% [markdown]
# How often does a random player beat the greedy one? A thousand games at once:

# %%
envs = gymnasium.make_vec("Reversi-v0", num_envs=1000, size=6, opponent="greedy", colour="alternate")
observations, infos = envs.reset(seed=1)
results = []
while len(results) < 1000:
    observations, rewards, terminated, truncated, infos = envs.step(envs.unwrapped.sample_legal())
    results.extend(rewards[terminated])
print(f"won {sum(r > 0 for r in results) / len(results):.0%}, lost {sum(r < 0 for r in results) / len(results):.0%}")

# %% [markdown]
# Reversed Reversi is the same environment with another id: the fewest discs win. Positions know their rules.

# %%
Position.initial(Rules(size=6, variant="reversed")).play("e4")

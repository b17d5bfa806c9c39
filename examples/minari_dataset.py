"""Self-play episodes of a neural baseline as a Minari dataset, for offline RL and imitation.

Arguments: episodes, dataset name. Observations are dicts with the action mask. An episode has the moves of both sides, as in the
environment's two-player mode: a reward is that of the player who moved.
"""

import sys

import gymnasium
import minari
import numpy as np

import models

episodes, name = int(sys.argv[1]) if len(sys.argv) > 1 else 100, sys.argv[2] if len(sys.argv) > 2 else "zero-v0"
model, rng = models.baseline("zero-6x6-normal"), np.random.default_rng(1)
env = minari.DataCollector(gymnasium.make("Reversi-v0", size=6, opponent=None, observation="dict"))
for seed in range(episodes):
    observation, over = env.reset(seed=seed)[0], False
    while not over:
        logits, _ = model(observation["observation"], observation["action_mask"])
        action = int((logits + rng.gumbel(size=logits.size)).argmax())  # sampled from the policy
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
about = {"algorithm_name": model.name, "description": "Self-play on 6x6, both sides in one episode."}
dataset = env.create_dataset(dataset_id=f"reversi6x6/{name}", **about)
print(f"{dataset.total_episodes} episodes, {dataset.total_steps} steps: minari.load_dataset('reversi6x6/{name}')")

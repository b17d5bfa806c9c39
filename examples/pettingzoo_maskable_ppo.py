"""PettingZoo's tutorial "SB3: Action Masked PPO for Connect Four" with the environment's name changed, and gamma=-1.

One model plays both agents in turn, so the value of the next observation is the other agent's: gamma=-1 negates it. (With the
tutorial's 0.99 nothing is learnt.) Argument: steps.
"""

import sys

import gymnasium as gym
import pettingzoo.utils
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.wrappers import ActionMasker

from reversi_env import Rules
from reversi_env.envs import pettingzoo as aec
from train import score_policy


class SB3ActionMaskWrapper(pettingzoo.utils.BaseWrapper, gym.Env):
    """Wrapper to allow PettingZoo environments to be used with SB3 illegal action masking."""

    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.observation_space = super().observation_space(self.possible_agents[0])["observation"]
        self.action_space = super().action_space(self.possible_agents[0])
        return self.observe(self.agent_selection), {}

    def step(self, action):
        current_agent = self.agent_selection
        super().step(action)
        next_agent = self.agent_selection
        return (
            self.observe(next_agent),
            self._cumulative_rewards[current_agent],
            self.terminations[current_agent],
            self.truncations[current_agent],
            self.infos[current_agent],
        )

    def observe(self, agent):
        return super().observe(agent)["observation"]

    def action_mask(self):
        return super().observe(self.agent_selection)["action_mask"]


def mask_fn(env):
    return env.action_mask()


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_480
env = SB3ActionMaskWrapper(aec.env(size=4))  # in the tutorial: connect_four_v3.env()
env.reset(seed=1)
env = ActionMasker(env, mask_fn)
model = MaskablePPO(MaskableActorCriticPolicy, env, n_steps=min(2048, steps), gamma=-1.0, seed=1, device="cpu")
model.learn(total_timesteps=steps)


def policy(boards, masks):
    return model.predict(boards, action_masks=masks, deterministic=True)[0]


print(score_policy(policy, Rules(4)))

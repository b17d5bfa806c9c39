"""PPO in the style of CleanRL on the tensor environment, all on one device: one network plays both sides, gamma is -1.

Arguments: steps, games. On a GPU try 200000000 32768; `reversi train ppo --device cuda` adds snapshots and checkpoints.
"""

import sys
import time

import torch
from torch import nn
from torch.distributions import Categorical

from reversi_env import Rules
from reversi_env.envs import TorchVectorEnv
from train import score_policy

total_steps, num_envs, num_steps = *map(int, [*sys.argv[1:], *(200_000, 256)[len(sys.argv) - 1 :]]), 32
learning_rate, gamma, gae_lambda, epochs, minibatches, clip, entropy_coef = 1e-3, -1.0, 0.95, 2, 16, 0.2, 0.01
torch.set_num_threads(1)
torch.manual_seed(1)
envs = TorchVectorEnv(num_envs, size=6, opening_plies=2)  # on the GPU if there is one
device, squares = envs.device, envs.rules.square_count


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3 * squares, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.actor, self.critic = nn.Linear(256, squares + 1), nn.Linear(256, 1)

    def forward(self, boards, mask):
        hidden = self.body(torch.cat([boards.flatten(1), mask[:, :-1]], 1).float())
        return Categorical(logits=self.actor(hidden).masked_fill(~mask, -1e9), validate_args=False), self.critic(
            hidden
        ).squeeze(1)


agent = Agent().to(device)
optimizer = torch.optim.Adam(agent.parameters(), learning_rate, eps=1e-5)
boards, infos = envs.reset(seed=1)
mask, began, rollouts = infos["action_mask"], time.perf_counter(), max(1, total_steps // (num_envs * num_steps))
for _ in range(rollouts):
    steps = []
    with torch.no_grad():
        for _ in range(num_steps):
            policy, value = agent(boards, mask)
            action = policy.sample()
            transition = boards.clone(), mask.clone(), action, policy.log_prob(action), value  # copies: both are reused
            boards, reward, terminated, _, _ = envs.step(action)
            steps.append((*transition, reward.clone(), terminated.float()))
        next_value, advantage, advantages = agent(boards, mask)[1], torch.zeros(num_envs, device=device), []
        for *_, value, reward, done in reversed(steps):
            discount = gamma * (1 - done)  # the next value is the other side's: gamma negates it
            advantage = reward + discount * (next_value + gae_lambda * advantage) - value
            next_value, advantages = value, [advantage, *advantages]
    columns = [torch.stack(column).flatten(0, 1) for column in zip(*steps, strict=True)][:5]
    columns.append(torch.stack(advantages).flatten())
    for _ in range(epochs):
        for rows in torch.randperm(num_envs * num_steps, device=device).chunk(minibatches):
            b_boards, b_mask, b_action, b_log_prob, b_value, b_advantage = (column[rows] for column in columns)
            policy, value = agent(b_boards, b_mask)
            ratio = (policy.log_prob(b_action) - b_log_prob).exp()
            scaled = (b_advantage - b_advantage.mean()) / (b_advantage.std() + 1e-8)
            objective = torch.minimum(scaled * ratio, scaled * ratio.clamp(1 - clip, 1 + clip)).mean()
            value_loss = (value - b_value - b_advantage).square().mean()
            optimizer.zero_grad()
            (0.5 * value_loss - objective - entropy_coef * policy.entropy().mean()).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
print(f"{rollouts * num_envs * num_steps / (time.perf_counter() - began):,.0f} steps/s, {num_envs} games on {device}")


def best_moves(boards, masks):
    with torch.no_grad():
        policy, _ = agent(*(torch.as_tensor(part, device=device) for part in (boards, masks.astype(bool))))
    return policy.probs.argmax(1).cpu().numpy()


print(score_policy(best_moves, Rules(6)))

"""One game of the PettingZoo environment, both players moving at random."""

from reversi_env.envs import pettingzoo as aec

env = aec.env(size=6, variant="reversed", render_mode="ansi")
env.reset(seed=7)
env.action_space("player_0").seed(7)  # both players share the space
for agent in env.agent_iter():
    observation, reward, terminated, truncated, info = env.last()
    action = None if terminated else env.action_space(agent).sample(observation["action_mask"])
    env.step(action)
    if terminated:
        print(agent, "gets", reward)
print(env.render())

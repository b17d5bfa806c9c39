"""PPO in torch tensors, on a CPU or a GPU; and parts for trainings with stable-baselines3."""

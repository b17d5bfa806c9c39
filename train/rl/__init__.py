"""PPO: MaskablePPO of stable-baselines3, and a PPO whose games never leave the device."""

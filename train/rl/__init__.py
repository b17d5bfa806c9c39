"""Reinforcement learning: agents that learn by playing, measured against the searching ones."""

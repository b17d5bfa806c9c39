"""Reinforcement learning: agents that learn by playing, measured against the searching ones."""

from pathlib import Path

#: The package's own policies: ``HOW-SIZExSIZE-VARIANT-HASH.safetensors``.
FOLDER = Path(__file__).parent / "weights"

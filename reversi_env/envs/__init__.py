"""The environments for reinforcement learning: Gymnasium's single and vector API (PettingZoo's is `reversi_env.envs.pettingzoo`).

The names below are imported on first use, so that registering the ids stays cheap.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Windows open on no screen."""

import os

import pytest

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


@pytest.fixture
def hasty_window(monkeypatch):
    """The window shows as many frames as come, instead of four a second."""
    from reversi_env import rendering

    class HastyWindow(rendering.Window):
        def __init__(self, title="Reversi", fps=0):
            super().__init__(title, fps=0)

    monkeypatch.setattr(rendering, "Window", HastyWindow)

"""Windows without a screen."""

import os

import pytest

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


@pytest.fixture
def unlimited_fps(monkeypatch):
    """Remove the limit of four frames per second from windows."""
    from reversi_env import rendering

    class UnlimitedWindow(rendering.Window):
        def __init__(self, title="Reversi", fps=0):
            super().__init__(title, fps=0)

    monkeypatch.setattr(rendering, "Window", UnlimitedWindow)

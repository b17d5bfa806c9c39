"""The window of the ``human`` render mode: shows frames at a steady pace and stays responsive between them."""

import os
from typing import Any

import numpy as np

from reversi_env.rendering.pixels import require


class Window:
    """A window that shows one frame after another. Needs pygame, which has a single window for the whole process.

    It opens with the first frame, takes its size, and shows *fps* frames per second (0: no limit). After the user has
    closed it, later frames are dropped, so that a running game or training continues.
    """

    def __init__(self, title: str = "Reversi", fps: float = 4) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # the banner would mix with the output of the program
        self._pygame: Any = require("pygame", "pygame")
        self._title = title
        self._fps = fps
        self._clock = self._pygame.time.Clock()
        self.is_open = self._closed = False

    def show(self, frame: np.ndarray) -> None:
        """Show *frame*, a uint8 array (height, width, 3), then wait for the rest of its time."""
        if self._closed:
            return
        self._pygame.surfarray.blit_array(self._surface_for(frame), frame.swapaxes(0, 1))
        self._pygame.display.flip()
        self._clock.tick(self._fps)
        if any(event.type == self._pygame.QUIT for event in self._pygame.event.get()):
            self.close()

    def close(self) -> None:
        if self.is_open:
            self._pygame.display.quit()
        self.is_open, self._closed = False, True

    def _surface_for(self, frame: np.ndarray) -> Any:
        """Return the window's surface, opened or resized to the size of *frame*."""
        height, width = frame.shape[:2]
        self._pygame.display.init()
        surface = self._pygame.display.get_surface()  # not stored: another `Window` may have closed or resized it
        if surface is None or surface.get_size() != (width, height):
            surface = self._pygame.display.set_mode((width, height))
            self._pygame.display.set_caption(self._title)
        self.is_open = True
        return surface

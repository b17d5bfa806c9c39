"""Pictures of positions: text for the terminal, SVG for notebooks and pages, pixels and a window for environments.

Pillow and pygame are optional: they are imported when the first picture that needs them is drawn.
"""

from reversi_env.rendering.files import save_picture
from reversi_env.rendering.pixels import render_rgb
from reversi_env.rendering.svg import render_svg
from reversi_env.rendering.text import render_ansi
from reversi_env.rendering.window import Window

__all__ = ["Window", "render_ansi", "render_rgb", "render_svg", "save_picture"]

"""Pictures of positions and games in files: SVG, PNG and animated GIF."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from reversi_env.errors import ReversiError, quoted
from reversi_env.position import Position
from reversi_env.rendering.pixels import render_rgb, require
from reversi_env.rendering.svg import render_svg
from reversi_env.storage.atomic import write_atomically

#: Endings of the names of picture files.
ENDINGS = (".gif", ".png", ".svg")
#: Milliseconds that an animated GIF shows a position, and the last one.
FRAME_MS, LAST_FRAME_MS = 800, 3200


def check_picture(path: Path) -> None:
    """Raise an error for a file name whose ending is none of `ENDINGS`."""
    if path.suffix.lower() not in ENDINGS:
        raise ReversiError(f"picture {quoted(str(path), 300)}: expected a name that ends in .gif, .png or .svg")


def save_picture(path: Path, positions: Sequence[Position], actions: Sequence[int], *, square_px: int = 40) -> None:
    """Write the last of *positions* as SVG or PNG, or all of them as an animated GIF; *actions* led from each to the next."""
    check_picture(path)
    last_moves = [None, *actions]
    if path.suffix.lower() == ".svg":
        write_atomically(path, render_svg(positions[-1], last_moves[-1]).encode())
        return
    image = require("PIL.Image", "pillow")
    shown, options, content = [(positions[-1], last_moves[-1])], dict[str, Any](), BytesIO()
    if path.suffix.lower() == ".gif":
        shown = list(zip(positions, last_moves, strict=True))
        options = {"save_all": True, "loop": 0, "duration": [*[FRAME_MS] * len(actions), LAST_FRAME_MS]}
    frames = [image.fromarray(render_rgb(position, move, square_px=square_px)) for position, move in shown]
    frames[0].save(content, path.suffix[1:].upper(), append_images=frames[1:], **options)
    write_atomically(path, content.getvalue())

"""The user's cache: one folder for data that can be computed again. It is never next to installed code.

* ``kernels/`` – compiled kernels (`reversi_env.compiler.disk_cache`);
* ``solved/`` – exact scores of positions, as exams and regret curves need them.
"""

import os
import shutil
from pathlib import Path

#: The parts of the cache. `clear` removes no others.
PARTS = ("kernels", "solved")


def cache_folder(part: str = "") -> Path:
    """Return the folder of the cache or of a *part*: in REVERSI_CACHE_DIR, or the system's default (``~/.cache/reversi-lab``)."""
    if folder := os.environ.get("REVERSI_CACHE_DIR"):  # an empty value counts as unset
        return Path(folder).expanduser().absolute() / part
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("reversi-lab", appauthor=False)) / part


def size_of(folder: Path) -> tuple[int, int]:
    """Return the number of files in a folder and its subfolders, and their bytes, without files that were just removed."""
    count = total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size  # noqa: PTH116, PTH118 - thousands of files
            except OSError:
                continue
            count += 1
    return count, total


def clear(part: str) -> int:
    """Remove a part of the cache and return the number of bytes freed."""
    folder = cache_folder(part)
    before = size_of(folder)[1]
    shutil.rmtree(folder, ignore_errors=True)
    return before - size_of(folder)[1]

"""The user's cache: one folder for all that can be computed again, never beside installed code.

* ``kernels/`` – compiled kernels (`reversi_env.compiler.disk_cache`);
* ``solved/`` – exact scores of positions, as exams and regret curves need them.
"""

import os
import shutil
from pathlib import Path

#: What the folder holds: the parts that we make, and the only ones that `clear` removes.
PARTS = ("kernels", "solved")


def cache_folder(part: str = "") -> Path:
    """The cache, or a *part* of it: where REVERSI_CACHE_DIR says, or by the system's custom (``~/.cache/reversi-lab``)."""
    if given := os.environ.get("REVERSI_CACHE_DIR"):  # an empty one is none
        return Path(given).expanduser().absolute() / part
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("reversi-lab", appauthor=False)) / part


def size_of(folder: Path) -> tuple[int, int]:
    """(files, bytes) in a folder and below it; what another process removes meanwhile does not count."""
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
    """Remove a part of the cache; the bytes that are free then."""
    folder = cache_folder(part)
    before = size_of(folder)[1]
    shutil.rmtree(folder, ignore_errors=True)
    return before - size_of(folder)[1]

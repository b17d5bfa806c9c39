"""Data files of the package, each with its SHA-256 in the file ``SHA256SUMS`` of its folder.

After a change of such a file: ``sha256sum NAME… > SHA256SUMS`` in its folder.
"""

import hashlib
from pathlib import Path

from reversi_env.errors import ReversiError

#: The folder of data of the rules.
DATA = Path(__file__).parents[1] / "data"
SUMS = "SHA256SUMS"
REMEDY = "expected the file of the package; install it again"


class PackagedFileError(ReversiError):
    """A file of the package that is damaged, or has no checksum."""


def packaged_bytes(path: Path) -> bytes:
    """Return the content of a file of the package after a check of its hash."""
    data = path.read_bytes()
    try:
        lines = path.with_name(SUMS).read_text("utf-8").splitlines()
        sums = {name: digest for digest, name in (line.split() for line in lines)}
    except (OSError, ValueError) as error:
        raise PackagedFileError(f"{str(path.with_name(SUMS))!r} cannot be read ({error}): {REMEDY}") from None
    if sums.get(path.name) != hashlib.sha256(data).hexdigest():
        raise PackagedFileError(f"{str(path)!r} is damaged, its SHA-256 is not that of {SUMS}: {REMEDY}")
    return data

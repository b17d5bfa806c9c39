"""Games on disk: the one in progress after every move, and those that are saved and loaded by name."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from play.game import Game
from reversi_env import ReversiError
from reversi_env.errors import shown
from reversi_env.notation import read_ggf
from reversi_env.notation.context import within
from reversi_env.writing import remove_parts, write_atomically

_LOOKS_LIKE_GGF = re.compile(r"\s*(?:[0-9]+\s*)?\(\s*;")
_GAME_BEGINS = re.compile(r"\(\s*;")
_LARGEST_FILE = 1 << 24
#: Games that are kept for --resume, at most.
MOST_KEPT = 20


@dataclass(frozen=True)
class Unfinished:
    """A game that was left, and how it was being played: the agents' specs, None for a person."""

    ggf: str
    black: str | None = None
    white: str | None = None
    adviser: str | None = None
    level: int | None = None
    time: float | None = None

    def game(self) -> Game:
        """The game at its last move."""
        return Game.from_ggf(self.ggf)


def state_folder() -> Path:
    """Where games in progress are kept: in the user's state folder (XDG base directories)."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "reversi" / "games"


class Slot:
    """The place of one session's game on disk. Sessions side by side do not touch each other's."""

    def __init__(self) -> None:
        self.path = state_folder() / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.json"

    def check(self) -> None:
        """Raise an OSError if games cannot be kept here."""
        folder = self.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    def keep(self, unfinished: Unfinished) -> None:
        """Write the game so that a crash at any moment leaves the old file or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, (json.dumps(asdict(unfinished)) + "\n").encode())

    def forget(self) -> None:
        """The game is finished: there is nothing to go on with."""
        self.path.unlink(missing_ok=True)


def kept_files() -> list[Path]:
    """The games that can be resumed, the one that was left last first; all but the newest `MOST_KEPT` are dropped."""
    remove_parts(state_folder())
    found = [(path.stat().st_mtime, path) for path in state_folder().glob("*.json")]
    paths = [path for _, path in sorted(found, reverse=True)]
    for path in paths[MOST_KEPT:]:
        path.unlink(missing_ok=True)
    return paths[:MOST_KEPT]


def unfinished_game() -> tuple[Unfinished, Path]:
    """The game that was left last, and its file."""
    paths = kept_files()
    if not paths:
        raise ReversiError(f"no unfinished game to go on with: expected one in {shown(str(state_folder()), 300)}")
    try:
        kept = Unfinished(**_checked(json.loads(paths[0].read_text(encoding="utf-8"))))
        kept.game()
    except ValueError as error:  # JSON and GGF errors are ValueErrors
        raise ReversiError(
            f"file {shown(str(paths[0]), 300)} is no game in progress, and may be deleted: {error}"
        ) from None
    return kept, paths[0]


def _checked(fields: Any) -> dict[str, Any]:
    kinds: dict[str, Any] = {"ggf": str, "black": str | None, "white": str | None, "adviser": str | None}
    kinds |= {"level": int | None, "time": float | int | None}
    if not isinstance(fields, dict) or not all(isinstance(fields.get(key), kind) for key, kind in kinds.items()):
        raise ReversiError("its fields are not as expected")
    return {key: fields.get(key) for key in kinds}


def save(game: Game, name: str | None, *, replace: bool) -> Path:
    """Write *game* to the file *name*: a transcript if that ends in ``.txt``, GGF otherwise; another file only if *replace*."""
    path = Path(name).expanduser() if name else Path(datetime.now().strftime("reversi-%Y%m%d-%H%M%S.ggf"))
    if path.exists() and not replace:
        raise ReversiError(f"file {shown(str(path), 300)} exists: expected another name, or save! to replace it")
    text = game.to_transcript() if path.suffix == ".txt" else game.to_ggf()
    try:
        write_atomically(path, f"{text}\n".encode())
    except OSError as error:
        raise ReversiError(f"file {shown(str(path), 300)} cannot be written: {_reason(error)}") from None
    return path


def load(name: str, number: int, like: Game) -> tuple[Game, int]:
    """Game *number*, from 1, of a GGF file, and how many it has; or a transcript, which is played by the rules of *like*."""
    path = Path(name).expanduser()
    try:
        if path.is_file() and path.stat().st_size > _LARGEST_FILE:
            raise ReversiError(f"file {shown(str(path), 300)} is larger than {_LARGEST_FILE} bytes: expected a game")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ReversiError(f"file {shown(str(path), 300)} cannot be read: {_reason(error)}") from None
    if not text.strip():
        raise ReversiError(f"file {shown(str(path), 300)} is empty: expected a game, GGF or moves")
    count = 1
    with within(f"file {shown(str(path), 300)}"):
        if _LOOKS_LIKE_GGF.match(text):
            count = len(_GAME_BEGINS.findall(text))
            record = next(islice(read_ggf(text.splitlines()), number - 1, None), None) if 1 <= number <= count else None
            if record is not None:
                return Game.from_record(record), count
        elif number == 1:
            return Game.from_transcript(text, like.start), 1
    raise ReversiError(f"game {number} of file {shown(str(path), 300)}: expected a number from 1 to {count}")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

"""Games on disk: the one in progress after every move, and those that are saved and loaded by name."""

import errno
import json
import os
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from play.game import Game
from reversi_env import ReversiError
from reversi_env.errors import quoted
from reversi_env.notation import read_ggf
from reversi_env.notation.ggf import is_blank, looks_like_ggf, read_properties
from reversi_env.notation.text import decoded, within
from reversi_env.rules import BLACK, WHITE, Colour
from reversi_env.storage.atomic import remove_temporary_files, write_atomically

#: Larger files are not read as games.
MAX_FILE_BYTES = 1 << 24
#: Maximum number of games kept for --resume.
MAX_KEPT = 20
#: The fields of the file of an unfinished game, with their types.
_KINDS: dict[str, Any] = {
    "ggf": str,
    **dict.fromkeys(("black", "white", "adviser"), str | None),
    "time": float | int | None,
}


@dataclass
class Settings:
    """The players: an agent spec for each side, None for a person. The first three fields are saved with an unfinished game.

    ``adviser`` gives hints and values, by default the strongest agent. ``time`` (seconds per move) holds in addition to the limits
    of a spec. ``opponent`` plays if a person asks for the computer. ``pause`` is in seconds after each move of a watched game.
    """

    agents: dict[Colour, str | None]
    adviser: str | None = None
    time: float | None = None
    opponent: str | None = None
    pause: float = 0.0
    shows_bar: bool = False

    @property
    def people(self) -> set[Colour]:
        return {colour for colour, agent in self.agents.items() if agent is None}


def state_folder() -> Path:
    """Return the folder of games in progress, in the user's state folder (XDG base directories)."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "reversi" / "games"


def session_file() -> Path:
    """Return the file of this session's game; every session has its own."""
    return state_folder() / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.json"


def save_in_progress(path: Path, game: Game, settings: Settings) -> None:
    """Write the game atomically, or raise an OSError; a game without moves or that is over has no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))
    if game.is_over() or not game.moves:
        path.unlink(missing_ok=True)
        return
    agents = {"black": settings.agents[BLACK], "white": settings.agents[WHITE], "adviser": settings.adviser}
    write_atomically(path, (json.dumps({"ggf": game.to_ggf(), **agents, "time": settings.time}) + "\n").encode())


def resumable_games() -> list[Path]:
    """Return the files of games that can be resumed, the newest first, and delete all but `MAX_KEPT`."""
    remove_temporary_files(state_folder())
    dated = [(path.stat().st_mtime, path) for path in state_folder().glob("*.json")]
    paths = [path for _, path in sorted(dated, reverse=True)]
    for path in paths[MAX_KEPT:]:
        path.unlink(missing_ok=True)
    return paths[:MAX_KEPT]


def unfinished_game() -> tuple[Game, Settings, Path]:
    """Return the newest unfinished game, its settings and its file."""
    paths = resumable_games()
    if not paths:
        raise ReversiError(
            f"--resume: expected an unfinished game in {quoted(str(state_folder()), 300)}; start one without --resume"
        )
    try:
        saved = json.loads(paths[0].read_text(encoding="utf-8"))
        if not isinstance(saved, dict) or not all(isinstance(saved.get(key), kind) for key, kind in _KINDS.items()):
            raise ReversiError("its fields are not as expected")
        _, black, white, adviser, time = map(saved.get, _KINDS)
        return Game.from_ggf(saved["ggf"]), Settings({BLACK: black, WHITE: white}, adviser, time), paths[0]
    except (ValueError, RecursionError) as error:  # JSON and GGF errors are ValueErrors
        raise ReversiError(
            f"file {quoted(str(paths[0]), 300)} is not a saved game: expected one of reversi play; delete it: {error}"
        ) from None


def save(game: Game, name: str | None, *, replace: bool) -> Path:
    """Write *game* to the file *name*: a transcript if that ends in ``.txt``, GGF otherwise; overwrite a file only if *replace*."""
    path = Path(name).expanduser() if name else Path(datetime.now().strftime("reversi-%Y%m%d-%H%M%S.ggf"))
    if path.exists() and not replace:
        raise ReversiError(f"file {quoted(str(path), 300)} exists: expected another name, or save! to replace it")
    text = game.to_transcript() if path.suffix == ".txt" else game.to_ggf()
    try:
        write_atomically(path, f"{text}\n".encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReversiError(f"file {quoted(str(path), 300)} cannot be written: {reason}") from None
    return path


def load(name: str, number: int, like: Game) -> tuple[Game, int]:
    path = Path(name).expanduser()
    place = f"file {quoted(str(path), 300)}"
    try:
        if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
            raise ReversiError(f"{place}: expected a game of at most {MAX_FILE_BYTES:,} bytes")
        text = decoded(path.read_bytes())
    except OSError as error:
        raise ReversiError(f"{place} cannot be read: {(error.strerror or str(error)).lower()}") from None
    return game_in_text(text, number, like, place)


def game_in_text(text: str, number: int, like: Game, place: str) -> tuple[Game, int]:
    """Return game *number* of GGF text, and how many it has; or a transcript, which is played by the rules of *like*."""
    if not text.strip():
        raise ReversiError(f"{place} is empty: expected a game, GGF or moves")
    with within(place):
        if looks_like_ggf(text):
            count = _games_in(text)
            index = selected(number, count)
            return Game.from_record(next(islice(read_ggf(text.splitlines()), index, None))), count
        selected(number, 1)
        try:
            return Game.from_transcript(text, like.start), 1
        except ReversiError as error:
            if like.start.rules.size < 8 or set(text.lower()) & set("gh78"):
                raise
            raise ReversiError(f"{error}; moves of a smaller board need --size 4 or --size 6") from None


def selected(number: int, count: int) -> int:
    if not 1 <= number <= count:
        raise ReversiError(f"game {number}: expected a number from 1 to {count}")
    return number - 1


def _games_in(text: str) -> int:
    """Return the number of games in GGF text; an unreadable game counts and ends the count."""
    count = offset = 0
    while not is_blank(text, offset):
        count += 1
        try:
            _, offset = read_properties(text, offset)
        except ReversiError:
            break
    return count

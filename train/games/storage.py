"""A tournament's folder: ``manifest.json`` (the options), ``games.jsonl`` and ``games.ggf`` (the games), ``ratings.svg``.

A finished game is one line at the end of ``games.jsonl``, written in one go and flushed to the disk. A process killed at any
moment leaves whole lines and perhaps a torn one at the end, which the next run cuts off; what is not there is played again,
what is there is not. Games end in any order; when all are there, the file is put in order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reversi_env import BLACK, WHITE, Position, ReversiError, __version__
from reversi_env.errors import shown
from reversi_env.notation import Game, read_obf_line, read_transcript, write_ggf, write_transcript
from reversi_env.writing import append_whole, write_atomically
from train.games.openings import Opening
from train.games.options import Fixture, TournamentOptions
from train.games.playing import Forfeit, PlayedGame

FORMAT = "reversi-tournament-1"
MANIFEST, GAMES, RECORDS, PLOT = "manifest.json", "games.jsonl", "games.ggf", "ratings.svg"


@dataclass(frozen=True)
class Record:
    """A game of a tournament."""

    fixture: Fixture
    game: PlayedGame


class Folder:
    """The folder of one tournament; it must not be used by two processes at once (see `train.folders`)."""

    def __init__(self, path: Path, options: TournamentOptions) -> None:
        self.path, self.options = path, options
        _check_manifest(path / MANIFEST, options)

    def read(self) -> dict[int, Record]:
        """The games so far by number; a torn last line is cut off."""
        path = self.path / GAMES
        if not path.exists():
            return {}
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
        records = {}
        for number, line in enumerate(data[:whole].decode("utf-8", "replace").splitlines(), 1):
            record = self._record(line, number)
            if record.fixture.index in records:
                raise ReversiError(
                    f"line {number} of {str(path)!r} repeats game {record.fixture.index}: expected it once"
                )
            records[record.fixture.index] = record
        return records

    def append(self, record: Record) -> None:
        """Add a game, whole or not at all."""
        append_whole(self.path / GAMES, _line(record, self.options).encode())

    def write_all(self, records: Iterable[Record]) -> None:
        """Put the games in order, and write them as GGF too."""
        ordered = sorted(records, key=lambda record: record.fixture.index)
        write_atomically(self.path / GAMES, "".join(_line(record, self.options) for record in ordered).encode())
        self.write_ggf(ordered)

    def write_ggf(self, records: Iterable[Record]) -> None:
        """Write the games as GGF, in order. The times are in the other file, so that the same games give the same bytes."""
        ordered = sorted(records, key=lambda record: record.fixture.index)
        text = "".join(f"{write_ggf(as_game(record, self.options))}\n" for record in ordered)
        write_atomically(self.path / RECORDS, text.encode())

    def _record(self, line: str, number: int) -> Record:
        try:
            return _read_line(line, self.options)
        except (ValueError, LookupError, TypeError) as error:
            raise ReversiError(
                f"line {number} of {str(self.path / GAMES)!r} cannot be read ({error}): expected a game of this tournament"
            ) from None


def as_game(record: Record, options: TournamentOptions) -> Game:
    """The game as a record for GGF; a failure is a game that ended on time, or was given up."""
    played, names = record.game, options.names
    black, white = names[record.fixture.black], names[record.fixture.white]
    tags, ending = {"PC": "Reversi Lab"}, None
    if played.forfeit is not None:
        tags["CO"] = f"{played.forfeit.colour} lost by {played.forfeit.kind}: {played.forfeit.reason}"
        ending = "timeout" if played.forfeit.kind == "timeout" else "resigned"
    moves = (*played.opening.moves, *played.moves)
    return Game(played.opening.start, moves, black, white, played.discs, ending, tags)  # type: ignore[arg-type]


def _line(record: Record, options: TournamentOptions) -> str:
    fixture, played = record.fixture, record.game
    content: dict[str, Any] = {
        "game": fixture.index,
        "round": fixture.round,
        "black": options.names[fixture.black],
        "white": options.names[fixture.white],
        "discs": played.discs,
        "opening": len(played.opening.moves),
        "moves": write_transcript((*played.opening.moves, *played.moves), "explicit"),
        "seconds": list(played.seconds),
    }
    start = played.opening.start
    if start != Position.initial(start.rules):
        content["start"] = f"{start.to_text()} {'X' if start.turn == BLACK else 'O'}"
    if played.forfeit is not None:
        content["forfeit"] = {
            "colour": str(played.forfeit.colour),
            "kind": played.forfeit.kind,
            "reason": played.forfeit.reason,
        }
    return json.dumps(content) + "\n"


def _read_line(line: str, options: TournamentOptions) -> Record:
    content = json.loads(line)
    fixture = options.fixture(int(content["game"]))
    names = options.names
    if (content["black"], content["white"]) != (names[fixture.black], names[fixture.white]):
        raise ReversiError(f"game {fixture.index} is between {shown(content['black'])} and {shown(content['white'])}")
    start = Position.initial(options.rules)
    if "start" in content:
        start = read_obf_line(content["start"], options.rules).position
    moves = read_transcript(content["moves"], start).moves
    cut, forfeit = int(content["opening"]), None
    if "forfeit" in content:
        said = content["forfeit"]
        forfeit = Forfeit(BLACK if said["colour"] == "black" else WHITE, str(said["kind"]), str(said["reason"]))
    seconds = tuple(float(value) for value in content["seconds"])
    played = PlayedGame(Opening(start, moves[:cut]), moves[cut:], seconds, int(content["discs"]), forfeit)
    return Record(fixture, played)


def _check_manifest(path: Path, options: TournamentOptions) -> None:
    """Write the manifest of a new tournament; compare that of one that goes on. More games may be asked for, not fewer.

    A tournament without a finished game has nothing to go on from: its manifest is replaced.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "options": options.as_dict(),
        "ingredients": options.ingredients(),
    }
    begun = _has_games(path.parent / GAMES)
    if path.exists() and begun:
        known = _read_manifest(path)
        folder = str(path.parent)
        for part in ("options", "ingredients"):
            for key in sorted({*known[part], *content[part]}):
                there, here = known[part].get(key), content[part].get(key)
                more = key == "games" and part == "options" and isinstance(there, int)
                if there != here and not (more and here >= there):
                    expected = f"{there} or more" if more else "the same"
                    raise ReversiError(
                        f"{folder!r} was begun with {key}={shown(there)}: expected {expected}, not {shown(here)}, or "
                        "another folder"
                    )
        if known["options"] == content["options"]:
            return
    elif begun:
        raise ReversiError(f"{str(path.parent)!r} has {GAMES} but no {MANIFEST}: expected an empty folder")
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def _has_games(path: Path) -> bool:
    """Whether the file has a whole line."""
    return path.exists() and b"\n" in path.read_bytes()


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {shown(content['format'])}")
        return {part: dict(content[part]) for part in ("options", "ingredients")}
    except (ValueError, LookupError, TypeError) as error:
        raise ReversiError(
            f"{str(path)!r} cannot be read ({error}): expected a manifest of the format {FORMAT}"
        ) from None

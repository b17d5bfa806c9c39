"""The folder of a tournament: ``manifest.json`` (the options), ``games.jsonl`` and ``games.ggf`` (the games), ``ratings.svg``.

A finished game is appended to ``games.jsonl`` by one write and flushed to the disk; an incomplete last line is removed by the
next run. Games end in any order; the complete file is in order.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reversi_env import BLACK, WHITE, Position, ReversiError
from reversi_env.errors import quoted
from reversi_env.notation import Game, read_obf_line, read_transcript, write_ggf, write_transcript
from reversi_env.storage.atomic import write_atomically
from train.arena.match import Forfeit, PlayedGame, result_of
from train.arena.openings import Opening
from train.arena.options import Fixture, TournamentOptions
from train.jobs.logs import JsonLines
from train.jobs.run import MANIFEST, Run, as_hashes

FORMAT = "reversi-tournament-1"
GAMES, RECORDS, PLOT = "games.jsonl", "games.ggf", "ratings.svg"


@dataclass(frozen=True)
class GameRecord:
    """A game of a tournament."""

    fixture: Fixture
    game: PlayedGame

    def points_of(self, player: int) -> float:
        discs = self.game.discs_of(BLACK if self.fixture.black == player else WHITE)
        return 0.5 + 0.5 * ((discs > 0) - (discs < 0))


class TournamentFolder(Run):
    """The folder of a tournament. The number of games may grow; before the first finished game all options may change."""

    options: TournamentOptions

    def __init__(self, path: Path, options: TournamentOptions) -> None:
        self._games = JsonLines(path / GAMES)
        super().__init__(
            *(path, options, options.content_hashes()),
            file=MANIFEST,
            format=FORMAT,
            extendable=("games",),
            begun=lambda: bool(self._games),
        )

    def _as_hashes(self, content_hashes: dict[str, Any]) -> dict[str, Any]:
        return as_hashes(content_hashes)

    def read(self) -> list[GameRecord]:
        records: dict[int, GameRecord] = {}
        for number, line in enumerate(self._games.read(), 1):
            try:
                record = _read_line(line, self.options)
                if record.fixture.index in records:
                    raise ReversiError(f"game {record.fixture.index} twice")
            except (ValueError, LookupError, TypeError) as error:
                raise self._games.damaged(number, error) from None
            records[record.fixture.index] = record
        return list(records.values())

    def append(self, record: GameRecord) -> None:
        self._games.append(_line(record, self.options))

    def write_all(self, records: Sequence[GameRecord]) -> None:
        """Replace all games by *records*, and write them as GGF too."""
        self._games.replace(_line(record, self.options) for record in records)
        self.write_ggf(records)

    def write_ggf(self, records: Sequence[GameRecord]) -> None:
        """Write the games as GGF, without times, so that equal games give equal bytes."""
        text = "".join(f"{write_ggf(as_game(record, self.options))}\n" for record in records)
        write_atomically(self.folder / RECORDS, text.encode())


def as_game(record: GameRecord, options: TournamentOptions) -> Game:
    """Return a game for GGF; a forfeit is a timeout or a resignation."""
    played, names = record.game, options.names
    black, white = names[record.fixture.black], names[record.fixture.white]
    tags, ending = {"PC": "Reversi Lab"}, None
    if played.forfeit is not None:
        tags["CO"] = f"{played.forfeit.colour} lost by {played.forfeit.kind}: {played.forfeit.reason}"
        ending = "timeout" if played.forfeit.kind == "timeout" else "resigned"
    moves = (*played.opening.moves, *played.moves)
    return Game(played.opening.start, moves, black, white, played.discs, ending, tags)  # type: ignore[arg-type]


def _line(record: GameRecord, options: TournamentOptions) -> dict[str, Any]:
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
        content["forfeit"] = asdict(played.forfeit) | {"colour": str(played.forfeit.colour)}
    return content


def _read_line(content: dict[str, Any], options: TournamentOptions) -> GameRecord:
    fixture = options.fixture(int(content["game"]))
    names = options.names
    if (content["black"], content["white"]) != (names[fixture.black], names[fixture.white]):
        raise ReversiError(f"game {fixture.index} is between {quoted(content['black'])} and {quoted(content['white'])}")
    start = Position.initial(options.rules)
    if "start" in content:
        start = read_obf_line(content["start"], options.rules).position
    moves = read_transcript(content["moves"], start).moves
    plies, forfeit = int(content["opening"]), None
    if "forfeit" in content:
        failure = content["forfeit"]
        colour = BLACK if failure["colour"] == "black" else WHITE
        forfeit = Forfeit(colour, str(failure["kind"]), str(failure["reason"]))
    discs = result_of(start.play_all(moves), forfeit)
    if content["discs"] != discs:
        raise ReversiError(f"{quoted(content['discs'])} discs for black, but {discs} by its moves")
    seconds = tuple(float(value) for value in content["seconds"])
    played = PlayedGame(Opening(start, moves[:plies]), moves[plies:], seconds, discs, forfeit)
    return GameRecord(fixture, played)

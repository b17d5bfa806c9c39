"""Request and response bodies and messages, one class each; the schemas of ``/openapi.json`` are made from them.

A field that is missing, unknown, of another type or out of its range is refused with a line that names it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from train.evaluation.review import Verdict

ColourName = Literal["black", "white"]
Role = Literal["black", "white", "spectator"]
VariantName = Literal["normal", "reversed"]
StartName = Literal["standard", "parallel"]
SizeNumber = Literal[4, 6, 8]

Name = Annotated[str, Meta(max_length=40, description="A player's name, shown to everybody.")]
Spec = Annotated[str, Meta(max_length=120, description="An agent: name[:key=value,…], for example six-factor:depth=4.")]
Token = Annotated[str, Meta(min_length=8, max_length=128, description="A secret that opens a seat of a game.")]
MoveName = Annotated[str, Meta(min_length=2, max_length=4, description="A square; the server makes all passes.")]
Ply = Annotated[int, Meta(ge=0, le=255)]
Board = Annotated[str, Meta(min_length=16, max_length=64, description="X black, O white, - empty; row by row from a1.")]
Comment = Annotated[str, Meta(max_length=1_000, description="A comment on a position.")]
Id = Annotated[str, Meta(max_length=40, description="Returned with the answer.")]


class Refused(Exception):  # noqa: N818 - a response, not a fault
    """A refused request: an HTTP status, a short code for programs, a line for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def problem(self, id: str | UnsetType = UNSET) -> Problem:
        """Return the error message for the client; *id* is that of the refused message."""
        return Problem(self.code, self.message, self.status, id)


class _Strict(Struct, forbid_unknown_fields=True):
    pass


# --- requests -------------------------------------------------------------------------------------


class SeatRequest(_Strict):
    """The player of one colour: a human (who needs the token) or an agent of the server."""

    kind: Literal["human", "agent"] = "human"
    agent: Spec | None = None
    name: Name | None = None


class ClockRequest(_Strict):
    """Time for each side, on the server's clock from the first move on, connected or not; a side without time loses."""

    seconds: Annotated[float, Meta(ge=1, le=86_400, description="Seconds for the whole game.")]
    increment: Annotated[float, Meta(ge=0, le=600, description="Seconds added after every move but the first.")] = 0.0


class CreateGame(_Strict):
    """A new game."""

    size: SizeNumber = 8
    variant: VariantName = "normal"
    start: StartName = "standard"
    moves: Annotated[
        list[MoveName], Meta(max_length=60, description="Opening moves, already played; they cannot be taken back.")
    ] = []
    black: SeatRequest = msgspec.field(default_factory=SeatRequest)
    white: SeatRequest = msgspec.field(default_factory=SeatRequest)
    clock: ClockRequest | None = None


class MoveRequest(_Strict):
    """A move; *ply* is the number of moves before it, so that a message sent twice has no effect."""

    move: MoveName
    ply: Ply


class AnalyseRequest(_Strict):
    """A position to be searched."""

    board: Board
    turn: ColourName
    variant: VariantName = "normal"
    agent: Annotated[str, Meta(max_length=40, description="An evaluator (default: the strongest).")] | None = None
    seconds: Annotated[float, Meta(gt=0, le=60, description="Search time, up to the server's own limit.")] = 0.3


class TranscriptRequest(_Strict):
    """Games or positions from number *first* on: moves (f5d6c3…), GGF (with its rules), OBF or a board; or a file, also WTHOR."""

    text: Annotated[str, Meta(max_length=60_000)] = ""
    file: Annotated[bytes, Meta(max_length=700_000, description="In base64; used instead of the text.")] = b""
    first: Annotated[int, Meta(ge=0, le=100_000)] = 0
    size: SizeNumber = 8
    variant: VariantName = "normal"
    start: StartName = "standard"


class OpeningRequest(_Strict):
    """A position, and the moves that were made from it, with every pass."""

    board: Board
    turn: ColourName
    variant: VariantName = "normal"
    moves: Annotated[list[Annotated[str, Meta(pattern="^([a-h][1-8]|pass)$")]], Meta(max_length=128)] = []


class PuzzleRequest(_Strict):
    """Puzzles of a game, as hard as for a player of this *rating*."""

    size: SizeNumber = 8
    variant: VariantName = "normal"
    rating: Annotated[float, Meta(ge=0, le=4_000, description="On the scale of the agents' *ratings*.")] = 1500.0


class Step(_Strict, omit_defaults=True):
    """A move of a review, and the variations that replace it."""

    move: Annotated[str, Meta(pattern="^([a-h][1-8]|pass)$")]
    comment: Comment = ""
    variations: list[list[Step]] = []


class Review(_Strict, omit_defaults=True):
    """A game with variations and comments, from a position; clients check the moves, and write the *values* of the main line."""

    board: Board
    turn: ColourName
    variant: VariantName = "normal"
    black: Name | None = None
    white: Name | None = None
    comment: Comment = ""
    moves: list[Step] = []
    values: Annotated[list[Annotated[str, Meta(max_length=400)]], Meta(max_length=128)] = []


class Created(Struct):
    """A created game: its name, and the tokens of every human seat and of the spectators."""

    game: str
    tokens: dict[str, str]


class Shared(Struct):
    """A stored review: its name, which opens it at ``/review/NAME`` for a year."""

    review: str


class SeatState(Struct):
    """The player of one colour, and whether somebody is connected for it."""

    kind: Literal["human", "agent"]
    name: str
    connected: bool
    agent: str | None = None


class ClockState(Struct):
    """Seconds left for each side when the message is sent; *running* is the side whose clock runs.

    *grace* is the extra time per game, in seconds, that compensates for network latency.
    """

    black: float
    white: float
    increment: float
    running: ColourName | None
    grace: float


class Result(Struct):
    """How a game ended; *score* in discs for black; empty squares count for the winner."""

    winner: ColourName | None
    score: int
    ending: Literal["played", "resigned", "timeout", "agreed"]


class State(Struct, tag="state", tag_field="type"):
    """The state of a game; *moves* has every pass as ``pass``. *revision* grows with each change; *rematch* names the next game."""

    game: str
    revision: int
    size: int
    variant: VariantName
    start: StartName
    status: Literal["running", "finished"]
    board: str
    turn: ColourName
    legal: list[str]
    moves: list[str]
    black: SeatState
    white: SeatState
    discs: dict[str, int]
    clock: ClockState | None
    result: Result | None
    undo_request: ColourName | None
    rematch: str | None
    thinking: bool
    spectators: int


class MoveValue(Struct):
    """A move's value in discs for the side to move, and its verdict beside the best one."""

    move: str
    value: float
    verdict: Verdict


class Analysis(Struct):
    """The result of a search; values in discs for the side to move, *exact* if proven.

    *confidence*: per cent, that values are at most two discs off, if the search reached the end of the game; otherwise 0.
    """

    move: str | None
    value: float
    depth: int
    exact: bool
    confidence: int
    pv: list[str]
    nodes: int
    seconds: float
    moves: list[MoveValue]
    agent: str


class RecordedGame(Struct):
    """A game as recorded: where it begins, and its moves, from which passes may be missing. *result* in discs for black."""

    size: int
    variant: VariantName
    board: str
    turn: ColourName
    moves: list[str]
    black: str | None
    white: str | None
    result: float | None
    comment: str


class Transcript(Struct):
    """Games from number *first* on, and whether *more* follow. A position is a game without moves."""

    games: list[RecordedGame]
    first: int
    more: bool


class BookMove(Struct):
    """A book move: its value in discs for the mover, the number of book lines after it, and whether agents play it."""

    move: str
    value: float
    lines: int
    plays: bool


class PlayedMove(Struct):
    """A move of recorded games: the number of games, the mover's share of points, and the mean score in discs for the mover."""

    move: str
    games: int
    points: float
    score: float


class Opening(Struct):
    """The opening's name after *plies* moves, and the moves of the last position in the book and recorded games, by frequency."""

    name: str | None
    moves: list[BookMove]
    games: list[PlayedMove]
    plies: int = 0


class PuzzleEntry(Struct):
    """A position with one best *move*, of *value* discs to the side to move; all others lose *margin* discs or more.

    *number* is its index among the puzzles of its game, *rating* its difficulty.
    """

    number: int
    board: str
    turn: ColourName
    move: str
    value: int
    margin: int
    rating: int


class Puzzles(Struct):
    """Some puzzles in random order; none if the package has none for the game."""

    puzzles: list[PuzzleEntry]


class AgentEntry(Struct):
    """An opponent: whether it searches (with depth, level and time), the sizes that it plays, those *ready* (compiled).

    *levels* are the names of its levels from 1 on, *ratings* their Elo in normal 8×8 games, *books* the sizes with ``book=yes``.
    """

    name: str
    title: str
    about: str
    searches: bool
    sizes: list[int]
    levels: list[str] = []
    ratings: list[int] = []
    books: list[int] = []
    ready: list[int] = []


class Agents(Struct):
    """The agents, the share that is *compiled*, the server's limits, and its *address* for others (null if there is none)."""

    agents: list[AgentEntry]
    max_think_time: float
    max_depth: int
    address: str | None
    compiled: float


class Health(Struct):
    """The server's state; lags of its event loop in milliseconds."""

    status: str
    version: str
    rooms: int
    connections: int
    waiting: int
    searches: int
    lag_median_ms: float
    lag_p99_ms: float
    lag_max_ms: float


class Problem(Struct, tag="error", tag_field="type", omit_defaults=True):
    """The reason of a refusal: a code for programs, a line for people."""

    code: str
    message: str
    status: int
    id: str | UnsetType = UNSET


# --- over a WebSocket -----------------------------------------------------------------------------


class _Message(_Strict, tag=str.lower, tag_field="type", omit_defaults=True, kw_only=True):
    id: Id | UnsetType = UNSET


class Join(_Message):
    """The first message; the token opens a seat. With a *claim*, only that opens the seat afterwards: an invitation works once."""

    token: Token
    claim: Token | UnsetType = UNSET


class Move(_Message):
    """Make move number *ply*, counted from 0."""

    move: MoveName
    ply: Ply


class Undo(_Message):
    """Take back the last own move: at once against an agent; otherwise a request, or the answer to the other side's request."""


class Grant(_Message):
    """Grant the other side's take-back request; unlike `Undo` it is refused if there is none."""


class Decline(_Message):
    """Decline the other side's take-back request."""


class Resign(_Message):
    """Resign the game."""


class Rematch(_Message):
    """Begin the next game with colours exchanged, after the end."""


class Ping(_Message):
    """Answered with a pong."""


class Pong(_Message):
    """The answer to a ping."""


class Joined(_Message):
    """The seat that the token opened. The state follows."""

    role: Role
    game: str


Incoming = Join | Move | Undo | Grant | Decline | Resign | Rematch | Ping

encode = msgspec.json.Encoder().encode
_decoder = cache(msgspec.json.Decoder)


def read(kind: Any, data: bytes) -> Any:
    """Return a request's body as *kind*, or a client's message (`Incoming`); a refusal says what was expected of a body."""
    try:
        return _decoder(kind).decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        reason = str(error)[:200] or "the message is not JSON as expected"
        expected = "" if kind is Incoming else f"; expected an object with {_expected(kind)}"
        raise Refused(400, "bad_message", reason + expected) from None


class _WithId(Struct):
    id: Id | UnsetType = UNSET


def id_of(data: bytes) -> str | UnsetType:
    """Return the id of a client's message, even if the message is invalid."""
    try:
        return _decoder(_WithId).decode(data).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return UNSET


@cache
def _expected(kind: type) -> str:
    fields = [(field.name, field.type) for field in msgspec.structs.fields(kind)]
    choices = {name: f" ({', '.join(map(str, get_args(of)))})" for name, of in fields if get_origin(of) is Literal}
    return ", ".join(name + choices.get(name, "") for name, _ in fields)

"""What travels between clients and the server: one class for every body and message.

Reading checks: a field that is missing, unknown, of another type or out of its range is refused with a line that says which. The
same classes give the schemas of ``/openapi.json``.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

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
MoveName = Annotated[
    str, Meta(min_length=2, max_length=4, description="A square, a1 to h8. Passes are made by the server.")
]
Ply = Annotated[int, Meta(ge=0, le=255)]
Board = Annotated[str, Meta(min_length=16, max_length=64, description="X black, O white, - empty; row by row from a1.")]
Comment = Annotated[str, Meta(max_length=1_000, description="What somebody says about a position.")]
Id = Annotated[str, Meta(max_length=40, description="Returned with the answer, to tell answers apart.")]


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is not granted: an HTTP status, a short code for programs, a line for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def problem(self, id: str | UnsetType = UNSET) -> Problem:
        """What is sent about it, with the *id* of the message that it answers."""
        return Problem(self.code, self.message, self.status, id)


class _Strict(Struct, forbid_unknown_fields=True):
    """A structure that refuses fields it does not know."""


# --- requests -------------------------------------------------------------------------------------


class SeatRequest(_Strict):
    """Who plays one colour: a human (who needs the token) or an agent of the server."""

    kind: Literal["human", "agent"] = "human"
    agent: Spec | None = None
    name: Name | None = None


class ClockRequest(_Strict):
    """Time for each side; who has none left loses. It runs on the server from the first move on, connected or not."""

    seconds: Annotated[float, Meta(ge=1, le=86_400, description="Seconds for the whole game.")]
    increment: Annotated[
        float,
        Meta(ge=0, le=600, description="Seconds added after every move but the first, before which no time runs."),
    ] = 0.0


class CreateGame(_Strict):
    """A new game."""

    size: SizeNumber = 8
    variant: VariantName = "normal"
    start: StartName = "standard"
    black: SeatRequest = msgspec.field(default_factory=SeatRequest)
    white: SeatRequest = msgspec.field(default_factory=SeatRequest)
    clock: ClockRequest | None = None


class MoveRequest(_Strict):
    """A move; *ply* is the number of moves made before it, so that no message counts twice."""

    move: MoveName
    ply: Ply


class AnalyseRequest(_Strict):
    """A position to be searched."""

    board: Board
    turn: ColourName
    variant: VariantName = "normal"
    agent: Annotated[str, Meta(max_length=40, description="An evaluator; the network where there is one.")] | None = (
        None
    )
    seconds: Annotated[
        float, Meta(gt=0, le=60, description="Time to think, from 0.01 up to the server's own limit.")
    ] = 0.3


class TranscriptRequest(_Strict):
    """Games or positions: text with moves (f5d6c3…), GGF (which says its own rules), OBF or a board; or a file with that, or WTHOR.

    Of many games some are told of, from number *first* on.
    """

    text: Annotated[str, Meta(max_length=60_000)] = ""
    file: Annotated[bytes, Meta(max_length=700_000, description="In base64; it goes before the text.")] = b""
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
    """A move of a review, and the lines that could be played in its place."""

    move: Annotated[str, Meta(pattern="^([a-h][1-8]|pass)$")]
    comment: Comment = ""
    variations: list[list[Step]] = []


class Review(_Strict, omit_defaults=True):
    """A game with variations and comments, from a position: who opens it checks the moves."""

    board: Board
    turn: ColourName
    variant: VariantName = "normal"
    black: Name | None = None
    white: Name | None = None
    comment: Comment = ""
    moves: list[Step] = []


# --- answers --------------------------------------------------------------------------------------


class Created(Struct):
    """A game was created: its name, and the secret of every human seat and of the spectators' places."""

    game: str
    tokens: dict[str, str]


class Shared(Struct):
    """A review was kept: its name, which opens it at ``/review/NAME``, for a year."""

    review: str


class SeatState(Struct):
    """Who plays one colour, and whether somebody is connected for it."""

    kind: Literal["human", "agent"]
    name: str
    connected: bool
    agent: str | None = None


class ClockState(Struct):
    """Seconds left for each side; *running* is the side whose clock runs, from the moment this was sent.

    A side whose time is up has lost when its *grace* is used up too: so many seconds in the whole game, for what networks take.
    """

    black: float
    white: float
    increment: float
    running: ColourName | None
    grace: float


class Result(Struct):
    """How a game ended; *score* in discs for black, the empty squares to the winner."""

    winner: ColourName | None
    score: int
    ending: Literal["played", "resigned", "timeout", "agreed"]


class State(Struct, tag="state", tag_field="type"):
    """All that there is to know about a game. *moves* has every pass as ``pass``.

    *revision* grows with every move, taking back and end; not with who is there, nor with the wish to take back.
    """

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
    thinking: bool
    spectators: int


class MoveValue(Struct):
    """A move's value in discs for the side to move, and what it is called beside the best one."""

    move: str
    value: float
    verdict: Verdict


class Analysis(Struct):
    """What a search found; values in discs for the side to move, *exact* if proven.

    *confidence* in percent, if the search reached the end of the game: values are so likely no more than two discs off. Else 0.
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
    """Games read, from number *first* on, and whether there are *more* behind them. A position is a game without moves."""

    games: list[RecordedGame]
    first: int
    more: bool


class BookMove(Struct):
    """A move of the book: its value in discs for who plays it, and the ways to go on from it to where the book ends.

    *plays*: whether an agent may choose it; others are there to be known.
    """

    move: str
    value: float
    lines: int
    plays: bool


class PlayedMove(Struct):
    """A move of recorded games: how many went on with it, the share of points that it got, and its mean score in discs."""

    move: str
    games: int
    points: float
    score: float


class Opening(Struct):
    """What the moves are called, if they are an opening, and how the moves of the last position stand in the book.

    *games*: how recorded games went on from there, the most frequent move first; none where the server has no games.
    """

    name: str | None
    moves: list[BookMove]
    games: list[PlayedMove]


class PuzzleEntry(Struct):
    """A position with one best *move*: worth *value* discs to the side to move, any other *margin* discs less or worse.

    *number* is its place among the puzzles of its game; *rating* says how hard it is.
    """

    number: int
    board: str
    turn: ColourName
    move: str
    value: int
    margin: int
    rating: int


class Puzzles(Struct):
    """Some puzzles, in no order; none where the package has none of that game."""

    puzzles: list[PuzzleEntry]


class AgentEntry(Struct):
    """An agent to play against: whether it searches (and so knows depth, level and time) and the sizes that it plays.

    *levels*: the names of its levels from 1 on, where they have names; *ratings*: their Elo in normal 8×8 games, where known.
    *books*: the sizes for which it may be asked to play by a book that was made with it, ``book=yes``.
    """

    name: str
    title: str
    about: str
    searches: bool
    sizes: list[int]
    levels: list[str] = []
    ratings: list[int] = []
    books: list[int] = []


class Agents(Struct):
    """The agents, the limits of this server, and where other machines reach it (*address*; null where they cannot)."""

    agents: list[AgentEntry]
    longest_think: float
    deepest: int
    address: str | None


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
    """Why something was refused: a code for programs, a line for people."""

    code: str
    message: str
    status: int
    id: str | UnsetType = UNSET


# --- over a WebSocket -----------------------------------------------------------------------------


class _Message(_Strict, tag=str.lower, tag_field="type", omit_defaults=True, kw_only=True):
    id: Id | UnsetType = UNSET


class Join(_Message):
    """The first message: the token says which seat."""

    token: Token


class Move(_Message):
    """Make a move, as *ply*-th from 0."""

    move: MoveName
    ply: Ply


class Undo(_Message):
    """Take one's last move back: at once against an agent; else it asks, or grants what the other side asked for."""


class Grant(_Message):
    """Allow the take-back that the other side asked for; unlike `Undo` it is refused when nobody asks any more."""


class Decline(_Message):
    """Refuse the take-back that the other side asked for."""


class Resign(_Message):
    """Give the game up."""


class Ping(_Message):
    """Answered with a pong."""


class Pong(_Message):
    """The answer to a ping."""


class Joined(_Message):
    """The token was right: the seat that it opened. The state follows."""

    role: Role
    game: str


Incoming = Join | Move | Undo | Grant | Decline | Resign | Ping

encode = msgspec.json.Encoder().encode
_decoder = cache(msgspec.json.Decoder)


def read(kind: Any, data: bytes) -> Any:
    """A request's body as *kind*, or a client's message (`Incoming`), checked; a refusal says what was expected of a body."""
    try:
        return _decoder(kind).decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        reason = str(error)[:200] or "the message is not JSON as expected"
        expected = "" if kind is Incoming else f"; expected an object with {_expected(kind)}"
        raise Refused(400, "bad_message", reason + expected) from None


class _Named(Struct):
    """What a message is called, whatever else it says."""

    id: Id | UnsetType = UNSET


def id_of(data: bytes) -> str | UnsetType:
    """The id of a client's message that may be wrong in any other way."""
    try:
        return _decoder(_Named).decode(data).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return UNSET


@cache
def _expected(kind: type) -> str:
    """The fields of *kind*, with their values where these are few."""
    values = {name: get_args(hint) for name, hint in get_type_hints(kind).items() if get_origin(hint) is Literal}
    fields = kind.__struct_fields__  # type: ignore[attr-defined]
    return ", ".join(f"{name} ({', '.join(map(str, values[name]))})" if name in values else name for name in fields)

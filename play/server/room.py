"""`Room`: one game with the people connected to it.

Every change is made in one go within the event loop, handed to the store, and told to everybody once it is written. An agent's
search belongs to the position it began in: whatever changes the game cancels it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import sqlite3
import time
import zlib
from dataclasses import asdict, dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from play.game import Game
from play.server.catalogue import Order
from play.server.clock import Clock
from play.server.messages import Refused, Result, Role, SeatState, State, encode
from play.server.pool import WorkerLost
from reversi_env import Position, ReversiError, Rules
from reversi_env.notation import Annotation
from reversi_env.rules import BLACK, WHITE, Colour

if TYPE_CHECKING:
    from play.server.hall import Hall
    from play.server.store import Write

log = logging.getLogger("reversi.server")

#: An agent with a clock uses this share of its time for a move, spread over the moves that it expects to make.
CLOCK_SHARE = 0.9
#: How often a search is asked for again if its worker dies.
TRIES = 3


class Member(Protocol):
    """Somebody connected to a room."""

    role: Role

    def tell(self, state: bytes) -> None:
        """Send a state, soon; a later one may take its place."""

    def leave(self, code: int, reason: str) -> None:
        """Close the connection."""


@dataclass
class Seat:
    """Who plays a colour. *secret* is the hash of a human's token, in hexadecimal."""

    kind: str
    name: str
    agent: str | None = None
    secret: str | None = None


def hashed(token: str) -> str:
    """What is kept of a token. It has 192 random bits, so that a plain hash hides it."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


_DISCS = str.maketrans("012", "-XO")


def board_text(position: Position) -> str:
    """`Position.to_text`, twenty times as fast: a server writes two boards a move.

    The bits of each board are read as decimal digits, and black's added to twice white's: a digit for each square.
    """
    digits = int(f"{position.black:b}") + 2 * int(f"{position.white:b}")
    squares = str(digits).zfill(64)[::-1].translate(_DISCS)
    size, margin = position.rules.size, position.rules.margin
    if size == 8:
        return squares
    first = 9 * margin
    return "".join(squares[at : at + size] for at in range(first, first + 8 * size, 8))


def colour_name(colour: Colour) -> Any:
    """``black`` or ``white``."""
    return "black" if colour == BLACK else "white"


class Room:
    """A game, its seats, its clock and its members; made by `Hall`."""

    def __init__(self, hall: Hall, game_id: str, game: Game, seats: dict[Colour, Seat], spectator: str) -> None:
        self.id, self.game, self.seats = game_id, game, seats
        self._hall, self._spectator = hall, spectator
        self.orders: dict[Colour, Order] = {}
        self.clock: Clock | None = None
        self.revision = 0
        self.created = self.updated = time.time()
        self.members: set[Member] = set()
        self.idle_since = monotonic()
        self._since = hall.time.now()  # when the turn began
        self._undo_request: Colour | None = None
        self._thinking: asyncio.Task[None] | None = None
        self._flag: asyncio.TimerHandle | None = None
        self.closed = False

    # --- who is who -------------------------------------------------------------------------------

    def role(self, token: str) -> Role:
        """The seat that *token* opens; every hash is compared, each in constant time."""
        given = hashed(token)
        role: Role | None = "spectator" if hmac.compare_digest(given, self._spectator) else None
        for colour, seat in self.seats.items():
            if hmac.compare_digest(given, seat.secret or "0" * 64):
                role = colour_name(colour)
        if role is None:
            raise Refused(403, "wrong_token", "the token does not open this game")
        return role

    def enter(self, member: Member) -> None:
        """Let *member* follow the game; it is told the state, and so is everybody else."""
        if len(self.members) >= self._hall.options.room_connections:
            raise Refused(429, "room_full", "too many are connected to this game; try again later")
        self.members.add(member)
        self._tell()
        self._go_on()

    def exit(self, member: Member) -> None:
        """*member* is gone; its seat stays its own."""
        self.members.discard(member)
        self.idle_since = monotonic()
        if not self.closed:
            self._tell()
            if self._is_unwatched():
                self._stop_thinking()

    # --- what can be done -------------------------------------------------------------------------

    def move(self, role: Role, move: str, ply: int) -> asyncio.Future[bytes]:
        """Make a move for *role*, if it is its turn and *ply* moves were made; done when it is written."""
        colour = self._playing(role)
        if ply != len(self.game.moves):
            raise Refused(409, "wrong_ply", f"ply {ply}: expected {len(self.game.moves)}, the number of moves made")
        if colour != self.game.turn:
            raise Refused(409, "not_your_turn", f"{colour_name(self.game.turn)} is to move")
        if move.lower() in ("pass", "pa", "ps", "--"):
            raise Refused(400, "illegal_move", "passes are made by the server: expected a square")
        return self._make(move, None, None)

    def undo(self, role: Role) -> asyncio.Future[bytes]:
        """Take back to *role*'s last choice: at once against an agent, else if both want it."""
        colour = self._playing(role)
        other = self.seats[colour.other]
        if other.kind == "agent":
            return self._take_back({colour})
        if self._undo_request == colour.other:
            return self._take_back({colour.other})
        if not any(self.game.mover(n) == colour and m != "pass" for n, m in enumerate(self.game.moves)):
            raise Refused(409, "nothing_to_undo", "no move to take back: you have made none")
        self._undo_request = colour
        return self._tell()

    def decline(self, role: Role) -> asyncio.Future[bytes]:
        """Refuse the other side's wish to take back."""
        colour = self._playing(role)
        if self._undo_request != colour.other:
            raise Refused(409, "nothing_asked", "nobody asked to take a move back")
        self._undo_request = None
        return self._tell()

    def resign(self, role: Role) -> asyncio.Future[bytes]:
        """Give the game up."""
        return self._end("resigned", self._playing(role))

    def state(self) -> State:
        """The game as it is now."""
        game, position = self.game, self.game.position
        over = game.is_over()
        return State(
            game=self.id,
            revision=self.revision,
            size=game.rules.size,
            variant=game.rules.variant,
            start=game.rules.start,
            status="finished" if over else "running",
            board=board_text(position),
            turn=colour_name(position.turn),
            legal=[] if over else position.legal_moves(),
            moves=list(game.moves),
            black=self._seat_state(BLACK),
            white=self._seat_state(WHITE),
            discs={"black": position.discs(BLACK), "white": position.discs(WHITE)},
            clock=self.clock.state(self._hall.time.now()) if self.clock else None,
            result=self._result() if over else None,
            undo_request=None if self._undo_request is None else colour_name(self._undo_request),
            thinking=not over and self.seats[position.turn].kind == "agent",
            spectators=sum(member.role == "spectator" for member in self.members),
        )

    def ggf(self) -> str:
        """The record of the game so far."""
        return self.game.to_ggf()

    # --- changes ----------------------------------------------------------------------------------

    def _playing(self, role: Role) -> Colour:
        """The colour of a player whose game goes on."""
        if role == "spectator":
            raise Refused(403, "spectator", "spectators only watch")
        if self.game.is_over():
            raise Refused(409, "game_over", "the game is over")
        return BLACK if role == "black" else WHITE

    def _make(self, move: str, seconds: float | None, value: float | None) -> asyncio.Future[bytes]:
        game, now = self.game, self._hall.time.now()
        mover, before = game.turn, len(game.moves)
        took = seconds if seconds is not None else round(now - self._since, 3)
        try:
            game.play(move, seconds=took, evaluation=value)
        except ReversiError as error:
            raise Refused(400, "illegal_move", str(error)[:200]) from None
        if self.clock and self.clock.running == mover and not self.clock.press(mover, now, seconds=seconds):
            game.undo()
            return self._end("timeout", mover)
        game.play_forced_pass()
        self._undo_request = None
        self._stop_thinking()
        new = range(before, len(game.moves))
        notes = game.annotations
        writes: list[Write] = [
            (
                "INSERT INTO moves VALUES (?, ?, ?, ?, ?)",
                (self.id, n, game.moves[n], notes[n].seconds, notes[n].evaluation),
            )
            for n in new
        ]
        return self._changed(writes)

    def _take_back(self, colours: set[Colour]) -> asyncio.Future[bytes]:
        try:
            self.game.undo_to(colours)
        except ReversiError as error:
            raise Refused(409, "nothing_to_undo", str(error)[:200]) from None
        self._undo_request = None
        self._stop_thinking()
        return self._changed([("DELETE FROM moves WHERE game = ? AND ply >= ?", (self.id, len(self.game.moves)))])

    def _end(self, ending: Any, loser: Colour) -> asyncio.Future[bytes]:
        self.game.end(ending, loser)
        self._undo_request = None
        self._stop_thinking()
        return self._changed([])

    def _changed(self, writes: list[Write]) -> asyncio.Future[bytes]:
        """The game has changed: set the clock, write, tell, and let an agent think."""
        self._since = self._hall.time.now()
        self._set_clock(self._since)
        self.revision += 1
        self.updated = time.time()
        told = self._tell([*writes, self._row_update()])
        self._go_on()
        return told

    def _row_update(self) -> Write:
        game, over = self.game, self.game.is_over()
        left = [self.clock.left(colour, self._since) if self.clock else None for colour in (BLACK, WHITE)]
        loser = int(game.score(BLACK) > 0) * 2 - 1 if game.ending else None  # who lost is the colour that did not win
        return (
            "UPDATE games SET updated = ?, revision = ?, status = ?, black_left = ?, white_left = ?, ending = ?, loser = ?,"
            " score = ?, since = ? WHERE id = ?",
            (
                self.updated,
                self.revision,
                "finished" if over else "running",
                *left,
                game.ending,
                loser,
                game.score(BLACK) if over else None,
                self._since,
                self.id,
            ),
        )

    def _tell(self, writes: list[Write] | None = None) -> asyncio.Future[bytes]:
        """Tell everybody the state as it is now, once *writes* are on disk and all that was told before is told."""
        text = encode(self.state())
        written = self._hall.store.write(writes or [])
        told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def when_written(write: asyncio.Future[None]) -> None:
            failure = None if write.cancelled() else write.exception()
            if failure is not None:
                log.error("game %s could not be written: %s", self.id, failure)
                self._hall.drop(self, "the game could not be stored")
                told.set_exception(Refused(503, "storage", "the game could not be stored; try again later"))
                told.exception()  # asked for or not
                return
            for member in self.members:
                member.tell(text)
            if not told.done():
                told.set_result(text)

        written.add_done_callback(when_written)
        return told

    # --- the clock --------------------------------------------------------------------------------

    def _set_clock(self, since: float) -> None:
        """Let the right side's time run from *since* on: from the first move, until the game is over."""
        if not self.clock:
            return
        self.clock.stop(since)
        if self._flag:
            self._flag.cancel()
            self._flag = None
        if self.game.moves and not self.game.is_over():
            self.clock.run(self.game.turn, since)
            self._await_flag()

    def _until_flag(self) -> float:
        """Seconds until the person to move has lost on time; an agent is charged what it searched, when it has."""
        if self.closed or not self.clock or self.seats[self.game.turn].kind == "agent":
            return float("inf")
        return self.clock.until_flag(self._hall.time.now())

    def _await_flag(self) -> None:
        left = self._until_flag()
        if left < float("inf"):
            self._flag = asyncio.get_running_loop().call_later(max(0.0, left) + 0.01, self._flag_is_due)

    def _flag_is_due(self) -> None:
        self._flag = None
        if self.look_at_flag() is None:
            self._await_flag()

    def look_at_flag(self) -> asyncio.Future[bytes] | None:
        """End the game if the person to move has no time and no grace left: done when that is written; None if there is some."""
        return self._end("timeout", self.game.turn) if self._until_flag() <= 0 else None

    # --- agents -----------------------------------------------------------------------------------

    def _is_unwatched(self) -> bool:
        """Whether two agents play and nobody looks: such a game waits."""
        return not self.members and all(seat.kind == "agent" for seat in self.seats.values())

    def _go_on(self) -> None:
        """Let the agent think whose turn it is."""
        if self.closed or self._thinking or self.game.is_over() or self._is_unwatched():
            return
        if self.seats[self.game.turn].kind == "agent":
            self._thinking = asyncio.get_running_loop().create_task(self._think(self.game.turn))

    def _stop_thinking(self) -> None:
        """Cancel the search that is under way, unless it is the one that has just led to a move."""
        task, self._thinking = self._thinking, None
        if task and task is not asyncio.current_task():
            task.cancel()

    async def _think(self, colour: Colour) -> None:
        began = monotonic()
        answer = await self._searched(colour)
        if all(seat.kind == "agent" for seat in self.seats.values()):  # slowly enough to be watched
            await asyncio.sleep(max(0.0, self._hall.options.watch_pace - (monotonic() - began)))
        if "error" in answer:
            log.error("game %s: agent %s: %s", self.id, self.orders[colour].spec, answer["error"])
            self._thinking = None
            return
        self._make(answer["move"], round(answer["seconds"], 3), answer["value"])

    async def _searched(self, colour: Colour) -> dict[str, Any]:
        order, position = self.orders[colour], self.game.position
        message = {
            "kind": "move",
            "size": position.rules.size,
            "variant": position.rules.variant,
            "own": position.own,
            "opp": position.opp,
            "turn": colour_name(colour),
            "table": self._hall.options.table,
            "seed": self._seed(order),
            "seconds": self._time_for(colour, order.seconds),
            **order.message(),
        }
        for _ in range(TRIES):
            try:
                return await self._hall.pool.search(self.id, message, is_long=order.is_long)
            except WorkerLost:
                log.warning("game %s: a search was lost, and is asked for again", self.id)
        return {"error": "the search was lost again and again"}

    def _time_for(self, colour: Colour, seconds: float | None) -> float | None:
        """Seconds for this move: the agent's own limit, or less if its clock says so."""
        if not self.clock or not self.orders[colour].searches:
            return seconds
        moves_left = self.game.position.empties / 2 + 1
        left = max(0.0, self.clock.left(colour, self._hall.time.now()))
        fair = CLOCK_SHARE * (left / moves_left + 0.8 * self.clock.increment)
        return max(0.01, min(fair, seconds if seconds is not None else fair))

    def _seed(self, order: Order) -> int:
        """A seed for equal moves: the agent's own, or the game's, and another at every ply."""
        own = order.seed if order.seed is not None else zlib.crc32(self.id.encode())
        return zlib.crc32(f"{own} {len(self.game.moves)}".encode())

    # --- what it consists of ----------------------------------------------------------------------

    def _seat_state(self, colour: Colour) -> SeatState:
        seat = self.seats[colour]
        connected = seat.kind == "agent" or any(member.role == colour_name(colour) for member in self.members)
        return SeatState(seat.kind, seat.name, connected, seat.agent)  # type: ignore[arg-type]

    def _result(self) -> Result:
        winner = self.game.winner()
        name = None if winner is None else colour_name(winner)
        return Result(name, self.game.score(BLACK), self.game.ending or "played")

    # --- the beginning and the end ----------------------------------------------------------------

    def insertion(self) -> Write:
        """The statement that puts a new game into the database."""
        clock, now, rules = self.clock, self._since, self.game.rules
        seats = [json.dumps(asdict(self.seats[colour])) for colour in (BLACK, WHITE)]
        times = (
            (clock.left(BLACK, now), clock.increment, clock.left(BLACK, now), clock.left(WHITE, now))
            if clock
            else (None,) * 4
        )
        return (
            "INSERT INTO games VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, ?)",
            (
                *(self.id, self.created, self.updated, self.revision),
                *(rules.size, rules.variant, rules.start),
                *seats,
                self._spectator,
                *times,
                self._since,
            ),
        )

    @classmethod
    def restored(cls, hall: Hall, row: sqlite3.Row, moves: list[sqlite3.Row]) -> Room:
        """The room of a stored game. A person's time has run on in the meantime; an agent has not searched, and begins now."""
        rules = Rules(row["size"], row["variant"], row["start"])
        seats = {BLACK: Seat(**json.loads(row["black"])), WHITE: Seat(**json.loads(row["white"]))}
        game = Game(rules, seats[BLACK].name, seats[WHITE].name)
        for move in moves:
            game._make(move["move"], Annotation(move["value"], move["seconds"]))
        if row["ending"]:
            game.end(row["ending"], Colour(row["loser"]))
        room = cls(hall, row["id"], game, seats, row["spectator"])
        room.revision, room.created, room.updated = row["revision"], row["created"], row["updated"]
        room._since = row["since"]
        if row["clock_seconds"] is not None:
            grace = hall.options.clock_grace
            room.clock = Clock(row["black_left"], row["white_left"], row["clock_increment"], grace)
            room._set_clock(room._since if seats[game.turn].kind == "human" else hall.time.now())
        return room

    def close(self, reason: str) -> None:
        """Leave the memory: nothing is written any more, and everybody is sent away to come back."""
        self.closed = True
        self._stop_thinking()
        if self._flag:
            self._flag.cancel()
        for member in list(self.members):
            member.leave(1012, reason)


def new_token() -> str:
    """A secret that nobody guesses: 192 random bits."""
    return secrets.token_urlsafe(24)

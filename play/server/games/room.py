"""`Room`: one game with the people connected to it.

Every change is made in one step of the event loop, passed to the store, and sent to all members once it is written. Every change
cancels a running search of an agent.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
import zlib
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from play import time_control
from play.game import Game
from play.server.catalogue import LimitedAgent, limited_agent
from play.server.games.clock import Clock
from play.server.games.store import GameRow, hashed
from play.server.messages import Refused, Result, Role, SeatState, State, encode
from play.server.workers.pool import WorkerLost
from play.server.workers.worker import Answer, Job
from reversi_env import ReversiError
from reversi_env.rules import BLACK, PASS_NAME, WHITE, Colour

if TYPE_CHECKING:
    from play.server.games.hall import Hall

log = logging.getLogger("reversi.server")

#: Maximum number of attempts of a search whose worker dies.
MAX_ATTEMPTS = 3
#: Hash that no token has, for seats without a token.
NO_HASH = "0" * 64

ResultT = TypeVar("ResultT")


class Member(Protocol):
    """A connection to a room."""

    role: Role

    def send_state(self, state: bytes) -> None:
        """Queue a state, which a later one may replace."""

    def send(self, message: bytes) -> None:
        """Queue another message, which is sent before the next state."""

    def leave(self, code: int, reason: str) -> None:
        """Close the connection."""


def colour_name(colour: Colour | None) -> Any:
    """Return ``"black"``, ``"white"`` or None."""
    return None if colour is None else str(colour)


class Room:
    """A game, its seats, its clock and its members; *row* is its stored form.

    After loading, a person's clock has run since the game was stored; an agent's clock starts now.
    """

    def __init__(self, hall: Hall, row: GameRow, game: Game) -> None:
        self._hall, self._row, self.game = hall, row, game
        self.id, self.created = row.id, row.created
        self.seats = {BLACK: row.black, WHITE: row.white}
        limited = partial(limited_agent, size=row.size, options=hall.options, lenient=True)
        self.agents = {colour: limited(seat.agent) for colour, seat in self.seats.items() if seat.agent}
        self.clock: Clock | None = None
        self.members: set[Member] = set()
        self.idle_since = monotonic()
        self.closed = False
        self.rematch_id: str | None = None
        self._undo_request: Colour | None = None
        self._sent: asyncio.Future[bytes] | None = None
        self._thinking: asyncio.Task[None] | None = None
        self._flag: asyncio.TimerHandle | None = None
        if row.clock_seconds is not None:
            black, white, increment = row.black_left or 0.0, row.white_left or 0.0, row.clock_increment or 0.0
            self.clock = Clock(black, white, increment, hall.options.clock_grace)
            self._set_clock(hall.time.now() if self._is_agents_turn() else row.since)

    # --- members ----------------------------------------------------------------------------------

    def role(self, token: str, claim: str | None = None) -> Role:
        """Return the seat that *token* opens; every hash is compared, each in constant time.

        The first to enter takes the seat: with a *claim*, only that opens it from then on, and the token is a spectator's.
        """
        digest, claimed = hashed(token), hashed(claim or token)
        role: Role | None = "spectator" if hmac.compare_digest(digest, self._row.spectator) else None
        for colour, seat in self.seats.items():
            if hmac.compare_digest(digest, seat.secret or NO_HASH):
                if seat.owner is None:
                    seat.owner = claimed
                    # An error is not logged here: the next write fails, too.
                    self.save(len(self.game.moves)).add_done_callback(asyncio.Future.exception)
                role = colour_name(colour) if hmac.compare_digest(claimed, seat.owner) else "spectator"
            elif hmac.compare_digest(digest, seat.owner or NO_HASH):
                role = colour_name(colour)
        if role is None:
            raise Refused(403, "wrong_token", "the token is not valid for this game")
        return role

    def enter(self, member: Member) -> None:
        """Add *member*, and send the state to all.

        The limit holds per seat, so that spectators or the opponent cannot lock out a player who reconnects.
        """
        if sum(other.role == member.role for other in self.members) >= self._hall.options.room_connections:
            raise Refused(429, "room_full", "too many connections to this game; try again later")
        self.members.add(member)
        self.let_agent_think()
        self._broadcast()

    def exit(self, member: Member) -> None:
        """Remove *member*, whose seat stays open to its token. Without members no agent thinks."""
        self.members.discard(member)
        self.idle_since = monotonic()
        if not self.members:
            self._stop_thinking()
        if not self.closed:
            self._broadcast()

    # --- actions of players -----------------------------------------------------------------------

    def move(self, role: Role, move: str, ply: int) -> asyncio.Future[bytes]:
        """Make a move for *role*, which must be to move after *ply* moves; done when it is stored."""
        colour = self._playing(role)
        if ply != len(self.game.moves):
            raise Refused(409, "wrong_ply", f"ply {ply}: expected {len(self.game.moves)}, the number of moves made")
        if colour != self.game.turn:
            raise Refused(409, "not_your_turn", f"{colour_name(self.game.turn)} is to move")
        if move.lower() in ("pass", "pa", "ps", "--"):
            raise Refused(400, "illegal_move", "passes are made by the server: expected a square")
        return self._make(move, None, None)

    def undo(self, role: Role) -> asyncio.Future[bytes]:
        """Take back *role*'s last move: at once against an agent, otherwise if both sides request it."""
        colour = self._playing(role)
        other = self.seats[colour.other]
        if other.kind == "agent":
            return self._take_back({colour})
        if self._undo_request == colour.other:
            return self._take_back({colour.other})
        moves = list(enumerate(self.game.moves))[self._opening_plies() :]
        if not any(self.game.mover(n) == colour and m != "pass" for n, m in moves):
            raise Refused(409, "nothing_to_undo", "no move to take back: you have made none")
        self._undo_request = colour
        return self._broadcast()

    def grant(self, role: Role) -> asyncio.Future[bytes]:
        """Grant the pending take-back request of the other side; refused if a move has cancelled it."""
        return self._take_back({self._requester(role)})

    def decline(self, role: Role) -> asyncio.Future[bytes]:
        self._requester(role)
        self._undo_request = None
        return self._broadcast()

    def resign(self, role: Role) -> asyncio.Future[bytes]:
        return self._end("resigned", self._playing(role))

    def rematch(self, role: Role) -> asyncio.Future[bytes]:
        """Begin the next game of the same players with colours exchanged, unless it already exists."""
        if role == "spectator":
            raise Refused(403, "spectator", "spectators cannot begin a rematch")
        if not self.game.is_over():
            raise Refused(409, "not_over", "the game is not over: expected a rematch after its end")
        if self.rematch_id is not None:
            return self._broadcast()
        self.rematch_id, written = self._hall.rematch(self._row, self.game.moves[: self._opening_plies()])
        return self._broadcast(written)

    def state(self) -> State:
        game, position = self.game, self.game.position
        over = game.is_over()
        return State(
            game=self.id,
            revision=self._row.revision,
            size=game.rules.size,
            variant=game.rules.variant,
            start=game.rules.start,
            status="finished" if over else "running",
            board=position.to_text(),
            turn=colour_name(position.turn),
            legal=[] if over else position.legal_moves(),
            moves=list(game.moves),
            black=self._seat_state(BLACK),
            white=self._seat_state(WHITE),
            discs={"black": position.discs(BLACK), "white": position.discs(WHITE)},
            clock=self.clock.state(self._hall.time.now()) if self.clock else None,
            result=Result(colour_name(game.winner()), game.score(BLACK), game.ending or "played") if over else None,
            undo_request=colour_name(self._undo_request),
            rematch=self.rematch_id,
            thinking=not over and self._is_agents_turn(),
            spectators=sum(member.role == "spectator" for member in self.members),
        )

    async def when_stored(self, result: ResultT) -> ResultT:
        """Return *result* when all changes so far are stored; refused if that failed."""
        if self._sent is not None:
            await asyncio.shield(self._sent)
        return result

    # --- changes ----------------------------------------------------------------------------------

    def _playing(self, role: Role) -> Colour:
        if role == "spectator":
            raise Refused(403, "spectator", "spectators cannot make moves")
        if self.game.is_over():
            raise Refused(409, "game_over", "the game is over")
        return BLACK if role == "black" else WHITE

    def _requester(self, role: Role) -> Colour:
        other = self._playing(role).other
        if self._undo_request != other:
            raise Refused(409, "nothing_asked", "there is no request to take back a move")
        return other

    def _make(self, move: str, seconds: float | None, value: float | None) -> asyncio.Future[bytes]:
        game, now = self.game, self._hall.time.now()
        mover, before = game.turn, len(game.moves)
        took = seconds if seconds is not None else round(now - self._row.since, 3)
        try:
            game.play(move, seconds=took, evaluation=value)
        except ReversiError as error:
            raise Refused(400, "illegal_move", str(error)[:200]) from None
        if self.clock and self.clock.running == mover and not self.clock.press(mover, now, seconds=seconds):
            game.undo()
            return self._end("timeout", mover)
        game.play_forced_pass()
        return self._changed(before)

    def _opening_plies(self) -> int:
        """Return the number of moves that the game began with: those before the first one that took time."""
        notes = self.game.annotations
        return next((ply for ply, note in enumerate(notes) if note.seconds is not None), len(notes))

    def _take_back(self, colours: set[Colour]) -> asyncio.Future[bytes]:
        played = list(zip(self.game.positions, self.game.moves, strict=False))
        try:
            self.game.undo_to(colours, opening := self._opening_plies())
        except ReversiError as error:
            raise Refused(409, "nothing_to_undo", str(error)[:200]) from None
        if self.clock:
            self.clock.stop(self._hall.time.now())
            # the first move earned no increment
            for position, move in played[max(opening + 1, len(self.game.moves)) :]:
                if move != PASS_NAME:
                    self.clock.take_back(position.turn)
        return self._changed(len(self.game.moves))

    def _end(self, ending: Any, loser: Colour) -> asyncio.Future[bytes]:
        self.game.end(ending, loser)
        return self._changed(len(self.game.moves))

    def _changed(self, first: int) -> asyncio.Future[bytes]:
        """Set the clock, store the game's moves from *first* on, send the state, and let an agent think."""
        self._undo_request = None
        self._stop_thinking()
        row, game, now = self._row, self.game, self._hall.time.now()
        self._set_clock(now)
        row.since, row.updated, row.revision = now, time.time(), row.revision + 1
        if self.clock:
            row.black_left, row.white_left = self.clock.left(BLACK, now), self.clock.left(WHITE, now)
        if game.is_over():
            row.status, row.ending, row.score = "finished", game.ending, game.score(BLACK)
            winner = game.winner()
            row.loser = int(winner.other) if game.ending and winner is not None else None
        self._sent = sent = self._broadcast(self.save(first))
        self.let_agent_think()
        return sent

    def save(self, first: int = 0) -> asyncio.Future[None]:
        """Store the game, and its moves from *first* on."""
        return self._hall.store.save(self._row, self.game, first)

    def _broadcast(self, written: asyncio.Future[None] | None = None) -> asyncio.Future[bytes]:
        """Send the current state to all members once it is *written*; states are sent in order."""
        text = encode(self.state())
        sent: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def when_written(write: asyncio.Future[None]) -> None:
            failure = None if write.cancelled() else write.exception()
            if failure is not None:
                log.error("game %s could not be written: %s", self.id, failure)
                self._hall.drop(self, "the game could not be stored")
                if not sent.done():
                    sent.set_exception(Refused(503, "storage", "the game could not be stored; try again later"))
                    sent.exception()  # or asyncio would log that nobody retrieved it
                return
            for member in self.members:
                member.send_state(text)
            if not sent.done():
                sent.set_result(text)

        (written or self._hall.store.written()).add_done_callback(when_written)
        return sent

    # --- the clock --------------------------------------------------------------------------------

    def _set_clock(self, since: float) -> None:
        """Run the clock of the side to move from *since*; none runs before the first move and after the end."""
        if not self.clock:
            return
        self.clock.stop(since)
        if len(self.game.moves) > self._opening_plies() and not self.game.is_over():
            self.clock.run(self.game.turn, since)
        self._await_flag()

    def _until_flag(self) -> float:
        """Return the seconds until the person to move loses on time; infinite for an agent, which is charged after its search."""
        if self.closed or not self.clock or self._is_agents_turn():
            return float("inf")
        return self.clock.until_flag(self._hall.time.now())

    def _await_flag(self) -> None:
        if self._flag:
            self._flag.cancel()
        left, loop = self._until_flag(), asyncio.get_running_loop()
        self._flag = loop.call_later(max(0.0, left) + 0.01, self._flag_is_due) if left < float("inf") else None

    def _flag_is_due(self) -> None:
        if self.check_flag() is None:
            self._await_flag()

    def check_flag(self) -> asyncio.Future[bytes] | None:
        """End the game if the person to move has no time and no grace left; None if the game continues."""
        return self._end("timeout", self.game.turn) if self._until_flag() <= 0 else None

    # --- agents -----------------------------------------------------------------------------------

    def _is_agents_turn(self) -> bool:
        return self.seats[self.game.turn].kind == "agent"

    def _are_agents_alone(self) -> bool:
        return all(seat.kind == "agent" for seat in self.seats.values())

    @property
    def is_idle(self) -> bool:
        return not self.members and not self._thinking

    def let_agent_think(self) -> None:
        """Start the search and the clock of the agent to move; a game of two agents waits while nobody watches."""
        if self.closed or self._thinking or self.game.is_over() or not self._is_agents_turn():
            return
        if self.members or not self._are_agents_alone():
            if self.clock and self.clock.running is not None:
                self.clock.run(self.game.turn, self._hall.time.now())
            self._thinking = asyncio.get_running_loop().create_task(self._think(self.game.turn))

    def _stop_thinking(self) -> None:
        """Cancel the running search, unless the current task is that search."""
        task, self._thinking = self._thinking, None
        if task and task is not asyncio.current_task():
            task.cancel()

    async def _think(self, colour: Colour) -> None:
        """Make the agent's move. If that fails, notify all members; the search starts again when somebody enters."""
        try:
            began = monotonic()
            answer = await self._searched(colour)
            if self._are_agents_alone():  # slow enough to be watched
                await asyncio.sleep(max(0.0, self._hall.options.watch_pace - (monotonic() - began)))
            if answer.error:
                raise ReversiError(answer.error)
            result = answer.result
            self._make(result["move"], round(result["seconds"], 3), result["value"])
        except Exception:
            log.exception("game %s: agent %s", self.id, self.agents[colour].spec)
            self._thinking = None
            lost = encode(Refused(503, "lost", "the engine stopped unexpectedly; reconnect to try again").problem())
            for member in self.members:
                member.send(lost)

    async def _searched(self, colour: Colour) -> Answer:
        agent, (share, most) = self.agents[colour], self._time_for(colour)
        limits = self._hall.options.table, agent.seconds, self._seed(agent)
        job = Job("move", self.game.position, agent.spec.text, *limits, share=share, most=most)
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._hall.pool.search(self._row.client, job, self.id)
            except WorkerLost:
                log.warning("game %s: the worker of a search died; the search starts again", self.id)
        return Answer(error="the search stopped unexpectedly several times")

    def _time_for(self, colour: Colour) -> tuple[float | None, float | None]:
        """Return the seconds that the clock leaves for this move, usually and at most; None without a clock."""
        if not self.clock:
            return None, None
        left = max(0.0, self.clock.left(colour, self._hall.time.now()))
        control = time_control.TimeControl(left, increment=self.clock.increment)
        return control.usual_seconds(self.game.position), control.max_seconds(self.game.position)

    def _seed(self, agent: LimitedAgent) -> int:
        """Return a seed for the choice among equal moves, from the agent's seed or the game's id, different at every ply."""
        own = agent.spec.options.get("seed", zlib.crc32(self.id.encode()))
        return zlib.crc32(f"{own} {len(self.game.moves)}".encode())

    def _seat_state(self, colour: Colour) -> SeatState:
        seat = self.seats[colour]
        connected = seat.kind == "agent" or any(member.role == colour_name(colour) for member in self.members)
        return SeatState(seat.kind, seat.name, connected, seat.agent)  # type: ignore[arg-type]

    def close(self, reason: str) -> None:
        """Stop the searches and the clock, and disconnect all members; they may reconnect."""
        self.closed = True
        self._stop_thinking()
        if self._flag:
            self._flag.cancel()
        for member in list(self.members):
            member.leave(1012, reason)

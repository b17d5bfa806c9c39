"""`Hall`: all games of a server; those in use are in memory, the others in the store."""

import asyncio
import logging
import os
import random
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import msgspec

from play.game import Game
from play.server import catalogue, messages
from play.server.games.clock import RateLimiter, ServerTime
from play.server.games.room import Room, colour_name
from play.server.games.store import GameRow, Seat, Store, StoreError, hashed, new_token
from play.server.messages import Refused, encode
from play.server.options import ServerOptions
from play.server.workers.pool import Pool, WorkerLost
from play.server.workers.precompiling import RULES, compiling, is_cached
from play.server.workers.worker import Job, load_rules
from reversi_env import Position, ReversiError, Rules
from reversi_env.notation.openings import opening_name
from reversi_env.rules import BLACK, WHITE, Colour
from search.agents.book import packaged_book
from train.book.recorded import GameTree
from train.evaluation.puzzles import packaged_puzzles

log = logging.getLogger("reversi.server")

#: Maximum time for reading a file, in seconds.
READ_SECONDS = 3.0
#: Number of moves of recorded games that are counted.
RECORDED_PLIES = 24
#: Number of attempts to load a game for a request, if other games displace it again.
ROOM_ATTEMPTS = 3
#: Maximum depth of variations within variations, far below the limit of recursion.
MAX_REVIEW_DEPTH = 64
#: Maximum size of a player's name in UTF-8; its characters are limited, too.
MAX_NAME_BYTES = 120
#: Number of puzzles per answer.
MAX_PUZZLES = 20


class Hall:
    """The games of one server. Call all methods within one event loop: `open` first, `close` last."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.store = Store(options.file())
        self.pool = Pool(os.cpu_count() or 1 if options.workers is None else options.workers)
        self.recorded = None if options.wthor is None else GameTree(options.wthor, RECORDED_PLIES)
        self.time = ServerTime()
        self.rooms: dict[str, Room] = {}
        self.running: Counter[str] = Counter()
        self.connections: Counter[str] = Counter()
        # set when the rules are compiled and the workers run
        self.started = asyncio.Event()
        self.missing: frozenset[str] = frozenset()  # kernels that are not compiled yet, as `compile_all` names them
        self.compiled = 1.0
        self.analyses: Counter[str] = Counter()
        self.lookups: Counter[str] = Counter()
        self.uploads: Counter[str] = Counter()
        self.requests = RateLimiter(options.request_burst, options.requests_per_second)
        self.messages = RateLimiter(options.client_message_burst, options.client_messages_per_second)
        # One thread at a time: more would only delay the event loop.
        self._lookup = asyncio.Semaphore(1)
        self._loading: dict[str, asyncio.Task[Room]] = {}
        self._game_limiter = RateLimiter(options.game_burst, options.games_per_second)
        self._review_limiter = RateLimiter(options.review_burst, options.reviews_per_second)
        self._puzzle_limiter = RateLimiter(options.puzzle_burst, options.puzzles_per_second)

    async def open(self) -> None:
        """Open the store, and start the workers and the background tasks."""
        self.store.open()
        self.time.resume(await self.store.uptime())
        await self.tidy()
        tasks = [self._sweep(), self._count()]
        if self.options.precompiles:
            tasks.append(self._compile())
            self.compiled = 0.0
        if not self.options.precompiles or await asyncio.to_thread(is_cached, load_rules):
            await self._start()
        self._tasks = [asyncio.create_task(task) for task in tasks]
        for task in self._tasks:
            task.add_done_callback(_log_failure)

    async def _start(self) -> None:
        if not self.started.is_set():
            await asyncio.to_thread(load_rules)
            self.pool.start()
            self.started.set()

    async def _compile(self) -> None:
        """Start the process that compiles missing kernels, and follow its reports."""
        with compiling() as reports:
            while report := await asyncio.to_thread(reports.readline):
                share, *missing = report.decode().split()
                self.compiled, self.missing = float(share), frozenset(missing)
                if RULES not in missing:
                    await self._start()
        await self._start()  # the process may have failed
        self.compiled, self.missing = 1.0, frozenset()

    async def close(self) -> None:
        """Disconnect all members, stop the searches, and close the store after its last write."""
        for task in self._tasks:
            task.cancel()
        for room in list(self.rooms.values()):
            self.drop(room, "the server is shutting down")
        if self.started.is_set():
            self.pool.close()
        await self.tidy()
        self.store.close()
        await asyncio.sleep(0)

    # --- games ------------------------------------------------------------------------------------

    async def create(self, request: messages.CreateGame, client: str) -> messages.Created:
        self._admit_game(client)
        tokens = {"spectator": new_token()}
        black = self._seat(request.black, "black", request.size)
        white = self._seat(request.white, "white", request.size)
        for colour, seat in (("black", black), ("white", white)):
            if seat.kind == "human":
                tokens[colour] = new_token()
                seat.secret = hashed(tokens[colour])
        rules, seats = (request.size, request.variant, request.start), (black, white, hashed(tokens["spectator"]))
        clock = (request.clock.seconds, request.clock.increment) if request.clock else (None, None)
        room = self._new_room(secrets.token_urlsafe(9), client, request.moves, *rules, *seats, *clock)
        with _storage_errors_refused():
            await room.save()
        self.running[client] += 1
        self._open_room(room)
        return messages.Created(room.id, tokens)

    def rematch(self, row: GameRow, opening: Sequence[str]) -> tuple[str, asyncio.Future[None]]:
        """Open the next game after a finished one, with colours exchanged and the same tokens; return its name and its write."""
        self._admit_game(row.client)
        rules, seats = (row.size, row.variant, row.start), (_moved(row.white, "Black"), _moved(row.black, "White"))
        clock = row.clock_seconds, row.clock_increment
        room = self._new_room(_rematch_name(row.id), row.client, opening, *rules, *seats, row.spectator, *clock)
        written = room.save()  # before the agent's first move
        self.running[row.client] += 1
        self._open_room(room)
        return room.id, written

    def _new_room(self, name: str, client: str, opening: Sequence[str], *columns: Any) -> Room:
        """Return the room of a new game; *columns* are those of `GameRow` from the size to the clock's increment."""
        now = time.time()
        row = GameRow(name, now, now, 0, "running", *columns)
        row.since, row.client = self.time.now(), client
        row.black_left = row.white_left = row.clock_seconds
        return Room(self, row, _game_after(opening, Game(row.rules(), row.black.name, row.white.name)))

    def _admit_game(self, client: str) -> None:
        """Refuse a new game of *client* beyond the limits; otherwise make space for it."""
        if not self._game_limiter.try_acquire(client):
            raise Refused(429, "too_many_games", "too many new games from this address; try again later")
        if self.running[client] >= self.options.client_games:
            raise Refused(429, "too_many_games", "too many games from this address are running; finish some first")
        if self.running.total() >= self.options.max_running:
            raise Refused(503, "full", "too many games are running; try again later")
        self._make_space()

    async def room(self, game_id: str) -> Room:
        """Return the room of a game, loaded from the store if necessary; a fallen flag ends the game first."""
        for _ in range(ROOM_ATTEMPTS):
            room = self.rooms.get(game_id)
            if room is None:
                if game_id not in self._loading:
                    self._loading[game_id] = asyncio.create_task(self._load(game_id))
                    self._loading[game_id].add_done_callback(lambda _: self._loading.pop(game_id, None))
                room = await asyncio.shield(self._loading[game_id])
            if (ended := room.check_flag()) is not None:
                await ended
            if not room.closed:  # other games may have displaced it in the meantime
                room.let_agent_think()  # it stops when all members leave
                return room
        raise Refused(503, "full", "too many games are open; try again later")

    def drop(self, room: Room, reason: str) -> None:
        """Remove a room from memory; its game stays in the store."""
        self.rooms.pop(room.id, None)
        room.close(reason)

    def _open_room(self, room: Room) -> Room:
        self.rooms[room.id] = room
        room.let_agent_think()
        return room

    def _seat(self, request: messages.SeatRequest, colour: str, size: int) -> Seat:
        name = "".join(filter(str.isprintable, request.name or "")).strip()
        if len(name.encode()) > MAX_NAME_BYTES:
            raise Refused(400, "bad_seat", f"{colour}: expected a name of at most {MAX_NAME_BYTES} bytes")
        if request.kind == "human":
            if request.agent is not None:
                raise Refused(400, "bad_seat", f"{colour}: expected no agent for a human")
            return Seat("human", name or colour.title())
        if request.agent is None:
            raise Refused(400, "bad_seat", f"{colour}: expected an agent, such as six-factor:depth=4")
        catalogue.limited_agent(request.agent, size, self.options)  # raises Refused if it is not on offer
        return Seat("agent", name or request.agent, request.agent)

    async def _load(self, game_id: str) -> Room:
        self._make_space()
        with _storage_errors_refused():
            stored = await self.store.load(game_id)
            if stored is None:
                raise Refused(404, "no_game", "there is no such game")
            room, next_name = Room(self, *stored), _rematch_name(game_id)
            if room.game.is_over() and await self.store.load(next_name) is not None:
                room.rematch_id = next_name
        return self._open_room(room)

    def _make_space(self) -> None:
        if len(self.rooms) < self.options.max_rooms:
            return
        idle = min((r for r in self.rooms.values() if not r.members), key=lambda r: r.idle_since, default=None)
        if idle is None:
            raise Refused(503, "full", "too many games are open; try again later")
        self.drop(idle, "")

    # --- idle and old games -----------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Remove idle games from memory, and tidy the store, at intervals."""
        while True:
            await asyncio.sleep(self.options.sweep_every)
            now = monotonic()
            for room in list(self.rooms.values()):
                if room.is_idle and now - room.idle_since > self.options.room_idle:
                    self.drop(room, "")
            await self.tidy()

    async def tidy(self) -> None:
        """Store the server's time, delete old games and reviews, and count each client's running games."""
        now, options = time.time(), self.options
        unplayed, running = now - options.unplayed_kept, now - options.running_idle
        old = unplayed, running, now - options.finished_kept, now - options.review_kept
        limits = options.client_finished, options.max_finished
        try:
            self.running = await self.store.tidy(self.time.now(), *old, *limits, kept=self.rooms)
        except StoreError as error:
            log.error("the store could not be tidied: %s", error)

    # --- reviews ----------------------------------------------------------------------------------

    async def share(self, review: messages.Review, client: str) -> messages.Shared:
        """Store a review, which never changes; everybody who has its name can open it."""
        _position(review)
        _check_depth(review)
        if not self._review_limiter.try_acquire(client):
            raise Refused(429, "too_many_reviews", "too many reviews from this address; try again later")
        name, limits = secrets.token_urlsafe(16), (self.options.client_reviews, self.options.max_reviews)
        with _storage_errors_refused():
            await self.store.keep_review(name, time.time(), client, encode(review), *limits)
        return messages.Shared(name)

    async def review(self, name: str) -> bytes:
        with _storage_errors_refused():
            content = await self.store.review(name)
        if content is None:
            raise Refused(404, "no_review", "this review does not exist or has expired")
        return content

    # --- analysis ---------------------------------------------------------------------------------

    async def opening(self, request: messages.OpeningRequest, client: str) -> messages.Opening:
        """Return the opening's name and the next moves in the book and in recorded games; a thread reads the files."""
        with self._queued(self.lookups, client):
            async with self._lookup:
                return await asyncio.to_thread(_opening, request, self.recorded)

    async def _count(self) -> None:
        """Count the moves of the recorded games ply by ply, so that a request waits for one ply at most."""
        if self.recorded is not None:
            for ply in range(RECORDED_PLIES):
                async with self._lookup:
                    await asyncio.to_thread(self.recorded.count, ply)

    async def puzzles(self, request: messages.PuzzleRequest, client: str) -> messages.Puzzles:
        """Return some of the package's puzzles nearest to a rating, at random; a thread reads their file."""
        if not self._puzzle_limiter.try_acquire(client):
            raise Refused(429, "too_many_puzzles", "too many puzzle requests from this address; try again later")
        with self._queued(self.lookups, client):
            async with self._lookup:
                return await asyncio.to_thread(_puzzles, request)

    async def analyse(self, request: messages.AnalyseRequest, client: str) -> messages.Analysis:
        position = _position(request)
        agent = catalogue.evaluator(request.agent, position.rules.size)
        seconds = min(request.seconds, self.options.max_analysis_time)
        job = Job("analyse", position, agent, self.options.analysis_table, seconds)
        return messages.Analysis(**await self._run_visitor_job(client, job, "bad_position"), agent=agent)

    async def read(self, request: messages.TranscriptRequest, client: str) -> messages.Transcript:
        """Read the games and positions of a text or a file, in a worker."""
        start = Position.initial(Rules(request.size, request.variant, request.start))
        seconds = READ_SECONDS if request.file else None
        job = Job("read", start, "", 0, seconds, text=request.text, file=request.file, first=request.first)
        return msgspec.convert(await self._run_visitor_job(client, job, "bad_transcript"), messages.Transcript)

    async def _run_visitor_job(self, client: str, job: Job, code: str) -> dict[str, Any]:
        """Return the result of a visitor's job; refused with *code* if its input is wrong, or if too many wait."""
        try:
            with self._queued(self.analyses, client):
                answer = await self.pool.search(client, job)
        except WorkerLost as error:
            raise Refused(503, "lost", str(error)) from None
        if answer.error:
            raise Refused(503, "lost", answer.error) if answer.is_internal_error else Refused(400, code, answer.error)
        return answer.result

    def uploading(self, client: str, size: int) -> AbstractContextManager[None]:
        """Count the bytes of a request before they are read, and until it is answered."""
        if self.uploads[client] + size > self.options.client_uploads:
            raise Refused(429, "too_many_uploads", "too many large requests at once; wait for the others to finish")
        if self.uploads.total() + size > self.options.max_uploads:
            raise Refused(429, "busy", "the server is busy with large requests; try again later")
        return counted_while_open(self.uploads, client, size)

    @contextmanager
    def _queued(self, waiting: Counter[str], client: str) -> Iterator[None]:
        if waiting[client] >= self.options.client_analyses:
            raise Refused(429, "too_many_analyses", "too many analyses at once; wait for the others to finish")
        if waiting.total() >= self.options.max_analyses:
            raise Refused(429, "busy", "the server is busy with analyses; try again later")
        with counted_while_open(waiting, client):
            yield


def _game_after(moves: Iterable[str], game: Game) -> Game:
    """Return *game* after *moves*; refused if the game is over then."""
    try:
        for move in moves:
            game.play(move)
        game.play_forced_pass()
    except ReversiError as error:
        raise Refused(400, "bad_moves", str(error)[:200]) from None
    if game.is_over():
        raise Refused(400, "bad_moves", "the moves end the game: expected an opening")
    return game


@contextmanager
def counted_while_open(counter: Counter[str], name: str, amount: int = 1) -> Iterator[None]:
    """Count one, or *amount*, more of *name* while this context is open."""
    counter[name] += amount
    try:
        yield
    finally:
        counter[name] -= amount
        if not counter[name]:
            del counter[name]


def _rematch_name(game_id: str) -> str:
    """Return the id of a game's rematch, a function of the game's id, so that it is found after a restart."""
    return hashed(f"rematch {game_id}")[:16]


def _moved(seat: Seat, colour: str) -> Seat:
    """Return a player's seat in the next game, with the same tokens; a default name becomes that of the new *colour*."""
    name = colour if seat.kind == "human" and seat.name in ("Black", "White") else seat.name
    return replace(seat, name=name)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a background task has failed", exc_info=error)


@contextmanager
def _storage_errors_refused() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        log.error("the database failed: %s", error)
        raise Refused(503, "storage", "the database is not available; try again later") from None


def _opening(request: messages.OpeningRequest, recorded: GameTree | None) -> messages.Opening:
    positions = [_position(request)]
    try:
        for move in request.moves:
            positions.append(positions[-1].play(move))
        book = packaged_book(positions[0].rules)
    except ReversiError as error:
        raise Refused(400, "bad_moves", str(error)[:200]) from None
    book_moves = [] if book is None else book.moves(positions[-1])
    moves = [messages.BookMove(move.move, move.value, move.lines, move.plays) for move in book_moves]
    played = recorded.moves(positions[-1]) if recorded is not None and positions[-1].rules == Rules() else {}
    games = [messages.PlayedMove(move, *counts) for move, counts in played.items()]
    plies = next((ply for ply in reversed(range(len(positions))) if opening_name(positions[ply])), 0)
    return messages.Opening(opening_name(positions[plies]), moves, games, plies)


def _puzzles(request: messages.PuzzleRequest) -> messages.Puzzles:
    puzzles = list(enumerate(packaged_puzzles(Rules(request.size, request.variant))))
    nearest = min((abs(puzzle.rating - request.rating) for _, puzzle in puzzles), default=0)
    fitting = [(number, puzzle) for number, puzzle in puzzles if abs(puzzle.rating - request.rating) <= nearest]
    entries = []
    for number, puzzle in random.sample(fitting, min(MAX_PUZZLES, len(fitting))):
        board, turn = puzzle.position.to_text(), colour_name(puzzle.position.turn)
        result = puzzle.move, puzzle.value, puzzle.margin, puzzle.rating
        entries.append(messages.PuzzleEntry(number, board, turn, *result))
    return messages.Puzzles(entries)


def _check_depth(review: messages.Review) -> None:
    lines = [review.moves]
    for _ in range(MAX_REVIEW_DEPTH + 1):
        lines = [variation for line in lines for step in line for variation in step.variations]
    if lines:
        raise Refused(400, "too_deep", f"expected variations within variations to at most {MAX_REVIEW_DEPTH} levels")


def _position(request: messages.AnalyseRequest | messages.OpeningRequest | messages.Review) -> Position:
    turn: Colour = BLACK if request.turn == "black" else WHITE
    try:
        plain = Position.from_text(request.board, turn)
        return Position(Rules(plain.rules.size, request.variant), plain.own, plain.opp, turn)
    except ReversiError as error:
        raise Refused(400, "bad_position", str(error)[:200]) from None

"""Games from the first message to the last: seats, turns, take-backs, clocks, records; analysis, openings, puzzles."""

import json
from base64 import b64encode

import pytest

from models.human import RATINGS
from play.game import Game
from play.server.games.hall import MAX_PUZZLES, RECORDED_PLIES
from play.server.http.app import PAGE
from play.server.workers import reading
from play.server.workers.pool import WorkerLost
from reversi_env import BLACK, WHITE, Position, Rules
from reversi_env.notation import read_ggf_game
from search.agents.book import packaged_book
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.solver import solve_all_moves
from tests.oracles.strategies import random_moves, wthor_file, wthor_record
from train.book.recorded import GameTree
from train.evaluation.puzzles import packaged_puzzles

from .conftest import eventually, refusal, stop

GREEDY = {"kind": "agent", "agent": "greedy"}


def play_out(socket, colour, moves=64):
    """Play the first legal move at most *moves* times; return the last state."""
    sent = -1
    while True:
        # A state is sent again when somebody enters or leaves.
        state = socket.until(
            lambda s, n=sent: s["status"] == "finished" or (s["turn"] == colour and len(s["moves"]) > n)
        )
        if state["status"] == "finished" or not moves:
            return state
        sent, moves = len(state["moves"]), moves - 1
        socket.send(type="move", move=state["legal"][0], ply=sent)


@pytest.mark.parametrize(
    ("size", "variant", "colour", "agent"),
    [
        *((4, "reversed", "white", "greedy"), (6, "normal", "black", "six-factor:depth=2")),
        *((8, "reversed", "black", "random"), (4, "normal", "black", "six-factor:time=0.3,depth=3")),
        (6, "normal", "white", "zero:simulations=4"),
    ],
)
def test_a_game_against_an_agent_survives_a_lost_connection(new_server, size, variant, colour, agent):
    api, other = new_server(), "white" if colour == "black" else "black"
    created = api.create(size=size, variant=variant, **{other: {"kind": "agent", "agent": agent}})
    assert created["tokens"].keys() == {"spectator", colour}
    with api.socket(created["game"], created["tokens"][colour]) as socket:
        assert socket.role == colour
        answered = play_out(socket, colour, moves=1)
        socket.raw.socket.close()  # closes without a close frame
    with api.socket(created["game"], created["tokens"][colour]) as socket:
        state = play_out(socket, colour)
    assert state["moves"][: len(answered["moves"])] == answered["moves"]
    replayed = Position.initial(Rules(size, variant)).play_all(state["moves"])
    assert replayed.is_over()
    assert replayed.to_text() == state["board"]
    score = replayed.score(-1)
    winner = {1: "black", -1: "white", 0: None}[(score > 0) - (score < 0)]
    assert state["result"] == {"winner": winner, "score": score, "ending": "played"}
    record = api.call("GET", f"/api/games/{created['game']}/record", created["tokens"]["spectator"]).text
    assert list(read_ggf_game(record).moves) == state["moves"]
    assert read_ggf_game(record).result == score


def test_two_agents_play_only_while_somebody_watches(api):
    hurried = {"kind": "agent", "agent": "six-factor:time=2"}
    created = api.create(size=4, black=GREEDY, white=hurried, clock={"seconds": 2, "increment": 0})
    assert api.state(created)["moves"] == []
    with api.socket(created["game"], created["tokens"]["spectator"]) as socket:
        state = socket.until(lambda s: s["status"] == "finished")
        assert state["spectators"] == 1
        assert state["result"]["ending"] == "played"
        socket.send(type="move", move="a1", ply=0)
        assert socket.expect("error")["code"] == "spectator"


def test_players_see_moves_and_connections_of_each_other(api):
    created = api.create(size=4)
    with api.socket(created["game"], created["tokens"]["black"]) as black:
        assert black.expect("state")["white"]["connected"] is False
        with api.socket(created["game"], created["tokens"]["white"]) as white:
            assert black.until(lambda s: s["white"]["connected"])["black"]["connected"]
            state = white.expect("state")
            black.send(type="move", move=state["legal"][0], ply=0)
            assert white.until(lambda s: s["moves"])["turn"] == "white"
            assert black.until(lambda s: s["moves"])["moves"] == [state["legal"][0]]
        assert black.until(lambda s: not s["white"]["connected"])["moves"]


def test_refused_moves_change_nothing(api):
    created = api.create(size=8, white=GREEDY)
    other = api.create(size=8)
    start = api.state(created)
    crossed = {"game": created["game"], "tokens": other["tokens"]}
    for game, role, move, ply, expected in (
        (created, "black", "a1", 0, (400, "illegal_move")),
        (created, "black", "pass", 0, (400, "illegal_move")),
        (created, "black", "zz9", 0, (400, "illegal_move")),
        (created, "black", 7, 0, (400, "bad_message")),
        (created, "black", "d3", 1, (409, "wrong_ply")),
        (created, "spectator", "d3", 0, (403, "spectator")),
        (other, "white", "d3", 0, (409, "not_your_turn")),
        (crossed, "black", "d3", 0, (403, "wrong_token")),
        ({"game": "nothere", "tokens": other["tokens"]}, "black", "d3", 0, (404, "no_game")),
        ({"game": created["game"], "tokens": {"black": None}}, "black", "d3", 0, (401, "no_token")),
    ):
        assert refusal(api.move(game, role, move, ply)) == expected
    for action in ("undo", "resign"):
        assert refusal(api.act(created, "spectator", action)) == (403, "spectator")
    assert api.state(created) | {"spectators": 0} == start | {"spectators": 0}
    assert api.move(other, "black", "d3", 0).status_code == 200
    assert refusal(api.move(other, "black", "d3", 0)) == (409, "wrong_ply")  # the same message again
    assert api.state(other)["moves"] == ["d3"]


def test_undo_against_an_agent_goes_to_the_last_choice(api):
    created, answers = api.create(size=6, white={"kind": "agent", "agent": "random:seed=1"}), []
    assert refusal(api.act(created, "black", "undo")) == (409, "nothing_to_undo")
    for _ in range(2):
        api.move(created, "black", "b3", 0)
        eventually(lambda: (state := api.state(created))["turn"] == "black" and state["moves"])
        answers.append(api.state(created)["moves"])
        assert api.act(created, "black", "undo").json()["moves"] == []
    assert len(answers[0]) >= 2
    assert answers[0] == answers[1]  # a seeded agent answers as before


def test_undo_between_people_needs_both(api):
    created = api.create(size=4)
    tokens = created["tokens"]
    api.move(created, "black", "b1", 0)
    assert api.act(created, "black", "undo").json()["undo_request"] == "black"
    with api.socket(created["game"], tokens["white"]) as white:
        assert white.expect("state")["undo_request"] == "black"
        white.send(type="decline")
        assert white.until(lambda s: s["undo_request"] is None)["moves"] == ["b1"]
        white.send(type="decline")
        assert white.expect("error")["code"] == "nothing_asked"
        api.act(created, "black", "undo")
        white.until(lambda s: s["undo_request"] == "black")
        white.send(type="grant")
        assert white.until(lambda s: not s["moves"])["turn"] == "black"
        white.send(type="grant")  # too late; it must not become a new request
        assert white.expect("error")["code"] == "nothing_asked"
        api.move(created, "black", "b1", 0)
        api.act(created, "black", "undo")
        white.until(lambda s: s["undo_request"] == "black")
        white.send(type="undo")  # both sides ask
        assert white.until(lambda s: not s["moves"])["turn"] == "black"


def test_resigning_ends_the_game(api):
    created = api.create(size=8, variant="reversed", black={"name": "Ann\u0007 ]"}, white=GREEDY)
    ended = api.act(created, "black", "resign").json()
    assert ended["result"] == {"winner": "white", "score": -64, "ending": "resigned"}
    again = api.act(created, "black", "resign"), api.act(created, "black", "undo"), api.move(created, "black", "d3", 0)
    assert [refusal(response) for response in again] == [(409, "game_over")] * 3
    record = api.call("GET", f"/api/games/{created['game']}/record", created["tokens"]["black"]).text
    assert read_ggf_game(record).black == ended["black"]["name"] == "Ann ]"  # names are made printable


def test_an_invitation_seats_one_person_and_others_watch(api):
    created = api.create(size=4)
    ours, others = ({"token": created["tokens"]["white"], "claim": letter * 32} for letter in "cd")
    for join, role in ((ours, "white"), (others, "spectator"), (ours, "white"), ({"token": "c" * 32}, "white")):
        with api.socket(created["game"]) as socket:
            socket.send(type="join", **join)
            assert socket.expect("joined")["role"] == role
    assert refusal(api.act(created, "white", "resign")) == (403, "spectator")  # the invitation's token was exchanged
    assert api.act(created, "black", "resign").status_code == 200  # a token that was used without a claim stays valid
    with api.socket(created["game"]) as socket:
        socket.send(type="join", token=created["tokens"]["black"], claim="e" * 32)
        assert socket.expect("joined")["role"] == "spectator"


def test_a_rematch_swaps_colours_and_survives_a_restart(new_server, tmp_path):
    database = tmp_path / "games.sqlite3"
    first = new_server(database=database)
    created = first.create(size=4, black={"name": "Ann"}, clock={"seconds": 60, "increment": 2})
    assert refusal(first.act(created, "black", "rematch")) == (409, "not_over")
    with first.socket(created["game"], created["tokens"]["white"]) as white:
        first.act(created, "black", "resign")
        names = [first.act(created, role, "rematch").json()["rematch"] for role in ("black", "white")]
        assert white.until(lambda s: s["rematch"])["rematch"] == names[0] == names[1]
    assert refusal(first.act(created, "spectator", "rematch")) == (403, "spectator")
    following = {"game": names[0], "tokens": created["tokens"]}
    stop(first, database)
    second = new_server(database=database)
    assert second.state(created)["rematch"] == names[0]
    state = second.state(following)
    assert [state[colour]["name"] for colour in ("black", "white")] == ["Black", "Ann"]
    assert (state["clock"]["black"], state["clock"]["increment"], state["rematch"]) == (60, 2, None)
    assert refusal(second.move(following, "black", "b1", 0)) == (409, "not_your_turn")
    assert second.move(following, "white", "b1", 0).status_code == 200  # the player of that token is black now


def test_analysis_is_exact_in_endgames_and_symmetric(api):
    def analysis(position, seconds):
        body = {"board": position.to_text(), "turn": str(position.turn), "agent": "six-factor", "seconds": seconds}
        return api.call("POST", "/api/analyse", json=body).json()

    position = Position.initial(Rules(4)).play_all(["b1", "a1", "c4"])
    result, exact = analysis(position, 0.3), solve_all_moves(position)
    assert result["exact"]
    assert {entry["move"]: entry["value"] for entry in result["moves"]} == exact
    assert result["value"] == max(exact.values())
    assert result["pv"][0] == result["move"] == result["moves"][0]["move"]
    start = Position.initial(Rules(6))
    analysis(start.play("b3"), 0.05)
    values = [entry["value"] for entry in analysis(start, 0.05)["moves"]]
    assert len(values) == 4  # the four first moves are symmetric, whatever was analysed before
    assert max(values) - min(values) < 0.01
    answer = analysis(start.play("c2"), 0.05)  # from the solved book
    assert (answer["exact"], answer["value"], answer["confidence"]) == (True, 4, 100)
    verdicts = [(entry["value"], entry["verdict"]) for entry in answer["moves"]]
    assert verdicts == [(4, "best"), (2, "inaccuracy"), (-20, "blunder")]


def test_openings_have_names_book_moves_and_recorded_games(new_server, tmp_path):
    line = random_moves(Position.initial(), 1)
    games = [(["f5", "d6", "c3"], 40), (["c4", "e3", "f6"], 32), (["f5", "d6", "c4"], 20), (line, 10)]
    (tmp_path / "a.wtb").write_bytes(wthor_file(*(wthor_record(*game) for game in games)))
    api = new_server(wthor=str(tmp_path))

    def ask(moves, **more):
        request = {"board": Position.initial().to_text(), "turn": "black", "moves": moves} | more
        return api.call("POST", "/api/openings", json=request)

    def recorded(moves, **more):
        return [tuple(move.values()) for move in ask(moves, **more).json()["games"]]

    moves, book = ["f5", "d6", "c3", "d3", "c4"], packaged_book(Rules())
    for played, name in ((moves[:2], "Perpendicular Opening"), (moves, "Tiger")):
        opening = ask(played).json()
        assert (opening["name"], opening["plies"]) == (name, len(played))
        expected = [(m.move, m.value, m.lines, m.plays) for m in book.moves(Position.initial().play_all(played))]
        assert [tuple(move.values()) for move in opening["moves"]] == expected
    assert recorded(["f5", "d6"]) == [("c3", 2, 0.75, 8.0), ("c4", 1, 0.0, -24.0)]
    assert recorded(["d3", "c5"]) == [("f6", 2, 0.75, 8.0), ("e6", 1, 0.0, -24.0)]
    assert [len(recorded(line[:plies])) for plies in (RECORDED_PLIES - 1, RECORDED_PLIES)] == [1, 0]
    assert recorded(moves[:2], variant="reversed") == []
    assert ask(moves, variant="reversed").json()["name"] is None
    assert refusal(ask(["a1"])) == (400, "bad_moves")


def test_unreadable_recorded_games_are_logged(new_server, tmp_path, monkeypatch, caplog):
    def fail(tree, ply):
        raise MemoryError("no room for the games")

    monkeypatch.setattr(GameTree, "count", fail)
    (tmp_path / "a.wtb").write_bytes(wthor_file(wthor_record(["f5"], 40)))
    new_server(wthor=str(tmp_path))
    eventually(lambda: "no room for the games" in caplog.text, "the log")


@pytest.mark.parametrize("error", [WorkerLost, ZeroDivisionError])
def test_a_lost_search_is_reported_and_repeated_on_return(new_server, monkeypatch, error):
    api = new_server()

    async def lose(client, job, game):
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(api.hall.pool, "search", lose)
        created = api.create(size=4, white={"kind": "agent", "agent": "greedy"})
        with api.socket(created["game"], created["tokens"]["black"]) as black:
            black.expect("state")
            api.move(created, "black", "b1", 0)
            assert black.expect("error")["code"] == "lost"
    with api.socket(created["game"], created["tokens"]["black"]) as black:
        while len(black.expect("state")["moves"]) < 2:
            pass


BOARD = "-XOX" + "-" * 12
GGF = "(;GM[Othello]PB[Ann]TY[6a]RE[?]C[so]BO[6 ------ ------ --O*-- --*O-- ------ ------ *]B[b3];)"
WTHOR = wthor_file(*[wthor_record(["f5", "d6"], 40, black=12, white=13)] * 2)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"text": "f5 d6 c3"}, [("normal", "black", ["f5", "d6", "c3"], None, "")]),
        ({"text": GGF + "\n" + GGF}, [("reversed", "black", ["b3"], "Ann", "so")] * 2),
        ({"text": GGF + "\n" + GGF, "first": 1}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"text": BOARD, "variant": "reversed"}, [("reversed", "black", [], None, "")]),
        ({"text": "-XOX\n----\n----\n---- O"}, [("normal", "white", [], None, "")]),
        (
            {"text": f"{BOARD} X; % one\n\n% none\n{BOARD} O; A1:+3"},
            [("normal", "black", [], None, "one"), ("normal", "white", [], None, "a1:+3")],
        ),
        ({"text": f"\ufeff% c\r% d\r{BOARD} X; % see ( ; x\r\n"}, [("normal", "black", [], None, "see ( ; x")]),
        ({"text": GGF.replace("(;", "( ;")}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"text": ""}, []),
        ({"file": b64encode(b" \n").decode()}, []),
        ({"file": b64encode(GGF.encode("latin-1")).decode()}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"file": b64encode(GGF.encode("utf-16")).decode()}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"file": b64encode(WTHOR).decode()}, [("normal", "black", ["f5", "d6"], "#12", "1999")] * 2),
    ],
)
def test_transcripts_of_games_and_positions_are_read(api, request_, expected):
    read = api.call("POST", "/api/transcripts", json=request_).json()
    games = [tuple(game[name] for name in ("variant", "turn", "moves", "black", "comment")) for game in read["games"]]
    assert games == expected
    assert not read["more"]
    for game in read["games"]:
        assert Position.from_text(game["board"]).rules.size == game["size"]


def test_many_games_are_returned_in_pages(api, monkeypatch):
    monkeypatch.setattr(reading, "MAX_GAMES", 1)
    for file in (GGF.encode() * 2, WTHOR):
        request = {"file": b64encode(file).decode()}
        pages = [api.call("POST", "/api/transcripts", json=request | {"first": first}).json() for first in range(3)]
        shown = [(len(page["games"]), page["first"], page["more"]) for page in pages]
        assert shown == [(1, 0, True), (1, 1, False), (0, 2, False)]


def test_puzzles_match_the_rating_and_are_limited(new_server):
    api = new_server(puzzle_burst=4, puzzles_per_second=0.0)
    puzzles = {}
    for rating in (0, 1800):
        puzzles[rating] = api.call("POST", "/api/puzzles", json={"rating": rating}).json()["puzzles"]
        assert len({one["number"] for one in puzzles[rating]}) == MAX_PUZZLES
        for one in puzzles[rating]:
            puzzle = packaged_puzzles(Rules())[one["number"]]
            turn = BLACK if one["turn"] == "black" else WHITE
            assert puzzle.position == Position.from_text(one["board"], turn)
            assert (one["move"], one["value"], one["margin"]) == (puzzle.move, puzzle.value, puzzle.margin)
            assert one["rating"] == puzzle.rating
    assert {one["rating"] for one in puzzles[0]} == {round(sum(RATINGS[:2]) / 2)}  # one level misses these
    assert {one["rating"] for one in puzzles[1800]} == {round(sum(RATINGS[5:7]) / 2)}  # six levels miss these (nearest)
    assert api.call("POST", "/api/puzzles", json={"size": 4}).json() == {"puzzles": []}
    assert [api.call("POST", "/api/puzzles", json={}).status_code for _ in range(2)] == [200, 429]


def test_opening_moves_of_a_game_cannot_be_taken_back(api):
    opening = list(random_moves(Position.initial(), seed=3, plies=8))
    created = api.create(moves=opening, clock={"seconds": 60, "increment": 5})
    state = api.state(created)
    assert (state["moves"], state["clock"]["running"]) == (opening, None)
    assert refusal(api.act(created, state["turn"], "undo")) == (409, "nothing_to_undo")
    first, second = state["turn"], "white" if state["turn"] == "black" else "black"
    api.move(created, first, state["legal"][0], 8)
    assert api.state(created)["clock"][first] <= 60  # the first move earns no increment
    api.act(created, first, "undo")
    api.act(created, second, "undo")
    state = api.state(created)
    assert (state["moves"], state["clock"]["running"]) == (opening, None)
    assert refusal(api.act(created, first, "undo")) == (409, "nothing_to_undo")
    over = list(random_moves(Position.initial(Rules(4)), seed=1))
    for moves, size in ((["a1"], 8), (over, 4)):
        response = api.call("POST", "/api/games", json={"moves": moves, "size": size})
        assert refusal(response) == (400, "bad_moves")


@pytest.mark.parametrize(("size", "variant"), [(6, "normal"), (6, "reversed"), (8, "normal"), (8, "reversed")])
def test_openings_of_the_page_are_balanced_and_distinct(size, variant):
    rules = Rules(size, variant)
    openings = json.loads((PAGE / "openings" / f"{size}-{variant}.json").read_text())
    positions = [Game.from_transcript(line, rules) for line in openings]
    assert len({game.position.canonical() for game in positions}) == len(openings) >= 120
    assert all(len(line) == 16 for line in openings)
    engine = Engine("network", rules)
    values = [engine.search(game.position, Limits(depth=6)).value for game in positions[::20]]
    assert max(map(abs, values)) < 6
    assert abs(sum(values) / len(values)) < 1.5

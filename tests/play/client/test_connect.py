"""`reversi connect`: an agent or a person plays on a server against an agent or another client."""

import json
import random
import threading
from contextlib import contextmanager
from itertools import repeat

import pytest
from websockets.sync.server import serve

from play.client import client
from play.client.client import Client, ClientPlayer, Ticket, server_url
from play.client.players import Computer
from play.game import Game
from reversi_env import BLACK, Rules
from search.agents.spec import make_agent
from tests.oracles.processes import in_background
from tests.play.cli.test_contract import check_refusal
from tests.play.server.conftest import WAIT_SECONDS


def test_levels_play_a_remote_game_to_the_end(api, json_lines):
    arguments = ("--level", 4, "--opponent", "human:level=1", "--size", 6)
    [result] = json_lines("connect", api.url, *arguments)
    assert result["role"] == "black"
    assert result["ending"] == "played"
    record = api.hall.rooms[result["game"]].state()
    assert record.moves == result["moves"]
    assert record.result.score == result["score"]  # both report the same


def test_each_move_pass_and_take_back_is_printed_once(capsys):
    game, player, generator = Game(Rules(4)), Computer(make_agent("greedy"), False), random.Random(0)
    expected = []
    while not game.is_over():
        moves = game.position.legal_moves()
        expected.append(f"{len(game.moves) + 1:3} {game.turn} {generator.choice(moves) if moves else 'pass'}")
        game.play(expected[-1].split()[-1])
        if len(game.moves) % 3 == 0 or game.is_over():
            player.on_state(game)
    game.undo()
    player.on_state(game)
    expected.append(f"    taken back to move {len(game.moves)}")
    assert any("pass" in line for line in expected)
    assert capsys.readouterr().err.splitlines() == expected


def test_two_clients_play_each_other_and_report_the_same_score(api):
    mine, theirs = Client(api.url).create(Rules(6, "reversed"), BLACK, None)

    def play(ticket, spec):
        return Client(api.url).play(ticket, Computer(make_agent(spec), True))

    other = in_background(lambda: play(Ticket.read(str(theirs)), "six-factor:depth=1"))
    black, white = play(mine, "six-factor:depth=4"), other.result(WAIT_SECONDS)
    assert black.is_over()
    assert black.moves == white.moves
    assert black.score() == white.score()


def test_a_person_moves_undoes_rejoins_by_ticket_and_resigns(api, reversi):
    code, out, err = reversi("connect", api.url, "--opponent", "greedy", "--size", 4, stdin="zz\nmoves\nb1\nundo\nb1\n")
    assert code == 130
    assert "no moves yet" in out  # the same commands as in reversi play
    assert "'zz' is no legal move; legal moves: b1" in out
    assert out.count("black> b1") == 2
    code, out, err = reversi("connect", api.url, "--join", err.split("--join ")[1].strip(), stdin="resign\n")
    assert (code, err) == (0, "")
    assert "You play black" in out
    assert "white wins by resignation" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--join nonsense", "expected GAME.TOKEN"),
        ("--join abc.defghijkl --level 1", "there is no such game"),
        ("--join -bc.defghijkl --level 1", "there is no such game"),
        ("--join --level 1", "expected a ticket or a link"),
        ("--opponent gtp:sh --level 1", "agent 'gtp' is not on offer"),
        ("--size 5 --level 1", "size 5 is not supported"),
    ],
)
def test_bad_input_is_reported_in_one_line(api, reversi, arguments, message):
    check_refusal(reversi, ("connect", api.url, *arguments.split()), message)


@pytest.mark.parametrize(("address", "reason"), [("127.0.0.1:1", "connection refused"), ("a b:1", "url can't contain")])
def test_missing_server_is_a_failure_with_status_1(reversi, address, reason):
    code, out, err = reversi("connect", address)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"http://{address} ({reason}" in err
    assert "): expected a server there" in err


def test_server_addresses_become_urls():
    for written in ("localhost:8400", "localhost:99", "[::1]:99"):
        assert server_url(written) == f"http://{written}"
    assert server_url("localhost") == "http://localhost:8400"
    assert server_url("https://reversi.example") == "https://reversi.example"


#: Script entry: the server waits for a message of the client.
RECEIVE = object()


@contextmanager
def conversation(scripts):
    """Run a server that sends the messages of one script per connection and closes it; yield its URL."""
    scripts = iter(scripts)

    def attend(connection):
        connection.recv()  # join
        for part in next(scripts):
            if part is RECEIVE:
                connection.recv()
            else:
                connection.send(part if isinstance(part, str) else json.dumps(part))

    def health(connection, request):
        """Answer the health request over HTTP; other requests become sockets."""
        return connection.respond(200, '{"status": "ok"}') if request.path == "/api/health" else None

    with serve(attend, "127.0.0.1", 0, process_request=health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_reconnecting_ends_after_the_time_limit(api, reversi, monkeypatch):
    monkeypatch.setattr(client, "RECONNECT_SECONDS", 0.1)
    monkeypatch.setattr(client, "RETRY_SECONDS", 0.01)
    for messages in ((), ({"type": "joined", "role": "white"}, api.state(api.create(size=4)))):
        with conversation(repeat(messages)) as url:
            code, _, err = reversi("connect", url, "--join", "game.token", "--level", 1)
        assert code == 1
        assert err.count("connection lost") == 1
        assert f"lost {url}" in err


BOARD = {"type": "state", "size": 4, "variant": "normal", "status": "running"}


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ('{"type": "error", "status": 403, "message": "\\u001b]0;title\\u0007\\u009b31mno"}', "refuses: ]0;title31mno"),
        *(('{"type": "state"}', "breaks the rules: 'size'"), (BOARD | {"moves": ["\u001b[2J"]}, "breaks the rules")),
        (BOARD | {"moves": ["a1"]}, "breaks the rules"),
        (BOARD | {"moves": [], "turn": "black", "board": "X" * 16}, "differs from ours"),
        *(("[]", "cannot be read"), ("{", "cannot be read"), ("[" * 100_000, "cannot be read")),
    ],
)
def test_bad_server_messages_are_reported_without_escapes(reversi, message, complaint):
    with conversation(repeat([message])) as url:
        err = check_refusal(reversi, ("connect", url, "--join", "game.token", "--level", 1), complaint)
    assert err[:-1].isprintable()


class Scripted(ClientPlayer):
    """A player with prepared answers that records the moves at each request."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def decide(self, game):
        self.asked.append(game.moves)
        return self.answers.pop(0)


MOVE, UNDO = {"type": "move", "move": "b1", "ply": 0}, {"type": "undo"}


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (MOVE, []),
        (UNDO, [{"type": "error", "status": 409, "code": "nothing_to_undo", "message": "none"}]),
        (UNDO, [{"undo_request": "black"}, {"undo_request": None}]),
    ],
    ids=["cut off", "nothing to take back", "refused"],
)
def test_player_is_asked_again_after_a_lost_move_or_refusal(api, monkeypatch, asked, answer):
    monkeypatch.setattr(client, "RETRY_SECONDS", 0.01)
    created = api.create(size=4)
    beginning = api.state(created) | {"type": "state"}
    api.move(created, "black", "b1", 0)
    end = api.act(created, "white", "resign").json() | {"type": "state"}
    joined = [{"type": "joined", "role": "black"}, beginning, RECEIVE]
    states = [beginning | part for part in answer]
    scripts = [[*joined, *states, RECEIVE, end]] if states else [joined, [*joined, end]]
    player = Scripted(asked, MOVE)
    with conversation(scripts) as url:
        assert Client(url).play(Ticket("game", "token"), player).is_over()
    assert player.asked == [(), ()]

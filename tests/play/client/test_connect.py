"""`reversi connect`: an agent or a person on this side, an agent or another client on the other."""

import json
import random
import threading
from contextlib import ExitStack, contextmanager
from itertools import repeat

import pytest
from websockets.sync.server import serve

from play.client import client
from play.client.client import Client, ClientPlayer, ConnectError, Ticket, replayed_game, server_url
from tests.play.server.conftest import WAIT_SECONDS


def test_a_level_four_agent_plays_a_remote_level_one_to_the_end(api, json_lines):
    arguments = ("--level", 4, "--opponent", "human:level=1", "--size", 6)
    [result] = json_lines("connect", api.url, *arguments)
    assert result["role"] == "black"
    assert result["ending"] == "played"
    record = api.hall.rooms[result["game"]].state()
    assert record.moves == result["moves"]
    assert record.result.score == result["score"]  # both report the same


def test_the_answer_of_a_refusal_is_closed(api):
    with pytest.raises(ConnectError, match="refuses") as refused:
        Client(api.url).ask("GET", "/api/games/nowhere")
    assert refused.value.__context__.closed


def test_every_move_is_told_once_passes_and_moves_taken_back_too(capsys):
    """A state of the server may bring more than one move."""
    from play.client.players import Computer
    from play.game import Game
    from reversi_env import Rules
    from search.agents.spec import make_agent

    game, player, generator = Game(Rules(4)), Computer(make_agent("greedy"), False), random.Random(0)
    expected = []
    while not game.is_over():
        moves = game.position.legal_moves()
        expected.append(f"{len(game.moves) + 1:3} {game.turn} {generator.choice(moves) if moves else 'pass'}")
        game.play(expected[-1].split()[-1])
        if len(game.moves) % 3 == 0 or game.is_over():
            player.on_state(game)
    player.on_state(game)
    game.undo()
    player.on_state(game)
    expected.append(f"    taken back to move {len(game.moves)}")
    assert any("pass" in line for line in expected)
    assert capsys.readouterr().err.splitlines() == expected


def test_two_clients_play_each_other_and_report_the_same_score(api, tmp_path):
    """Each side in a thread of its own, with its own agent and its own board."""
    from play.client.players import Computer
    from reversi_env import BLACK, Rules
    from search.agents.spec import make_agent

    creator = Client(api.url)
    mine, theirs = creator.create(Rules(6, "reversed"), BLACK, None)
    games = {}

    def play(name, ticket, spec):
        games[name] = Client(api.url).play(ticket, Computer(make_agent(spec), True))

    threads = [
        threading.Thread(target=play, args=("black", mine, "six-factor:depth=4")),
        threading.Thread(target=play, args=("white", Ticket.read(str(theirs)), "six-factor:depth=1")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert games["black"].moves == games["white"].moves
    assert games["black"].score() == games["white"].score()
    assert games["black"].is_over()


def test_a_person_types_moves_takes_back_and_resigns(api, reversi):
    typed = "zz\nmoves\nhelp\nb1\nundo\nb1\nresign\n"
    code, out, err = reversi("connect", api.url, "--opponent", "greedy", "--size", 4, stdin=typed)
    assert (code, err) == (0, "")
    assert "You play black" in out
    assert "'zz' is no legal move; legal moves: b1" in out
    assert out.count("black> b1") == 2
    assert "white wins by resignation" in out


def test_who_leaves_gets_a_ticket_and_comes_back(api, reversi):
    code, _, err = reversi("connect", api.url, "--opponent", "greedy", "--size", 4, stdin="b1\n")
    assert code == 130
    ticket = err.split("--join ")[1].strip()
    code, out, _ = reversi("connect", api.url, "--join", ticket, stdin="resign\n")
    assert code == 0
    assert "You play black" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("SERVER", "--join", "nonsense"), "expected GAME.TOKEN"),
        (("SERVER", "--join", "abc.defghijkl", "--level", "1"), "there is no such game"),
        (("SERVER", "--opponent", "gtp:sh", "--level", "1"), "agent 'gtp' is not on offer"),
        (("SERVER", "--size", "5", "--level", "1"), "size 5 is not supported"),
    ],
)
def test_bad_input_is_one_clear_line(api, reversi, arguments, message):
    code, out, err = reversi("connect", *(api.url if word == "SERVER" else word for word in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_no_server_is_a_failure_and_not_wrong_usage(reversi):
    code, out, err = reversi("connect", "127.0.0.1:1")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("reversi: cannot reach http://127.0.0.1:1")


def test_addresses_and_tickets():
    assert server_url("localhost") == "http://localhost:8400"
    assert server_url("localhost:99") == "http://localhost:99"
    assert server_url("[::1]:99") == "http://[::1]:99"
    assert server_url("https://reversi.example") == "https://reversi.example"
    link = "http://127.0.0.1:8400/#join=abc.white.secret"
    assert Ticket.read(link) == Ticket("abc", "secret")


@pytest.fixture
def stranger():
    """Start a server that answers a socket with these messages and closes it; its URL."""
    with ExitStack() as stack:

        def start(*messages):
            return stack.enter_context(conversation(repeat(messages)))

        yield start


def health(connection, request):
    """The answer to a handshake over HTTP; a socket goes on."""
    return connection.respond(200, '{"status": "ok"}') if request.path == "/api/health" else None


def test_a_server_that_never_lets_us_play_is_given_up(stranger, api, reversi, monkeypatch):
    """Whatever it says first, as long as it brings no move."""
    monkeypatch.setattr(client, "RECONNECT_SECONDS", 0.1)
    monkeypatch.setattr(client, "RETRY_SECONDS", 0.01)
    state = json.dumps(api.state(api.create(size=4)))
    for messages in ((), ('{"type": "joined", "role": "white"}', state)):
        code, _, err = reversi("connect", stranger(*messages), "--join", "game.token", "--level", 1)
        assert code == 1
        assert err.count("connection lost, trying again") == 1
        assert "lost http://127.0.0.1:" in err


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ('{"type": "error", "status": 403, "message": "\\u001b]0;title\\u0007\\u009b31mno"}', "refuses: ]0;title31mno"),
        ('{"type": "state"}', "breaks the rules: 'size'"),
        ('{"type": "state", "size": 4, "variant": "normal", "moves": ["\\u001b[2J"]}', "breaks the rules"),
        ("[]", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_terminal_obeys_no_server(stranger, reversi, message, complaint):
    code, out, err = reversi("connect", stranger(message), "--join", "game.token", "--level", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err
    assert err[:-1].isprintable()


def test_a_server_that_breaks_the_rules_is_caught(api):
    state = api.state(api.create(size=4))
    assert replayed_game(state).moves == ()
    wrong = json.loads(json.dumps(state)) | {"board": "X" * 16}
    with pytest.raises(ConnectError, match="not ours"):
        replayed_game(wrong)
    with pytest.raises(ConnectError, match="breaks the rules"):
        replayed_game(state | {"moves": ["a1"]})


class Scripted(ClientPlayer):
    """Answers with what it was given, one after the other, and tells when it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def decide(self, game):
        self.asked.append(game.moves)
        return self.answers.pop(0)


MOVE, UNDO = {"type": "move", "move": "b1", "ply": 0}, {"type": "undo"}
JOINED = {"type": "joined", "role": "black"}


@pytest.fixture
def states(api):
    """A game at its beginning, with black to move, and when white has given up."""
    created = api.create(size=4)
    beginning = api.state(created)
    api.move(created, "black", "b1", 0)
    end = api.call("POST", f"/api/games/{created['game']}/resign", created["tokens"]["white"]).json()
    return beginning | {"type": "state"}, end | {"type": "state"}


def test_who_was_cut_off_in_the_middle_of_a_move_is_asked_again(states, monkeypatch):
    monkeypatch.setattr(client, "RETRY_SECONDS", 0.01)
    beginning, end = states
    player = Scripted(MOVE, MOVE)
    with conversation([[JOINED, beginning, HEARS], [JOINED, beginning, HEARS, end]]) as url:
        assert Client(url).play(Ticket("game", "token"), player).is_over()
    assert player.asked == [(), ()]


@pytest.mark.parametrize(
    "answer",
    [
        [{"type": "error", "status": 409, "code": "nothing_to_undo", "message": "none"}],
        [{"undo_request": "black"}, {"undo_request": None}],
    ],
    ids=["nothing to take back", "refused"],
)
def test_who_may_not_take_back_is_asked_for_a_move(states, answer):
    beginning, end = states
    player = Scripted(UNDO, MOVE)
    told = [part if "type" in part else beginning | part for part in answer]
    with conversation([[JOINED, beginning, HEARS, *told, HEARS, end]]) as url:
        assert Client(url).play(Ticket("game", "token"), player).is_over()
    assert player.asked == [(), ()]


#: The server waits for a message of the client.
HEARS = object()


@contextmanager
def conversation(scripts):
    """A server that sends on each connection the messages of one script, and closes it; its URL."""
    scripts = iter(scripts)

    def attend(connection):
        connection.recv()  # join
        for part in next(scripts):
            if part is HEARS:
                connection.recv()
            else:
                connection.send(part if isinstance(part, str) else json.dumps(part))

    with serve(attend, "127.0.0.1", 0, process_request=health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()

"""`reversi analyse --jsonl`: answers carry the id of their request, in any order, and follow the documented schema."""

import json
import queue

import pytest

from play.background import in_background
from play.cli.analysis.jsonl import AnalysisService, Request
from reversi_env import Position, Rules
from search.engine.solver import solve_all_moves
from tests.conftest import REPOSITORY

SCHEMA = json.loads((REPOSITORY / "docs" / "reference" / "analysis.schema.json").read_text())
#: A search that does not end in practice before it is cancelled.
ENDLESS = {"position": "start", "agent": "six-factor", "depth": 60}


class Client:
    """A running service with queues of request lines and of answers."""

    def __init__(self, workers):
        self.lines, self.answers = queue.Queue(), queue.Queue()
        self.service = AnalysisService({}, workers, 1, self.answers.put)
        self.done = in_background(lambda: self.service.run(iter(self.lines.get, None)))

    def send(self, **fields):
        self.lines.put(json.dumps(fields))

    def until(self, **expected):
        """Return the next answer with these fields."""
        while True:
            answer = self.answers.get(timeout=300)
            if expected.items() <= answer.items():
                return answer

    def end(self):
        self.lines.put(None)
        self.done.result(300)
        return [self.answers.get() for _ in range(self.answers.qsize())]


def test_concurrent_searches_send_updates_and_are_cancelled():
    client = Client(workers=2)
    client.send(id="long", **ENDLESS)
    depths = [client.until(id="long", type="update")["depth"] for _ in range(3)]
    assert depths == [1, 2, 3]
    client.send(id=2, position="f5", agent="six-factor", depth=3, updates=False)
    assert client.until(id=2)["type"] == "result"  # before the earlier request
    client.send(cancel="long")
    result = client.until(id="long", type="result")
    assert result["cancelled"]
    assert result["depth"] >= 3
    client.send(cancel="long")  # has ended, so there is no answer
    assert client.end() == []


def test_cancelled_requests_free_their_ids():
    client = Client(workers=1)
    client.send(id=1, **ENDLESS)
    client.until(id=1, type="update")
    client.send(id=2, **ENDLESS)
    client.send(id=1, position="start")
    assert "in use" in client.until(id=1, type="error")["error"]
    client.send(id=99)
    assert "position" in client.until(id=99, type="error")["error"]
    client.send(cancel=2)
    client.until(id=2, type="cancelled")
    client.send(id=2, position="XXXXXXXXXXXXXX--")
    client.send(cancel=1)
    answers = [client.until(id=1, type="result"), *client.end()]
    assert [(answer["id"], answer["type"], answer["move"]) for answer in answers[1:]] == [(2, "result", None)]


def test_a_defect_in_one_search_ends_no_worker(monkeypatch, capsys):
    client, search = Client(workers=1), AnalysisService._search
    monkeypatch.setattr(
        AnalysisService, "_search", lambda self, key, *rest: {}["defect"] if key == 1 else search(self, key, *rest)
    )
    for key in (1, 2):
        client.send(id=key, position="f5", agent="six-factor", depth=1)
    assert "KeyError: 'defect'" in client.until(id=1, type="error")["error"]
    assert client.until(id=2, type="result")["move"]
    client.end()
    assert "KeyError" in capsys.readouterr().err


def test_answers_follow_the_schema_and_options_set_defaults(reversi):
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    position = Position.initial(Rules(4)).play_all(["b1", "a1", "c4"])
    values = solve_all_moves(position)
    best = max(values, key=values.get)
    requests = [
        {"id": "a", "position": position.to_text(), "side": "white", "multi_pv": 9},
        {"id": "b", "position": "b1a1c4", "exclude": [best], "updates": False},
        {"id": "c", "position": "f5", "size": 8, "nodes": 2000, "updates": False},
        {"cancel": "nobody"},
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    status, out, err = reversi("analyse", "--jsonl", "--size", 4, "--depth", 20, "--agent", "six-factor", stdin=lines)
    assert (status, err) == (0, "")
    answers = [json.loads(line) for line in out.splitlines()]
    for part, of_part in (("answer", answers), ("request", requests[:3]), ("cancel", requests[3:])):
        for line in of_part:
            jsonschema.validate(line, {"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]})
    results = {answer["id"]: answer for answer in answers if answer["type"] == "result"}
    assert {entry["move"]: entry["value"] for entry in results["a"]["moves"]} == values
    assert results["a"]["exact"]
    others = {move: value for move, value in values.items() if move != best}
    assert (results["b"]["value"], results["b"]["exact"]) == (max(others.values()), True)
    assert others[results["b"]["move"]] == results["b"]["value"]
    assert results["c"]["depth"] < 20  # its own limit replaces the default
    assert {answer["id"] for answer in answers if answer["type"] == "update"} == {"a"}
    assert SCHEMA["$defs"]["request"]["properties"].keys() - {"id"} == Request.defaults().keys() | {"position"}


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        *(("{", None, "JSON object"), ("[1]", None, "JSON object")),
        *(('{"position": "start"}', None, "id None: expected"), ('{"id": 1.5, "position": "start"}', None, "1.5")),
        ('{"id": 1, "position": "start", "dept": 4}', 1, "did you mean 'depth'"),
        ('{"id": 1, "depth": 4}', 1, "position"),
        ('{"id": 1, "position": "start", "depth": 0}', 1, "depth=0: expected an integer from 1 to 60"),
        ('{"id": 1, "position": "/etc/passwd"}', 1, "expected a board"),
        ('{"id": 1, "position": "-"}', 1, "expected a board"),
        ('{"id": 1, "position": "start", "exclude": ["a1"]}', 1, "exclude 'a1': expected legal moves"),
        ('{"id": 1, "position": "start", "exclude": ["d3", "c4", "f5", "e6"]}', 1, "at least one"),
        ('{"id": 1, "position": "start", "agent": "greedy"}', 1, "expected an evaluator"),
        ('{"id": 1, "position": "start", "agent": "six-factor:depth=3"}', 1, "limits are separate fields"),
    ],
)
def test_bad_lines_get_an_error_answer(reversi, line, key, words):
    status, out, err = reversi("analyse", "--jsonl", "--agent", "six-factor", stdin=line + "\n")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert (answer["id"], answer["type"]) == (key, "error")
    assert words in answer["error"]

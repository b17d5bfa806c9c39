"""`reversi serve`: addresses, errors at the start, compilation in the background, delivery of the page."""

import os
import re
import signal
import socket
import sqlite3
from contextlib import closing

import pytest

from play.server import addresses
from play.server.games.store import check, opened
from play.server.http.app import IMMUTABLE, PAGE
from play.server.http.process import Server, configuration
from play.server.options import default_database
from play.server.workers import precompiling
from reversi_env import Rules
from reversi_env.compiler.kernel import NotCompiled
from tests.oracles.jobs import launched
from tests.oracles.strategies import wthor_file, wthor_record
from tests.play.cli.test_contract import check_refusal

from .conftest import OPTIONS, Api, eventually


@pytest.fixture
def folder(tmp_path):
    """Unusable files: a text, a database of another program, one in use, and a game record with an illegal move."""
    (tmp_path / "text").write_text("no database at all, but long enough to be looked at " * 20)
    (tmp_path / "a.wtb").write_bytes(wthor_file(wthor_record(["f5", "a1"])))
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE things (a)")
        other.commit()
    with closing(opened(tmp_path / "held")):
        yield tmp_path


@pytest.mark.parametrize(
    ("database", "option", "reason"),
    [
        *((".", (), "database"), ("text", (), "not a database"), ("held", (), "another server")),
        *(("other", (), "version 0"), ("nowhere/games", (), "folder"), ("text/games", (), "folder")),
        ("games", ("--wthor", "."), "'a.wtb': WTHOR game 0: move 2"),
        ("games", ("--port", "taken"), "cannot listen on 127.0.0.1"),
    ],
)
def test_unusable_files_and_ports_are_one_line(reversi, folder, database, option, reason):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = {".": folder, "taken": taken.getsockname()[1]}
        options = ["--port", 0, "--database", folder / database, *(words.get(word, word) for word in option)]
        check_refusal(reversi, ("serve", *options), reason)
    assert not (folder / "nowhere").exists()
    with closing(sqlite3.connect(folder / "other", timeout=0)) as other:
        other.execute("CREATE TABLE more (a)")  # not locked after the refusal


def test_a_second_ctrl_c_does_not_force_the_exit():
    server = Server(configuration(OPTIONS))
    for _ in range(2):
        server.handle_exit(signal.SIGINT, None)
    assert (server.should_exit, server.force_exit) == (True, False)


def test_the_default_database_is_in_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    check(default_database())
    assert (tmp_path / "new" / "reversi-lab" / "games.sqlite3").is_file()


def test_the_address_for_others_is_reachable(monkeypatch):
    monkeypatch.setattr(addresses, "_own_address", lambda: "192.168.1.5")
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert addresses.url_for_others(host, 80) is None
    for host in ("0.0.0.0", "::", "192.168.1.5"):
        assert addresses.url_for_others(host, 8400) == "http://192.168.1.5:8400"
    assert addresses.url_for_others("2001:db8::1", 80) == "http://[2001:db8::1]:80"
    monkeypatch.undo()
    assert addresses.url_for_others("0.0.0.0", 80) != "http://0.0.0.0:80"  # on any machine


def test_all_offered_agents_are_compiled_in_the_background(monkeypatch, capsys, api):
    offered = list(precompiling.offered())
    entries = {entry["name"]: entry["sizes"] for entry in api.call("GET", "/api/agents").json()["agents"]}
    entries.pop("rl", None)
    if "zero" in entries:  # zero needs torch
        entries["zero:time=1"] = entries.pop("zero")
    for game in ("normal", "reversed"):
        expected = {(name, size) for name, sizes in entries.items() for size in sizes}
        assert {(name, rules.size) for name, rules in offered if rules.variant == game} == expected
    done, missing = set(), [("mobility", 8), ("network", 6)]

    class Agent:
        def __init__(self, name, **options):
            self.name = name

        def prepare(self, rules):
            if (self.name, rules.size) in missing:
                missing.remove((self.name, rules.size))
                raise NotCompiled("search_root")
            done.add((self.name, rules))

    monkeypatch.setattr(precompiling, "make_agent", Agent)
    monkeypatch.setattr(precompiling, "parts_of", lambda agents: ())
    for messages in (f"{precompiling.MESSAGE}\n{precompiling.DONE}\n", ""):
        reports = []
        precompiling.compile_all(offered, lambda share, names: reports.append((share, list(names))))  # noqa: B023
        assert (done, missing, capsys.readouterr().err) == (set(offered), [], messages)
        assert (reports[0] == (0.0, ["network:6", "mobility:8"])) == bool(messages)
        assert reports[-1] == (1.0, [])
        done.clear()
    assert [name for name, rules in offered if rules == Rules()][:4] == ["random", "greedy", "network", "human"]


def test_the_page_is_small_compressed_and_cached(api):
    paths = (path for path in sorted(PAGE.rglob("*.*")) if path.suffix in (".js", ".css", ".svg"))
    files = [path.relative_to(PAGE).as_posix() for path in paths]
    [folder] = set(re.findall(r'="/(\w+)/(?=page/)', api.http.get("/").text))
    sizes = 0
    for path in ("", *(f"{folder}/{name}" for name in (*files, "words/en.json"))):
        answer = api.http.get(f"/{path}", headers={"accept-encoding": "gzip"})
        assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip")
        assert answer.headers["cache-control"] == (IMMUTABLE if path else "no-cache")
        again = {"accept-encoding": "gzip", "if-none-match": answer.headers["etag"]}
        assert api.http.get(f"/{path}", headers=again).status_code == 304
        sizes += int(answer.headers["content-length"])
    assert sizes < 80_000
    plain = api.http.get(f"/{folder}/style.css", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == (PAGE / "style.css").read_bytes()
    unknown = [api.http.get("/nothing", headers={"accept": accept}) for accept in ("text/html", "application/json")]
    assert [answer.status_code for answer in unknown] == [404, 404]
    assert [answer.headers["content-type"].partition(";")[0] for answer in unknown] == ["text/html", "application/json"]


@pytest.mark.slow
def test_first_start_answers_at_once_and_reports_compilation(tmp_path):
    environment = os.environ | {"REVERSI_CACHE_DIR": str(tmp_path / "cache")}
    with launched("serve", "--port", 0, "--database", tmp_path / "games", env=environment) as job:
        api = Api(re.search(r"http://\S+", job.stdout.readline())[0])

        def agents():
            return api.call("GET", "/api/agents").json()

        first = agents()
        assert first["compiled"] < 1
        assert not any(agent["ready"] for agent in first["agents"])  # the rules are compiled first
        eventually(lambda: any(8 in agent["ready"] for agent in agents()["agents"]), "the first opponent")
        assert {agent["name"] for agent in agents()["agents"] if 8 in agent["ready"]} <= {"greedy", "random"}
        assert 0 < agents()["compiled"] < 1
        assert api.create(white={"kind": "agent", "agent": "greedy"})["game"]
        api.http.close()

"""`reversi serve` as a command: where it listens, and what it says when it cannot."""

import socket

import pytest

from play.server.options import default_database
from play.server.store import check, opened


def test_a_port_that_is_taken_is_one_clear_line(reversi, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = reversi("serve", "--port", port, "--database", tmp_path / "games")
    assert (code, out) == (2, "")
    assert err.startswith(f"reversi: cannot listen on 127.0.0.1:{port}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("host", ["", "a..b", "x" * 70])
def test_an_address_that_is_none_is_one_clear_line(reversi, tmp_path, host):
    """Names that no resolver can know: they are refused before anybody on a network is asked."""
    code, out, err = reversi("serve", "--host", host, "--port", 0, "--database", tmp_path / "games")
    assert (code, out) == (2, "")
    assert "cannot listen on" in err
    assert err.count("\n") == 1


@pytest.fixture
def held(tmp_path):
    """A database that another server uses."""
    connection = opened(tmp_path / "held")
    yield tmp_path / "held"
    connection.close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".", "unable to open database file"),
        ("text", "file is not a database"),
        ("held", "another server uses it"),
        ("nowhere/games", "no folder"),
        ("text/games", "no folder"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_clear_line_before_the_address(reversi, tmp_path, held, name, reason):
    (tmp_path / "text").write_text("no database at all")
    code, out, err = reversi("serve", "--port", 0, "--database", tmp_path / name)
    assert (code, out) == (2, "")
    assert err.startswith("reversi: database ")
    assert reason in err
    assert err.count("\n") == 1
    assert not (tmp_path / "nowhere").exists()


def test_the_folder_of_the_default_database_is_made(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    check(default_database())
    assert default_database().is_file()


def test_games_are_kept_in_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_database() == tmp_path / "reversi-lab" / "games.sqlite3"

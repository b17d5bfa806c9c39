"""`reversi serve` as a command: where it listens, and what it says when it cannot."""

import socket

import pytest

from play.server.options import default_database


def test_a_port_that_is_taken_is_one_clear_line(reversi, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = reversi("serve", "--port", port, "--database", tmp_path / "games")
    assert (code, out) == (2, "")
    assert err.startswith(f"reversi: cannot listen on 127.0.0.1:{port}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("host", ["300.1.2.3", "", "no.such.host.invalid"])
def test_an_address_that_is_none_is_one_clear_line(reversi, tmp_path, host):
    code, out, err = reversi("serve", "--host", host, "--port", 0, "--database", tmp_path / "games")
    assert (code, out) == (2, "")
    assert "cannot listen on" in err
    assert err.count("\n") == 1


def test_games_are_kept_in_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_database() == tmp_path / "reversi-lab" / "games.sqlite3"

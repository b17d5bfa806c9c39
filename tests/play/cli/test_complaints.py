"""What commands refuse before they begin, what they say when there is nothing yet, and tables that fit a terminal."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from play.cli.interrupt import INTERRUPTED
from play.cli.measure.match import print_result
from play.cli.measure.tournament import print_cross_table
from play.cli.training import demo
from reversi_env import Position, Rules
from search import agents
from tests.conftest import REPOSITORY
from train.arena import tournament
from train.arena.match import PlayedGame, PlayerResults
from train.arena.openings import Opening


@pytest.mark.parametrize("arguments", [("solve",), ("analyse", "--depth", 0)])
def test_a_file_without_positions_is_not_passed_over_in_silence(reversi, tmp_path, arguments):
    file = tmp_path / "positions"
    file.write_text("% nothing\n\n")
    assert reversi(arguments[0], file, *arguments[1:]) == (0, "", f"reversi: no positions in {file}\n")


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (PermissionError(13, "Permission denied", "x.csv"), 2, "reversi: 'x.csv': permission denied\n"),
        (OSError(28, "No space left on device", "x.csv"), 1, "reversi: 'x.csv': no space left on device\n"),
        (OSError("something else"), 1, "reversi: something else\n"),
        (MemoryError("7 PiB"), 1, "reversi: not enough memory: expected a smaller job (7 PiB)\n"),
    ],
)
def test_the_system_refuses_in_one_line(reversi, monkeypatch, error, status, line):
    def refused(work):
        raise error

    monkeypatch.setattr("play.cli.interrupt.abandonable", refused)
    assert reversi("perft", "--size", 4, "--depth", 1) == (status, "", line)


def test_a_win_rate_without_a_game_is_none(reversi, monkeypatch):
    def interrupted(*arguments, **others):
        raise KeyboardInterrupt

    monkeypatch.setattr(tournament, "estimate_win_rate", interrupted)
    assert reversi("winrate", "greedy") == (INTERRUPTED, "", "reversi: interrupted after 0 games\n")


# --- tables at 80 columns ---------------------------------------------------------------------------


def test_a_mean_of_no_discs_has_no_minus(capsys):
    """Two games that cancel out: +0.0 discs for both."""
    game = PlayedGame(Opening(Position.initial()), (), (), 12)
    print_result("a", "b", Rules(), PlayerResults.of_match([game, game]))
    assert capsys.readouterr().out.count("+0.0") == 2


def test_a_match_fits_a_terminal(reversi, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = reversi("match", "greedy-invincible:seed=1", "greedy", "--games", 2, "--size", 4)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(("players", "named"), [(3, True), (16, False)])
def test_a_cross_table_of_all_agents_fits_a_terminal(players, named, monkeypatch, capsys):
    names = [f"position-stability {number}" for number in range(players)]
    monkeypatch.setenv("COLUMNS", "80")
    print_cross_table(names, [[1.0] * players] * players)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("100") == players * players
    assert ("position-stab" in text) == named


@pytest.mark.parametrize(("columns", "row"), [("80", ["57.5", "42.5"]), ("34", ["58", "42"])])
def test_the_scores_of_two_who_met_add_up(columns, row, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    print_cross_table(["a", "b"], [[None, 0.575], [0.425, None]])
    words = capsys.readouterr().out.split()
    assert [word for word in words if word[0] in "45"] == row


def test_the_demos_tables_fit_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = ("network", "position-stability", "sixteen-weight")
    errors = {name: dict.fromkeys(range(2, 11), 12.3) for name in names}
    played = PlayerResults(np.array([20, -12]))
    matches = dict.fromkeys(names[1:], played)
    demo._print_tables(SimpleNamespace(weights="w", errors=errors, matches=matches), Path("plot"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert all(sum(f" {name} " in line for line in lines) == 2 for name in names[1:])


# --- options of agents ------------------------------------------------------------------------------


def test_the_table_of_options_has_all_that_agents_know(reversi):
    known = {option for name in agents.names() for option in agents.option_names(name)}
    table = (
        (REPOSITORY / "docs" / "reference" / "agents.md")
        .read_text()
        .split("## Agents and their options")[1]
        .split("\n## ")[0]
    )
    assert set(re.findall(r"^\| `(\w+)` ", table, re.MULTILINE)) == known
    for command in ("match", "tournament"):
        _, out, _ = reversi(command, "--help")
        assert known <= set(re.findall(r"\w+", out))
        assert "docs/reference/agents.md" in out

"""What commands refuse before they begin, and what they say when they were interrupted before there was anything."""

import pytest

from play.commands.interruptible import INTERRUPTED
from train.arena import winrate


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("experiment", "all", "--out", "FILE"), "--out '{file}' is a file, or in one: expected a folder"),
        (("tournament", "greedy", "random", "--out", "FILE/x"), "--out '{file}/x' is a file, or in one"),
        (("label", "FILE", "--count", 10), "'{file}' is a file: expected a folder, or a name for a new one"),
        (("label", "FILE/x", "--count", 10), "folder '{file}/x' cannot be made, not a directory: expected a place"),
        (("experiment", "breadth", "--plot", "FILE/x.svg"), "--plot '{file}/x.svg': expected a file in a folder"),
        (("measure", "depth", "--plot", "FILE/x.svg"), "--plot '{file}/x.svg': expected a file in a folder"),
        (("exam", "--plot", "FILE/x.svg"), "--plot '{file}/x.svg': expected a file in a folder"),
        (("exam", "--plot", "x.gif"), "plot 'x.gif': expected a name that ends in .svg or .png"),
        (("match", "greedy", "greedy", "--time", -1), "--time -1: expected seconds above 0"),
        (("winrate", "greedy", "--time", 0), "--time 0: expected seconds above 0"),
        (("tournament", "greedy", "random", "--time", "nan"), "--time nan: expected seconds above 0"),
        (("tournament", "greedy", "random", "--limit", 0), "--limit 0: expected seconds above 0"),
        (("tournament", "greedy", "random", "--errors", 2), "--errors 2 without --sprt: expected both, or neither"),
        (("evaluate", "-", "--agent", "foo"), "evaluator 'foo' is unknown: expected one of cell-utility, discs,"),
        (("evaluate", "-", "--agent", "gtp:foo"), "evaluator 'gtp' is unknown: expected one of cell-utility"),
    ],
)
def test_nothing_begins_that_cannot_end(reversi, tmp_path, arguments, complaint):
    file = tmp_path / "file"
    file.touch()
    code, out, err = reversi(*(str(argument).replace("FILE", str(file)) for argument in arguments))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint.format(file=file) in err


def test_a_win_rate_without_a_game_is_none(reversi, monkeypatch):
    def interrupted(*arguments, **others):
        raise KeyboardInterrupt

    monkeypatch.setattr(winrate, "estimate_win_rate", interrupted)
    assert reversi("winrate", "greedy") == (INTERRUPTED, "", "reversi: interrupted after 0 games\n")

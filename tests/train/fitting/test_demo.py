"""`reversi demo`: from nothing to a network that plays, and the same again from its folder."""

import pytest


@pytest.mark.slow
def test_a_small_demonstration(tmp_path, json_lines):
    """A hundredth of the positions: the tables, the plot and the weights are there, and the network is better than nothing."""
    arguments = ("demo", "--out", tmp_path, "--scale", 0.02, "--games", 4)
    [first] = json_lines(*arguments)
    assert {"weights", "plot", "errors", "matches"} == first.keys()
    assert (tmp_path / "errors.svg").read_bytes().startswith(b"<?xml")
    for name, errors in first["errors"].items():
        assert name == "network" or sum(first["errors"]["network"].values()) < sum(errors.values())
    assert sum(match["wins"] for match in first["matches"]) > sum(match["losses"] for match in first["matches"])
    assert json_lines(*arguments) == [first]  # nothing is learnt twice, and every game is the same

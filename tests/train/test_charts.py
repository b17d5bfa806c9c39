"""Charts, by hand and by matplotlib, and the sections that show them."""

import sys
from xml.etree import ElementTree

import pytest

from reversi_env import ReversiError
from reversi_env.extras import MissingExtra
from train.charts import Figure, IntervalChart, LineChart, Section, Table, count, with_error


def lines_of(path):
    """Points of all lines of an SVG file."""
    found = [one.get("points", "").split() for one in ElementTree.parse(path).iter()]
    return [tuple(map(float, point.split(","))) for points in found for point in points]


@pytest.mark.parametrize("scale", [0.001, 1, 7, 12345])
def test_lines_stay_inside_the_picture(tmp_path, scale):
    LineChart("a < b", "x", "y", [1, 2, 3], {"a & b": [0, scale, scale / 2]}).save(tmp_path / "chart.svg")
    assert all(0 <= x <= 760 and 0 <= y <= 440 for x, y in lines_of(tmp_path / "chart.svg"))


def test_intervals_are_a_row_each_whatever_the_names(tmp_path):
    chart = IntervalChart("<title> & more", "Elo", [("a", 0, 200, 410), ("<b>", -90.5, 0, 3), ("c" * 50, 0, 0, 0)])
    for name in ("chart.svg", "chart.png"):
        chart.save(tmp_path / name)
    root = ElementTree.parse(tmp_path / "chart.svg").getroot()
    assert len(root.findall(".//{*}circle")) == 3
    words = [element.text for element in root.iter()]
    assert {"<title> & more", "<b>", "c" * 31 + "…", "+200", "0", "-100", "+500"} <= set(words)
    assert all(0 <= x <= 760 and 0 <= y <= chart.height for x, y in lines_of(tmp_path / "chart.svg"))
    IntervalChart("", "", [("alone", 0, 0, 0)]).save(tmp_path / "chart.svg")


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ReversiError, match=r"expected a name that ends in .svg or .png"):
        LineChart("", "", "", [1, 2], {"a": [1, 2]}).save(tmp_path / "chart.gif")


def plain_figure():
    return Figure("f", "A line.", lambda figure: figure.subplots().plot([1, 2], [3, 4]))


def test_figures_are_the_same_bytes_every_time_and_carry_no_date(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg", "c.png"):
        plain_figure().save(tmp_path / name)
    first, second, other = ((tmp_path / name).read_bytes() for name in ("a.svg", "b.svg", "c.png"))
    assert first == second
    assert b"<dc:date>" not in first
    assert other.startswith(b"\x89PNG")


def test_without_matplotlib_the_way_to_get_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'`pip install "\.\[plots\]"`'):
        plain_figure().save(tmp_path / "a.svg")


def test_a_section_as_markdown():
    table = Table("A table", ["name", "a|b"], [["x", "1"], ["y", "2"]])
    section = Section("n", "Title", ["reversi x"], ["Words.", table, plain_figure()])
    assert section.markdown("i") == (
        "## Title\n\n```bash\nreversi x\n```\n\nWords.\n\n*A table*\n\n| name | a\\|b |\n|---|---:|\n| x | 1 |\n| y | 2 |\n\n"
        "![A line.](i/f.svg)\n\n*A line.*"
    )
    assert with_error(1.23456, 0.01, 2) == "1.23 ± 0.01"
    assert with_error(1.2, float("nan"), 1) == "1.2"
    assert (count(1234.4), count(12.34)) == ("1,234", "12.3")

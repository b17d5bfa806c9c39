"""Charts by matplotlib."""

import pytest

from train.charts import Figure, interval_chart


def words_of(figure, path):
    """Return the texts of an SVG file: matplotlib writes them as comments next to the drawn letters."""
    figure.save(path)
    return [line.strip() for line in path.read_text().splitlines() if line.strip().startswith("<!--")]


def test_interval_chart_shows_all_names(tmp_path):
    rows = [("a", 0, 200, 410), ("<b$x$>", -90.5, 0, 3), ("c" * 50, 0, 0, 0)]
    words = words_of(interval_chart("<title>", "Elo", rows), tmp_path / "chart.svg")
    assert {"<!-- &lt;title&gt; -->", "<!-- &lt;b$x$&gt; -->", f"<!-- {'c' * 31}… -->", "<!-- +200 -->"} <= set(words)
    interval_chart("", "", [("孤独", 0, 0, 0)]).save(tmp_path / "chart.png")


def plain_figure():
    return Figure("f", "A line.", lambda figure: figure.subplots().plot([1, 2], [3, 4]))


def test_figures_are_reproducible_and_have_no_date(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg", "c.png"):
        plain_figure().save(tmp_path / name)
    first, second, other = ((tmp_path / name).read_bytes() for name in ("a.svg", "b.svg", "c.png"))
    assert first == second
    assert b"<dc:date>" not in first
    assert other.startswith(b"\x89PNG")

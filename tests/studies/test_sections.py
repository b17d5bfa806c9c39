"""What a study says, as Markdown and on a terminal."""

import pytest

from studies.sections import Section, Table, count, print_section, with_error
from train.charts import Figure


def test_a_section_as_markdown():
    table = Table("A table", ["name", "a|b"], [["x", "1"], ["y", "2"]])
    section = Section("n", "Title", ["reversi x"], ["Words.", table, Figure("f", "A line.", lambda figure: None)])
    assert section.markdown("i") == (
        "## Title\n\n```bash\nreversi x\n```\n\nWords.\n\n*A table*\n\n| name | a\\|b |\n|---|---:|\n| x | 1 |\n| y | 2 |\n\n"
        "![A line.](i/f.svg)\n\n*A line.*"
    )
    assert with_error(1.23456, 0.01, 2) == "1.23 ± 0.02"  # 1.96 standard errors
    assert with_error(1.2, float("nan"), 1) == "1.2"
    assert (count(1234.4), count(12.34)) == ("1,234", "12.3")


@pytest.mark.parametrize("cell", ["100.0 ± 12.5 %", "10.844 ± 0.079", "8.73, 8.7 ± 0.05"])
def test_no_figure_is_torn_from_its_error_or_its_unit(capsys, monkeypatch, cell):
    monkeypatch.setenv("COLUMNS", "80")
    columns = ["game", "against random", "level 1", "", "discs against random"]
    words = "report 002 (8×8 reversed, 40 games)"
    told = Section("x", "x", [], ["words", Table("title", columns, [[words, *[cell] * 4], ["8×8", "1, 2", *[""] * 3]])])
    print_section(told)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count(cell) for line in lines) == 4


def test_nothing_is_cut_off_a_table_that_is_too_wide(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    cells = [f"{number}00.0 ± 0.1 %" for number in range(1, 6)]
    print_section(Section("x", "x", [], [Table("title", list("abcdef"), [["game", *cells]])]))
    out = capsys.readouterr().out
    assert all(cell in out for cell in cells)
    assert "95 %" in out

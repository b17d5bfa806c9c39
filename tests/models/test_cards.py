"""Model cards: they say what the file says, and the documentation has the present ones."""

import re
from pathlib import Path

import pytest

from models import cards
from models.networks import read_weights
from tests.models.twins import random_network


def test_the_documentation_has_the_cards_of_the_weights_in_the_package():
    page = cards.PAGE.read_text(encoding="utf-8")
    assert page == cards.updated(page), "run python -m models.cards"
    for path in cards.FOLDER.glob("*.safetensors"):
        assert path.name in page


FIGURES = "stage", "positions", "epochs", "validation_error", "error_by_empties"
STAGES = [
    ("exact-1-9", 2000, 3, 1.234, {"8": 2}),
    ("depth4-10-12", 5000, 2, 3, {"12": 1.5}),
    ("depth6-13-14", 100, 1, 4, {"12": 9.9}),  # whose error, of five positions, is left out
]


def test_a_card_says_what_the_record_says(tmp_path):
    record = {
        "command": "reversi train --size 4 | tee log",
        "commit": "abc",
        "options": {"stages": [{"mean": 1}, {"mean": 2}]},  # of a third stage nothing is known
        "figures": [dict(zip(FIGURES, stage, strict=True)) for stage in STAGES],
    }
    path = cards.annotate(random_network("linear", 4).save_in(tmp_path), **record)
    text = cards.card(path)
    assert "### 4×4 normal" in text
    assert path.name in text
    assert "`reversi train --size 4 \\| tee log`" in text
    assert "| positions | 7,100 |" in text
    assert "8: 2.00, 12: 1.50" in text
    assert "| 1 to 9 empties | 2,000 | exact | 3 | 1.23 |" in text
    assert "| 10 to 12 empties | 5,000 | mean of searches to 3 and 4 plies | 2 | 3.00 |" in text
    assert "| 13 to 14 empties | 100 | search to 6 plies | 1 | 4.00 |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_facts_are_added_after_the_training(tmp_path):
    before = random_network("linear", 4).save_in(tmp_path)
    known = {"empties": 14, "regret": 2.5, "best_moves": 0.625}
    exam = {
        "papers": [{"empties": 14, "positions": 1000, "mean_score": 17.1}],
        "marks": [
            {"evaluator": "network", "error": 5.5, "error_standard_error": 0.25, **known},
            {"evaluator": "x", "error": 9, "error_deviation": 0.5, **known},
        ],
    }
    after = cards.annotate(before, matches={"six-factor, depth 6": "98 %"}, exam=exam)
    assert after != before
    assert read_weights(after).record == {"seed": 0, "matches": {"six-factor, depth 6": "98 %"}, "exam": exam}
    text = cards.card(after)
    assert "| games: six-factor, depth 6 | 98 % |" in text
    assert "static value, discs | 14 empties |\n" in text
    assert "| `network` | 5.50 ± 0.49 |\n| `x` | 9.00 ± 0.98 |\n| always 0 | 17.10 |\n" in text
    assert "| `x` | 2.50 (62%) |" in text


def test_a_card_without_a_record(tmp_path):
    text = cards.card(random_network("linear", 6, variant="reversed").save_in(tmp_path))
    assert "### 6×6 reversed" in text
    assert "| architecture | linear patterns" in text


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = cards.PAGE.read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(compile(example.replace("games=10", "games=2"), "docs/models.md", "exec"), {})
    assert [path.name[:11] for path in Path().glob("*.safetensors")] == ["6x6-normal-"]


@pytest.mark.parametrize("command", ["reversi exam", "reversi match", "reversi analyse"])
def test_the_page_shows_the_commands(command):
    assert command in cards.PAGE.read_text(encoding="utf-8")

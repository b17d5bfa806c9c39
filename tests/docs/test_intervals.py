"""One meaning of “±”: 95 % intervals on pages and in tables, `standard_error` or `interval` in JSON."""

import re

import pytest

from tests.conftest import REPOSITORY

#: Names that are no standard errors: errors of evaluations, and fields of ProbCut. Weight files of 0.2.0 have the last.
OTHERS = {
    *("node_error", "training_error", "validation_error", "value_error"),
    *("cut_deviation", "end_deviation", "error_deviation"),
}
#: A string, which may be a key, or a field of a dataclass.
NAME = re.compile(r"""["'](\w*deviation|\w*_error)["']|^    (\w*deviation|\w*_error): """, re.M)


def test_no_key_calls_a_standard_error_otherwise():
    found = {}
    for package in ("reversi_env", "search", "models", "train", "play", "studies", "benchmarks"):
        for path in (REPOSITORY / package).rglob("*.py"):
            for quoted, field in NAME.findall(path.read_text("utf-8")):
                name = quoted or field
                if not name.endswith("standard_error") and name not in OTHERS:
                    found.setdefault(name, []).append(path.name)
    assert not found


@pytest.mark.parametrize("page", ["README.md", "docs/glossary.md"])
def test_the_convention_is_told(page):
    assert re.search(r"±[^\n]*95 % confidence interval", (REPOSITORY / page).read_text("utf-8"))

"""One meaning of “±”: 95 % intervals on pages and in tables, `standard_error` or `interval` in JSON."""

import re
from itertools import pairwise

import pytest

from tests.conftest import REPOSITORY

#: Names that are no standard errors: errors of evaluations, fields of ProbCut, a flag. Weight files of 0.2.0 have the last.
OTHERS = {
    *("node_error", "training_error", "validation_error", "value_error"),
    *("cut_deviation", "end_deviation", "error_deviation"),
    "is_internal_error",
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


#: An error is written with a space after the sign; "±100" is a range.
ERROR = re.compile(r"± +<?[\d.]")
KIND = re.compile(r"95 %|standard error")


@pytest.mark.parametrize(
    "path", [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))], ids=lambda path: path.stem
)
def test_every_error_on_a_page_has_its_kind(path):
    """The page says above its first section what “±” is, or a paragraph does with an error, or the one before it."""
    page = path.read_text("utf-8")
    if re.search(r"“±”[^.]*95 %", page.partition("\n## ")[0]):
        return
    paragraphs = page.split("\n\n")
    unlabelled = [
        paragraph
        for before, paragraph in pairwise(["", *paragraphs])
        if ERROR.search(paragraph) and not KIND.search(before + paragraph)
    ]
    assert not unlabelled

"""One meaning of “±” on pages: 95 % intervals."""

import re
from itertools import pairwise

import pytest

from tests.conftest import REPOSITORY

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

"""SVG rendering: well-formed, self-contained, and equal to the board."""

import re
from xml.etree import ElementTree

import pytest

from reversi_env import Position, Rules
from reversi_env.rendering import render_svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


def actions_of(text: str, name: str, size: int) -> list[int]:
    """Return the actions whose squares have an element of class *name*."""
    elements = [element for element in ElementTree.fromstring(text).iter() if element.get("class") == name]
    centres = [(float(element.get("cx", "nan")), float(element.get("cy", "nan"))) for element in elements]
    return sorted(size * int(y // 100) + int(x // 100) for x, y in centres)


def ids_of(text: str) -> list[str]:
    return re.findall(r' id="([^"]+)"', text)


def test_discs_and_marks_are_on_their_squares(position, last_move):
    text, size = render_svg(position, last_move), position.rules.size
    letters = position.to_text()
    assert actions_of(text, "reversi-black", size) == [i for i, letter in enumerate(letters) if letter == "X"]
    assert actions_of(text, "reversi-white", size) == [i for i, letter in enumerate(letters) if letter == "O"]
    squares = [action for action in position.legal_actions() if action != position.rules.pass_action]
    assert actions_of(text, "reversi-legal", size) == squares
    assert actions_of(text, "reversi-last", size) == [last_move] * (last_move not in (None, position.rules.pass_action))
    for action in range(size * size):
        assert actions_of(render_svg(position, action), "reversi-last", size) == [action]
    assert position._repr_svg_() == render_svg(position)  # for notebooks


@pytest.mark.parametrize("size", [4, 6, 8])
def test_options_hide_labels_and_legal_moves_and_set_size(size):
    start = Position.initial(Rules(size))
    labels = [element.text for element in ElementTree.fromstring(render_svg(start)).iter(f"{NAMESPACE}text")]
    assert labels == [*"abcdefgh"[:size], *"12345678"[:size]]
    text = render_svg(start, coordinates=False, show_legal=False, size_px=123)
    root = ElementTree.fromstring(text)
    assert not list(root.iter(f"{NAMESPACE}text"))
    assert actions_of(text, "reversi-legal", size) == []
    assert (root.tag, root.get("width"), root.get("height")) == (f"{NAMESPACE}svg", "123", "123")


def test_svg_has_accessible_title(before_pass):
    root = ElementTree.fromstring(render_svg(before_pass.play("pass"), 16))
    title = root.find(f"{NAMESPACE}title")
    assert title is not None
    assert "white passed" in (title.text or "")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == title.get("id")


def test_svg_has_no_external_references(position, last_move):
    text = render_svg(position, last_move)
    used = set(re.findall(r"url\(#([^)]+)\)", text))
    assert len(used) == 4
    assert used < set(ids_of(text))
    assert re.findall(r"https?://[^\"]+", text) == [NAMESPACE.strip("{}")]


def test_ids_are_unique_per_picture_and_deterministic():
    start = Position.initial()
    options = [{}, {"last_move": 27}, {"size_px": 100}, {"show_legal": False}, {"coordinates": False}]
    texts = [render_svg(start, **option) for option in options] + [render_svg(start.play("d3"))]
    ids = [name for text in texts for name in ids_of(text)]
    assert len(ids) == len(set(ids)) == 5 * len(texts)
    assert texts[0] == render_svg(Position.initial())

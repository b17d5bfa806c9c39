"""The page's puzzles."""

import json
import re

import pytest

from reversi_env import BLACK, WHITE, Position
from search.engine.solver import solve_all_moves

from .steps import PHONE, expect, fits, picture, press_square, rating_text, shuts_nobody_out

pytestmark = pytest.mark.slow


def test_puzzles_are_solved_refuted_counted_and_kept(open_page):
    def asked():
        known = json.loads(page.evaluate("localStorage['reversi.puzzles']"))
        return known["current"], Position.from_text(
            known["current"]["board"], BLACK if known["current"]["turn"] == "black" else WHITE
        )

    page = open_page(PHONE, "#puzzles")
    verdict, streak = page.locator("#puzzle-verdict"), page.locator("#puzzle-streak")
    expect(verdict).to_contain_text("to move: find the best move.")
    puzzle, position = asked()
    page.reload()  # the same puzzle is asked
    expect(page.locator(".square.legal")).to_have_count(len(position.legal_moves()))
    assert asked()[0] == puzzle
    fits(page)

    values = solve_all_moves(position)
    wrong = min(values, key=values.get)
    page.click(f".square[data-square={wrong}]")
    expect(verdict).to_contain_text(f"{wrong} loses {puzzle['value'] - values[wrong]} discs")
    expect(page.locator("#status")).to_contain_text(re.compile("wins|draw"))  # it is played out to the end
    expect(page.locator("#live")).to_contain_text("instead of")
    expect(streak).to_have_text("Streak: 0 (longest: 0)")
    expect(page.locator("#puzzle-rating")).to_contain_text(rating_text([(puzzle["rating"], 0)]))
    expect(page.locator("#puzzle-line button").first).to_have_text(wrong)
    picture(page, "puzzle")
    shuts_nobody_out(page)

    page.click("#puzzle-again")
    expect(page.locator(".square.legal")).to_have_count(len(values))
    press_square(page, puzzle["move"], 8)
    expect(verdict).to_contain_text(f"Correct! {puzzle['move']} is worth")
    expect(streak).to_have_text("Streak: 0 (longest: 0)")  # the first answer counts
    expect(page.locator(":focus")).to_have_text("Next puzzle")
    page.keyboard.press("Enter")
    expect(verdict).to_contain_text("find the best move")
    second, _ = asked()
    assert second["number"] != puzzle["number"]
    press_square(page, second["move"], 8)
    expect(streak).to_have_text("Streak: 1 (longest: 1)")
    expect(page.locator("#puzzle-rating")).to_contain_text(rating_text([(puzzle["rating"], 0), (second["rating"], 1)]))
    page.click("#puzzle-study")
    expect(page.locator("#game-title")).to_have_text("Review")
    page.go_back()
    expect(verdict).to_contain_text("Correct!")
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("#puzzle-reset")
    expect(streak).to_have_text("Streak: 0 (longest: 0)")

"""Steps and checks that the browser tests share."""

import os
import re
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.play.web.test_modules import rating_interval

expect = pytest.importorskip(
    "playwright.sync_api", reason="the browser tests need playwright: pip install playwright"
).expect

DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
#: Timeout in milliseconds of actions and expectations.
WAIT = 300_000
expect.set_options(timeout=WAIT)


def choose(page, **fields):
    for name, value in fields.items():
        if page.locator(f"select[name={name}]").count():
            page.select_option(f"select[name={name}]", value)
        elif page.locator(f"input[type=range][name={name}]").count():
            page.fill(f"input[name={name}]", str(value))
        else:
            page.check(f"input[name={name}][value='{value}']", force=True)


def start(page, **fields):
    """Start a game with these fields of the form."""
    choose(page, **fields)
    page.click("#start")


def until(page, condition):
    """Wait until *condition* is true while the page runs."""
    for _ in range(WAIT // 10):
        if condition():
            return
        page.wait_for_timeout(10)
    raise AssertionError("the condition did not become true in time")


def moves(page):
    return page.locator("#moves button").all_inner_texts()


def my_turn(page):
    expect(page.locator("#status")).to_contain_text("Your turn.")


def review(page, moves, size=8):
    """Load a record of moves."""
    page.click("#nav-review")
    page.fill("#transcript", moves)
    page.check(f"input[name=rsize][value='{size}']", force=True)
    page.click("#loader button[type=submit]")
    page.wait_for_url(re.compile("#review=."))


def call_module(page, path, use, argument=None):
    """Call the JavaScript function *use* with a module of the page, whose address contains the content hash."""
    module = f"import(new URL('../{path}', document.querySelector('script[type=module]').src))"
    return page.evaluate(f"async (argument) => ({use})(await {module}, argument)", argument)


def confirm(page):
    """Confirm the question of the page."""
    page.click("#sure-yes")
    expect(page.locator("#sure")).to_be_hidden()


def check_no_overflow(page):
    """Check that neither the page nor its menu overflows horizontally."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.evaluate("document.querySelector('nav').scrollWidth <= document.querySelector('nav').clientWidth")


def check_accessibility(page):
    """Check both themes with axe: contrast, names of controls and other rules."""
    check_axe(page)
    page.click("#theme")
    check_axe(page, ["color-contrast"])  # the only rule that depends on the theme
    page.click("#theme")


def check_axe(page, rules=None):
    """Check the current page with all rules of axe or with *rules*."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    faults = axe.run(page, options=options).response["violations"]
    assert not [(fault["id"], node["html"]) for fault in faults for node in fault["nodes"]]


def press_square(page, name, size):
    """Move to a square with the arrow keys, and play there."""
    page.locator(".square[tabindex='0']").focus()
    for _ in range(size):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowLeft")
    for _ in range(int(name[1]) - 1):
        page.keyboard.press("ArrowDown")
    for _ in range("abcdefgh".index(name[0])):
        page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("data-square", name)
    page.keyboard.press("Enter")


def rating_text(results):
    """Return the page's text of a rating and its interval after results (rating of the opponent, score)."""
    rating, low, high = rating_interval(results)
    return f"{rating:.0f} (probably {low:.0f} to {high:.0f})"


def play_moves(page, count):
    """Play *count* moves, each with the agent's reply."""
    for _ in range(count):
        my_turn(page)
        before = page.locator("#moves button").count()
        page.locator(".square.legal").first.click()
        expect(page.locator("#moves button").nth(before + 1)).to_be_attached()
    my_turn(page)


def save_screenshot(page, name):
    """Save a screenshot for the documentation in the folder REVERSI_PICTURES."""
    if folder := os.environ.get("REVERSI_PICTURES"):
        shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
        shot.save(Path(folder) / f"{name}.webp", quality=80)

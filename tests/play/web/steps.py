"""What the walks through the page have in common: what is done there, and what is looked at."""

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
#: Milliseconds after which something is taken never to happen: for what a page does, and for what is expected of it.
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
    """Begin a game with what is chosen."""
    choose(page, **fields)
    page.click("#start")


def until(page, condition):
    """Let the page go on until *condition* is true."""
    for _ in range(WAIT // 10):
        if condition():
            return
        page.wait_for_timeout(10)
    raise AssertionError("it did not come about")


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


def imported(page, path, use, argument=None):
    """What the function *use* makes of one of the page's modules, whose address has the hash of all files."""
    module = f"import(new URL('../{path}', document.querySelector('script[type=module]').src))"
    return page.evaluate(f"async (argument) => ({use})(await {module}, argument)", argument)


def is_sure(page):
    """Say yes to the page's question."""
    page.click("#sure-yes")
    expect(page.locator("#sure")).to_be_hidden()


def fits(page):
    """Fail if something sticks out sideways, of the page or of its menu."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.evaluate("document.querySelector('nav').scrollWidth <= document.querySelector('nav').clientWidth")


def shuts_nobody_out(page):
    """Fail if axe finds fault – too little contrast, controls without a name – in the dark theme or in the light one."""
    is_faultless(page)
    page.click("#theme")
    is_faultless(page, ["color-contrast"])  # all in which themes differ
    page.click("#theme")


def is_faultless(page, rules=None):
    """Fail if axe finds fault in the page as it is, by all its rules or by some."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    faults = axe.run(page, options=options).response["violations"]
    assert not [(fault["id"], node["html"]) for fault in faults for node in fault["nodes"]]


def press_square(page, name, size):
    """Go to a square by the arrow keys, and play there."""
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
    """A rating and its interval after results (rating of the opponent, score), as the page has them."""
    rating, low, high = rating_interval(results)
    return f"{rating:.0f} (probably {low:.0f} to {high:.0f})"


def play_some(page, count):
    """Make so many own moves, each answered."""
    for _ in range(count):
        my_turn(page)
        before = page.locator("#moves button").count()
        page.locator(".square.legal").first.click()
        expect(page.locator("#moves button").nth(before + 1)).to_be_attached()
    my_turn(page)


def picture(page, name):
    """Keep what the docs show, where REVERSI_PICTURES says."""
    if folder := os.environ.get("REVERSI_PICTURES"):
        shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
        shot.save(Path(folder) / f"{name}.webp", quality=80)

"""The guide docs/guide/first-game.md, followed to its end."""

import re
import shlex

import pytest

from tests.conftest import REPOSITORY
from tests.oracles.jobs import launched

from .steps import DESKTOP, PHONE, WAIT, expect, save_screenshot

pytestmark = pytest.mark.slow

WALK = REPOSITORY / "docs" / "guide" / "first-game.md"
#: Status texts that mean that the player has the turn or the game is over.
DECIDED = re.compile(r"Your turn\.|win|draw")


def names_of_steps():
    """Return the bold texts of every step of the guide and of its end: names of elements on the page."""
    steps = re.split(r"^(?=\d\. |Your friend)", WALK.read_text(), flags=re.M)[1:]
    return [re.findall(r"\*\*(.+?)\*\*", step) for step in steps]


@pytest.fixture
def server_url(tmp_path):
    """Start the server as in the guide, with another port and database; yield the address that it prints for other machines."""
    [line] = re.findall("^reversi serve.*", WALK.read_text(), re.M)
    words = [*shlex.split(line)[1:], "--port", "0", "--workers", "0", "--database", tmp_path / "games"]
    with launched(*words) as server:
        own, others = (next(server.stdout) for _ in range(2))
        yield re.search(r"http://\S+", others if others.startswith("other machines") else own)[0]


def test_the_first_game_guide_works(browser, server_url):
    """From the server command to a friend who reads a variation, with the element names of the guide."""
    (strength, size, start), help, (review,), _, (comment,), (share, copy), (own,) = names_of_steps()
    page = browser.new_page(viewport=DESKTOP, reduced_motion="reduce", permissions=["clipboard-write"])
    page.set_default_timeout(WAIT)
    page.goto(server_url)
    expect(page.get_by_label(strength, exact=False).first).to_be_visible()
    page.get_by_label(size, exact=True).first.check(force=True)
    page.get_by_role("button", name=start, exact=True).click()
    for name in help:
        expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()
    status = page.locator("#status")
    expect(status).to_have_text(DECIDED)
    while "Your turn." in status.inner_text():
        before = page.locator("#moves button").count()
        page.locator(".square.legal").first.click()
        expect(page.locator("#moves button").nth(before)).to_be_attached()
        expect(status).to_have_text(DECIDED)
    page.get_by_role("button", name=review, exact=True).click()
    expect(page.locator("#summary")).to_be_visible()
    expect(page.locator("#chart .curve").first).to_be_visible()
    save_screenshot(page, "walk-review")
    played = page.locator("#moves button > :first-child").all_inner_texts()
    page.locator("#moves button").first.click()
    page.locator(f".square.legal:not([data-square={played[1]}])").first.click()
    expect(page.locator("#moves .variation button")).to_have_count(1)
    page.get_by_label(comment).fill("Would this have been better?")
    save_screenshot(page, "walk-variation")
    page.get_by_role("button", name=share, exact=True).click()
    expect(page.locator("#invite-link")).to_have_value(re.compile(f"^{re.escape(server_url)}/review/"))
    page.get_by_role("button", name=copy, exact=True).click()

    friend = browser.new_page(viewport=PHONE)
    friend.goto(page.locator("#invite-link").input_value())
    expect(friend.locator("#moves .variation .remark")).to_have_text("Would this have been better?")
    shown = "#moves button > :first-child"
    expect(friend.locator(shown)).to_have_text(page.locator(shown).all_inner_texts())
    page.get_by_role("button", name=own, exact=True).click()
    expect(page.locator("#library-list a")).to_have_count(2)  # the game and its review
    page.close()
    friend.close()

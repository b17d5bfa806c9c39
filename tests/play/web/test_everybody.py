"""Accessibility of the page: keyboard, screen readers, themes, screen sizes, languages."""

import re

import pytest

from reversi_env import Position
from tests.oracles.strategies import random_moves
from tests.play.web.test_words import FORMS, WORDS

from .steps import call_module, check_axe, check_no_overflow, choose, expect, my_turn, press_square, review, start

pytestmark = pytest.mark.slow


def test_keyboard_control_and_screen_reader_messages(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the board")
    page.keyboard.press("Enter")
    expect(page.locator(":focus")).to_have_attribute("data-square", "d4")
    expect(page.locator("#setup")).to_be_visible()
    choose(page, agent="greedy", size=4)
    page.locator("#start").focus()
    page.keyboard.press("Enter")
    my_turn(page)
    expect(page.locator(":focus")).to_have_attribute("data-square", "b2")  # not lost when the form disappears
    square = page.locator(".square.legal").first
    name = square.get_attribute("data-square")
    assert square.get_attribute("aria-label") == f"{name}, empty, legal move"
    press_square(page, name, 4)
    expect(page.locator("#moves button").nth(1)).to_be_attached()
    expect(page.locator("#live")).to_contain_text("White plays")
    # Without animations, moves and passes may follow each other within one frame.
    call_module(page, "page/notices.js", "({ say }) => { say('One.'); say('Two.'); }")
    expect(page.locator("#live")).to_have_text("One. Two.")
    page.locator("#resign").press("Enter")
    expect(page.locator(":focus")).to_have_text("Cancel")
    check_axe(page)
    page.keyboard.press("Escape")
    expect(page.locator("#sure")).to_be_hidden()
    for button in ("resign", "rematch"):  # each button disappears after its use
        page.locator(f"#{button}").press("Enter")
        if button == "resign":
            page.locator("#sure-yes").press("Enter")
        expect(page.locator(f"#{button}")).to_be_hidden()
        expect(page.locator(":focus")).to_have_class(re.compile("square"))
    page.keyboard.press("?")
    expect(page.locator("#keys li")).to_have_count(5)
    check_axe(page)
    page.keyboard.press("Enter")
    expect(page.locator("#keys")).to_be_hidden()
    page.click("#nav-review")
    page.locator("#loader button[type=submit]").focus()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_id("file")
    expect(page.locator("label.button")).to_have_css("outline-style", "solid")  # the focus is visible


def test_dark_and_light_theme_on_all_screen_sizes(open_page):
    page = open_page(color_scheme="dark")
    theme = page.locator("html")
    expect(theme).to_have_attribute("data-theme", "dark")
    page.click("#nav-review")
    page.click("#theme")
    expect(theme).to_have_attribute("data-theme", "light")
    page.reload()
    expect(theme).to_have_attribute("data-theme", "light")

    for width, height in ((844, 390), (640, 430), (390, 844), (1280, 720), (2560, 1300)):  # a phone, 200 %, screens
        page.set_viewport_size({"width": width, "height": height})
        board = page.locator("#board svg").bounding_box()
        check_no_overflow(page)
        assert board["y"] >= 0
        assert board["y"] + board["height"] <= height or width < height
        assert board["height"] > 0.68 * min(width, height)


def test_controls_are_visible_and_aligned(open_page):
    for width, height in ((1280, 800), (390, 844), (844, 390), (320, 640)):
        page = open_page({"width": width, "height": height})
        assert page.locator(".top").bounding_box()["height"] < 70  # one row
        expect(page.locator("#start")).to_be_in_viewport(ratio=1)
        check_axe(page)
        review(page, "".join(move for move in random_moves(Position.initial(), 1) if move != "pass"))
        page.keyboard.press("End")
        page.reload()
        expect(page.locator("#moves [aria-current=true]")).to_have_count(1)
        above, below, wide = page.evaluate("""() => {
            const place = (name) => document.querySelector(name).getBoundingClientRect();
            const [current, list] = [place("#moves [aria-current=true]"), place("#moves")];
            const pair = place("#moves li:has([aria-current=true])");
            return [current.top - list.top, list.bottom - current.bottom, current.width / pair.width];
        }""")
        assert min(above, below) >= 0
        assert wide <= 0.5  # half of its row
        expect(page.locator("#moves .number").nth(1)).to_have_text("3")  # the same count as the stepper
        check_no_overflow(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    board, brand = page.locator("#board svg"), page.locator(".brand")
    page.evaluate("scrollTo(0, 9999)")
    expect(page.locator("#board svg")).to_be_in_viewport(ratio=1)  # beside a long panel
    page.click("#nav-new")
    assert abs(board.bounding_box()["x"] - brand.bounding_box()["x"]) < 1


def test_an_unknown_address_leads_to_the_start_page(open_page, server):
    page = open_page(may_fail="nothing")
    page.goto(server.url + "/nothing/here")
    expect(page.locator("#toast")).to_contain_text("This page does not exist")
    expect(page).to_have_url(server.url + "/")
    expect(page.locator("#start")).to_be_visible()
    check_axe(page)


LOCALES = {"en": "en-GB", "fr": "fr-CA", "ja": "ja-JP", "zh-Hans": "zh-CN"}


def test_the_page_uses_the_browser_or_chosen_language(open_page):
    for language, locale in LOCALES.items():
        words = WORDS[language]
        page = open_page({"width": 320, "height": 640}, locale=locale)
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect(page.locator("#start")).to_have_text(words["setup.start"])
        forms = page.evaluate("lang => new Intl.PluralRules(lang).resolvedOptions().pluralCategories", language)
        assert set(forms) - {"many"} == FORMS[language]  # many: whole millions in French
        check_no_overflow(page)
        page.click("#nav-review")
        white, discs = page.locator("#player-white .count"), words["count.discs"]
        expect(white).to_have_attribute("aria-label", discs["other"].replace("{n}", "2"))
        page.locator("[data-square=d4]").press("Enter")
        expect(white).to_have_attribute("aria-label", discs.get("one", discs["other"]).replace("{n}", "1"))
        check_no_overflow(page)
        page.click("#nav-puzzles")
        expect(page.locator("#puzzle-solve")).to_be_visible()
        check_no_overflow(page)
        page.click("#nav-new")
        start(page, agent="greedy", size=4)
        expect(page.locator("#status")).to_have_text(words["status.mine"])
        page.evaluate("document.getElementById('refuse').click()")  # there was no request to refuse
        expect(page.locator("#toast")).to_have_text(words["refused.nothing_asked"])
        check_no_overflow(page)
        check_axe(page)
    page.select_option("#language", "fr")
    expect(page.locator("#status")).to_have_text(WORDS["fr"]["status.mine"])
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    expect(page.locator("#status")).to_have_text(WORDS["fr"]["status.mine"])

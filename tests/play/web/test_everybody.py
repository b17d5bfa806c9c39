"""The page for everybody: keyboard and screen readers, dark and light, small and large screens, languages."""

import re

import pytest

from tests.play.web.test_words import FORMS

from .steps import WAIT, choose, expect, is_faultless, my_turn, press_square

pytestmark = pytest.mark.slow


def test_the_keyboard_is_enough_and_screen_readers_are_told(open_page):
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
    expect(page.locator(":focus")).to_have_attribute("data-square", "b2")  # and not lost with the form
    square = page.locator(".square.legal").first
    name = square.get_attribute("data-square")
    assert square.get_attribute("aria-label") == f"{name}, empty, legal move"
    press_square(page, name, 4)
    expect(page.locator("#moves button").nth(1)).to_be_attached(timeout=WAIT)
    expect(page.locator("#live")).to_contain_text("White plays", timeout=WAIT)
    # without motion moves and passes may follow one another within a frame
    page.evaluate("import('/page/notices.js').then(({ say }) => { say('One.'); say('Two.'); })")
    expect(page.locator("#live")).to_have_text("One. Two.")
    page.once("dialog", lambda dialog: dialog.accept())
    for button in ("resign", "rematch"):  # each is hidden by what it does
        page.locator(f"#{button}").press("Enter")
        expect(page.locator(f"#{button}")).to_be_hidden()
        expect(page.locator(":focus")).to_have_class(re.compile("square"))


#: The contrast between an element's background and that of the card around it, by WCAG.
CONTRAST = """element => {
    const light = (node) => {
        const parts = getComputedStyle(node).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
        const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const both = [light(element), light(element.closest(".card"))];
    return Math.max(...both) / Math.min(...both);
}"""


def test_what_can_be_used_is_seen_and_so_is_the_focus(open_page):
    page = open_page()
    page.click("#nav-review")
    page.locator("#loader button[type=submit]").focus()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_id("file")
    expect(page.locator("label.button")).to_have_css("outline-style", "solid")
    page.click("#nav-new")
    choose(page, agent="greedy", size=4)
    page.click("#start")
    switch = page.locator("#analysis")
    expect(switch).to_be_visible()
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        assert switch.evaluate(CONTRAST) >= 3


def test_dark_and_light_on_all_screens(open_page):
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
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert board["y"] >= 0
        assert board["y"] + board["height"] <= height or width < height
        assert board["height"] > 0.68 * min(width, height)

    drawn = page.evaluate("""async () => {
        const { Chart } = await import("/page/chart.js");
        const host = document.querySelector(".panel").appendChild(document.createElement("div"));
        new Chart(host, () => {}).show([1, 4, null, -9, -2, null, 7].map((value) => ({ value, grade: "blunder" })), 0, 8);
        const box = host.querySelector("circle.dot").getBoundingClientRect();
        return { gaps: host.querySelectorAll(".curve").length, lone: host.querySelectorAll(".lone").length,
                 dots: host.querySelectorAll(".dot").length, isRound: Math.abs(box.width - box.height) < 0.1,
                 ticks: [...host.querySelectorAll(".tick")].map((tick) => tick.textContent) };
    }""")
    ticks = ["20", "8", "0", "8", "20", "2", "4", "6"]  # discs, and moves
    assert drawn == {"gaps": 2, "lone": 1, "dots": 5, "isRound": True, "ticks": ticks}


#: What the page says to browsers of a language: to start, one and two discs, whose turn it is, and what the server refuses.
SAID = {
    "en": ("en-GB", "Start", "1 disc", "2 discs", "Your turn.", "There is no request to take back a move."),
    "fr": ("fr-CA", "Commencer", "1 pion", "2 pions", "À vous de jouer.", "Personne n’a demandé à reprendre un coup."),
    "ja": ("ja-JP", "対局開始", "1石", "2石", "あなたの手番です。", "「待った」は求められていません。"),
    "zh-Hans": ("zh-CN", "开始", "1 子", "2 子", "轮到您了。", "没有人请求悔棋。"),
}


def test_the_page_speaks_the_language_of_the_browser_or_the_one_chosen(open_page):
    narrow = {"width": 320, "height": 640}

    def fits(page):
        assert page.evaluate("document.documentElement.scrollWidth") <= narrow["width"]

    for language, (locale, start, one, two, turn, refused) in SAID.items():
        page = open_page(narrow, locale=locale)
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect(page.locator("#start")).to_have_text(start)
        forms = page.evaluate("lang => new Intl.PluralRules(lang).resolvedOptions().pluralCategories", language)
        assert set(forms) - {"many"} == FORMS[language]  # many: whole millions in French
        fits(page)
        page.click("#nav-review")
        white = page.locator("#player-white .count")
        expect(white).to_have_attribute("aria-label", two)
        page.locator("[data-square=d4]").press("Enter")
        expect(white).to_have_attribute("aria-label", one)
        fits(page)
        page.click("#nav-puzzles")
        expect(page.locator("#puzzle-solve")).to_be_visible()
        fits(page)
        page.click("#nav-new")
        choose(page, agent="greedy", size=4)
        page.click("#start")
        expect(page.locator("#status")).to_have_text(turn)
        page.evaluate("document.getElementById('refuse').click()")  # there was no wish to refuse
        expect(page.locator("#toast")).to_have_text(refused)
        fits(page)
        is_faultless(page)
    page.select_option("#language", "fr")
    expect(page.locator("#status")).to_have_text(SAID["fr"][4])
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    page.reload()
    expect(page.locator("#status")).to_have_text(SAID["fr"][4])

"""The web page in a real browser: playing, taking back, variants, analysis, watching, reviewing, reloading, keyboard."""

import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from models.human import RATINGS
from reversi_env import BLACK, WHITE, Position, Rules
from reversi_env.notation import read_ggf_game
from tests.conftest import REPOSITORY

from .conftest import OPTIONS, eventually, running
from .test_rating import believed
from .test_reading import WTHOR
from .test_words import FORMS

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="the browser tests need playwright: pip install playwright"
)
expect = sync_api.expect
pytestmark = pytest.mark.slow

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
#: The guide that a newcomer follows.
WALK = REPOSITORY / "docs" / "guide" / "first-game.md"
#: What the line under the board says when something is to be done, or the game is over.
DECIDED = re.compile(r"Your turn\.|win|draw")
#: Milliseconds after which something is taken never to happen: for what a page does, and for what is expected of it.
WAIT = 300_000
expect.set_options(timeout=WAIT)


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("REVERSI_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no browser: install chromium, or name one by REVERSI_BROWSER")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server():
    with running(replace(OPTIONS, watch_pace=0.05)) as api:
        yield api


@pytest.fixture
def open_page(browser, server):
    """Open the page at a size; whatever it complains about fails the test."""
    contexts, complaints = [], []

    def open_page(viewport=DESKTOP, address="", reduced_motion="reduce", **options):
        context = browser.new_context(viewport=viewport, reduced_motion=reduced_motion, **options)
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        ours = (server.url, "blob:", "data:")
        page.on("request", lambda request: request.url.startswith(ours) or complaints.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(server.url + "/" + address)
        expect(page.locator("#agent option").first).to_be_attached(timeout=WAIT)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def choose(page, **fields):
    for name, value in fields.items():
        if page.locator(f"select[name={name}]").count():
            page.select_option(f"select[name={name}]", value)
        elif page.locator(f"input[type=range][name={name}]").count():
            page.fill(f"input[name={name}]", str(value))
        else:
            page.check(f"input[name={name}][value='{value}']", force=True)


def moves(page):
    return page.locator("#moves button").all_inner_texts()


def my_turn(page):
    expect(page.locator("#status")).to_contain_text("Your turn.", timeout=WAIT)


def shuts_nobody_out(page):
    """Fail if axe finds fault – too little contrast, controls without a name – in the dark theme or in the light one."""
    for _ in range(2):
        is_faultless(page)
        page.click("#theme")


def is_faultless(page):
    """Fail if axe finds fault in the page as it is."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    faults = axe.run(page).response["violations"]
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
    rating, low, high = believed(results)
    return f"{rating:.0f} (95 %: {low:.0f} to {high:.0f})"


def play_some(page, count):
    """Make so many own moves, each answered."""
    for _ in range(count):
        my_turn(page)
        before = page.locator("#moves button").count()
        page.locator(".square.legal").first.click()
        expect(page.locator("#moves button").nth(before + 1)).to_be_attached(timeout=WAIT)
    my_turn(page)


def test_a_game_with_take_back_reload_and_a_change_of_variant(open_page, server):
    page = open_page()
    choose(page, agent="six-factor", strength=0)
    page.click("#start")
    play_some(page, 10)
    played = moves(page)
    assert len(played) >= 20
    board = page.locator("#board svg")
    discs = int(page.locator("#player-black .count").inner_text()) + int(
        page.locator("#player-white .count").inner_text()
    )
    assert discs == 4 + len([move for move in played if move != "pass"])

    page.click("#undo")
    expect(page.locator("#moves button")).to_have_count(len(played) - 2, timeout=WAIT)
    my_turn(page)

    page.reload()
    my_turn(page)
    # the list may come after the words
    expect(page.locator("#moves button")).to_have_count(len(played) - 2, timeout=WAIT)
    assert moves(page) == played[:-2]
    play_some(page, 1)

    page.click("#nav-new")
    choose(page, variant="reversed", size=6, colour="white", agent="greedy")
    expect(board.locator(".square")).to_have_count(36)  # shown at once
    expect(page.locator("#status")).to_contain_text("6×6 · fewest discs win")
    page.click("#start")
    my_turn(page)
    expect(page.locator("#tags")).to_have_text("6×6 · fewest discs win")
    assert len(moves(page)) == 1  # black, the agent, has begun
    games = [room for room in server.hall.rooms.values() if room.game.rules.variant == "reversed"]
    assert len(games) == 1

    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#resign")
    expect(page.locator("#status")).to_have_text("Black wins: white resigned.")
    expect(page.locator("#undo")).to_be_hidden()
    page.click("#rematch")  # with colours exchanged
    my_turn(page)
    expect(page.locator("#player-black .name")).to_have_text("You")
    expect(page.locator("#tags")).to_have_text("6×6 · fewest discs win")


def test_analysis_shows_values_the_line_and_the_course_of_the_game(open_page):
    page = open_page()
    choose(page, agent="greedy", size=6)
    page.click("#start")
    play_some(page, 2)
    page.click("#hint")
    expect(page.locator(".square.hint.legal")).to_have_count(1)
    page.locator(".switch").click()
    best = page.locator(".worth[data-grade=best]")
    expect(best.first).to_be_visible(timeout=WAIT)  # equally good moves are all marked
    legal = page.locator(".square.legal").count()
    assert page.locator(".square.valued").count() == legal
    expect(page.locator("#line .verdict")).to_contain_text("depth", timeout=WAIT)
    expect(page.locator("#bar")).to_be_visible()
    expect(page.locator("#chart .curve")).to_have_count(1, timeout=WAIT)
    if legal > 1:  # hovering over another move tells its own value and line
        page.locator(".square.legal:not(.best)").first.hover()
        expect(page.locator("#line .verdict")).to_contain_text("for black", timeout=WAIT)
    page.reload()  # the wish for analysis is remembered in this game
    expect(best.first).to_be_visible(timeout=WAIT)
    page.click("#nav-new")
    page.click("#start")
    my_turn(page)
    expect(page.locator("#analysis")).not_to_be_checked()
    shuts_nobody_out(page)


def test_an_answer_waits_until_the_discs_have_turned(open_page):
    page = open_page(reduced_motion="no-preference")
    page.evaluate("""() => {
        window.knocks = 0;
        AudioBufferSourceNode.prototype.start = () => { knocks++; };
        window.shown = [];
        const note = () => { const count = document.querySelectorAll(".piece[data-disc=X], .piece[data-disc=O]").length;
            if (count !== shown.at(-1)?.count) shown.push({ count, at: performance.now() }); };
        new MutationObserver(note).observe(document.getElementById("board"), { subtree: true, attributes: true, childList: true });
    }""")
    choose(page, agent="greedy", size=6)
    page.click("#start")
    play_some(page, 2)
    shown = page.evaluate("shown.slice(-4).map(({ at }) => at)")  # my move, the answer, my move, the answer
    # timers and the time of drawing round to a millisecond or so
    assert shown[1] - shown[0] >= 495
    assert shown[3] - shown[2] >= 495
    assert page.evaluate("knocks") == 4
    page.click("#sound")
    play_some(page, 1)
    assert page.evaluate("knocks") == 4
    page.reload()
    expect(page.locator("#sound")).to_have_attribute("aria-pressed", "false")


def test_two_agents_are_watched_to_the_end(open_page, server):
    page, known = open_page(PHONE), set(server.hall.rooms)
    choose(page, mode="watch", agent="human", strength=9, agent2="random", size=4)
    expect(page.locator("#strength-text")).to_have_text("10 · Full strength")
    page.fill("#strength", "0")
    expect(page.locator("select[name=clock]")).to_be_hidden()  # it would not count
    page.evaluate("document.getElementById('speed').value = 2000")
    page.click("#start")
    page.click("#pause")
    (room,) = [room for name, room in server.hall.rooms.items() if name not in known]
    eventually(room.game.is_over, "the end of the game")
    assert len(moves(page)) < len(room.game.moves)  # the game is over, and the page has stopped
    page.select_option("#speed", "Fast")
    page.click("#pause")
    expect(page.locator("#status")).to_contain_text(re.compile("win|draw"), timeout=WAIT)
    expect(page.locator("#undo")).to_be_hidden()
    expect(page.locator("#watching")).to_be_hidden()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]  # nothing sticks out


def test_a_record_is_reviewed_with_verdicts_exact_at_the_end(open_page):
    """A 4x4 game in which the first move that differs from perfect play is known."""
    from search.solver import solve_all_moves

    position, text, losses = Position.initial(Rules(4)), [], []
    while not position.is_over():
        values = solve_all_moves(position)
        move = min(values, key=values.get) if len(text) in (4, 5) else max(values, key=values.get)
        losses.append(max(values.values()) - values[move])
        text.append(move)
        position = position.play(move)
    assert max(losses) >= 5
    page = open_page(PHONE)
    page.click("#nav-review")
    page.fill("#transcript", " ".join(move for move in text if move != "pass"))
    page.check("input[name=rsize][value='4']", force=True)
    page.click("#loader button[type=submit]")
    expect(page.locator("#summary")).to_be_visible(timeout=WAIT)
    shown = page.locator("#moves button").evaluate_all("buttons => buttons.map((b) => b.dataset.grade ?? '')")
    expected = [
        "blunder" if loss >= 5 else "mistake" if loss >= 3 else "inaccuracy" if loss >= 1 else "" for loss in losses
    ]
    for grade, due, loss in zip(shown, expected, losses, strict=True):
        assert grade == due or (loss and grade == "mistake")  # an inaccuracy that turns the result is a mistake
    page.locator("#moves [data-grade=blunder]").first.click()
    expect(page.locator("#line")).to_contain_text("exact")
    expect(page.locator("#line")).to_contain_text("was better")
    page.keyboard.press("End")
    expect(page.locator("#ply")).to_have_text(f"{len(text)} / {len(text)}")
    shuts_nobody_out(page)
    a_variation_is_played_commented_promoted_and_deleted(page, text)
    the_page_knows_the_rules(page)

    mine = page.evaluate("""async () => {
        const { app } = await import("/state.js"), { blundersOf } = await import("/puzzle.js");
        return ["black", "white"].map((mine) => blundersOf({ ...app.line, mine }).length);
    }""")
    assert mine == [1, 0]  # of the two bad moves one had a single better one
    page.click("#practise")
    expect(page.locator("#puzzle-kind option:checked")).to_have_text("My own blunders (1)")
    expect(page.locator(".square.legal")).to_have_count(4)
    page.click(".square[data-square=d3]")  # as in the game
    expect(page.locator("#puzzle-verdict")).to_contain_text("d3 gives away 4 discs")
    expect(page.locator("#puzzle-verdict")).to_contain_text("−14 instead of −10")
    page.click("#puzzle-next")
    expect(page.locator(".square.legal")).to_have_count(4)
    page.click(".square[data-square=d4]")
    expect(page.locator("#puzzle-verdict")).to_contain_text("Right! d4 is worth −10.")
    expect(page.locator("#puzzle-streak")).to_have_text("Streak: 1 (longest: 1)")
    expect(page.locator("#puzzle-rating")).to_contain_text("first answer")  # they do not count for it


def a_variation_is_played_commented_promoted_and_deleted(page, text):
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    other = page.locator(f".square.legal:not([data-square={text[1]}])").first
    name = other.get_attribute("data-square")
    other.click()
    tried = page.locator("#moves .variation button > :first-child")
    expect(tried).to_have_text([name])
    expect(page.locator("#ply")).to_have_text("2 / 2")
    page.fill("#comment", "Why not this?")
    expect(page.locator("#moves .remark")).to_have_text("Why not this?")
    expect(page.locator("#line .pv button").nth(1)).to_be_visible()  # what is expected is played with a click
    line = page.locator("#line .pv button").all_inner_texts()
    page.locator("#line .pv button").nth(1).click()
    assert [move for move in tried.all_inner_texts() if move != "pass"] == [name, *line[:2]]
    tried.first.click()
    page.keyboard.press("ArrowUp")  # to the move of the game in its place, and back
    expect(page.locator("#moves [aria-current=true]")).to_have_text(re.compile(f"^{text[1]}"))
    page.keyboard.press("ArrowDown")
    expect(page.locator("#moves [aria-current=true] > :first-child")).to_have_text(name)
    page.click("#promote")
    expect(page.locator("#promote")).to_be_disabled()
    expect(page.locator("#moves > li:not(.aside) button").nth(1)).to_have_text(re.compile(f"^{name}"))
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#remove")
    expect(page.locator("#moves .variation")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def the_page_knows_the_rules(page):
    """Legal moves, passes, the end and what is turned, in games of all sizes, beside ours."""
    generator, games = random.Random(1), []
    for size, start in ((4, "standard"), (4, "parallel"), (6, "standard"), (8, "standard"), (8, "parallel")):
        position, seen = Position.initial(Rules(size, start=start)), []
        while not position.is_over():
            move = generator.choice(position.legal_moves())
            seen.append([position.to_text(), str(position.turn), position.legal_moves(), move])
            position = position.play(move)
        games.append([size, start, [*seen, [position.to_text(), str(position.turn), [], None]]])
    assert any(move == "pass" for *_, seen in games for *_, move in seen)
    replayed = """async (games) => {
        const { after, initial, legalMoves } = await import("/rules.js");
        return games.map(([size, start, seen]) => {
            let position = initial(size, start);
            return [size, start, seen.map(([, , , move]) => {
                const { board, turn } = position, legal = legalMoves(position, size);
                if (move) position = after(position, move, size);
                return [board, turn, legal, move];
            })];
        });
    }"""
    assert page.evaluate(replayed, games) == games


OBF = "-----OX--XO----- X; % the start\nOX--OXX-OOX--XXX O; C1:+6;"
GAMES = (
    "(;GM[Othello]PB[Ann]PW[Bob]TY[4]BO[4 ---- -O*- -*O- ---- *]B[b1]W[a1];)"
    "(;GM[Othello]PB[Cid]PW[Dan]TY[4]BO[4 ---- -O*- -*O- ---- *]B[b1]W[c1];)"
)


def test_a_position_is_set_up_studied_and_sent(open_page, tmp_path):
    """From the board, a paste and a file to a review with a variation that others open; reload and Back lose nothing."""
    page = open_page()
    page.click("#nav-review")
    page.check("input[name=rsize][value='4']", force=True)
    corner = page.locator("[data-square=a1]")
    for what in ("black", "white", "empty", "black"):
        corner.press("Enter")  # the keyboard is enough
        expect(corner).to_have_attribute("aria-label", f"a1, {what}")
    page.fill("#transcript", OBF)
    page.reload()
    expect(corner).to_have_attribute("aria-label", "a1, black")
    page.click("#loader button[type=submit]")
    page.locator("#choice-list button").nth(1).click()
    expect(page.locator("#status")).to_have_text("White to move.")
    expect(page.locator("#moves .remark")).to_have_text("c1:+6")
    page.go_back()
    expect(page.locator("#choice-list button")).to_have_count(2)
    shuts_nobody_out(page)
    page.fill("#transcript", "XXXX XXXX XXXX XXXX")
    page.click("#loader button[type=submit]")
    expect(page.locator("#toast")).to_contain_text("Neither side can move")

    names = (
        struct.pack("<4BIHH4B", 20, 26, 1, 1, 0, 13, 0, 0, 0, 0, 0)
        + 12 * bytes(20)
        + "Zoé".encode("latin-1").ljust(20, b"\0")
    )
    files = (("WTHOR.JOU", names), ("WTH_1999.wtb", WTHOR))
    page.set_input_files("#file", [{"name": name, "mimeType": "", "buffer": data} for name, data in files])
    expect(page.locator("#choice-list .name")).to_have_text(["Zoé – #13"] * 2)
    page.set_input_files("#file", {"name": "games.ggf", "mimeType": "text/plain", "buffer": GAMES.encode()})
    page.get_by_role("button", name="Cid").click()
    expect(page.locator("#moves button > :first-child")).to_have_text(["b1", "c1"])
    page.keyboard.press("ArrowRight")
    corner.press("Enter")
    page.fill("#comment", "or [this]")
    page.reload()
    expect(page.locator("#moves .variation .remark")).to_have_text("or [this]")
    expect(page.locator("#moves [aria-current=true] > :first-child")).to_have_text("a1")
    page.locator("#promote").press("Enter")
    page.locator("#share").press("Enter")
    link = page.locator("#invite-link")
    expect(link).to_have_value(re.compile(r"/review/[\w-]{22}$"))
    name = link.input_value().rsplit("/", 1)[1]

    friend = open_page(PHONE, address=f"review/{name}")
    shown = friend.locator("#moves button > :first-child")
    expect(shown).to_have_text(["b1", "a1", "c1"])
    friend.keyboard.press("ArrowRight")
    friend.locator(".square.legal[data-square=a3]").click()  # what is tried in another's review is one's own
    expect(friend).to_have_url(re.compile("/#review="))
    expect(shown).to_have_text(["b1", "a1", "c1", "a3"])
    expect(friend.locator("#moves [aria-current=true] > :first-child")).to_have_text("a3")
    friend.reload()
    expect(shown).to_have_text(["b1", "a1", "c1", "a3"])
    friend.go_back()
    expect(shown).to_have_text(["b1", "a1", "c1"])
    assert friend.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

    with page.expect_download() as saved:
        page.click("#save")
    game = read_ggf_game(saved.value.path().read_text())
    assert (game.black, game.moves, game.tags["C"]) == ("Cid", ("b1", "a1"), "2. a1: or [this]")
    with page.expect_download() as saved:
        page.click("#save-json")
    saved.value.save_as(tmp_path / "review.json")
    page.click("#nav-games")
    expect(page.locator("#library-list a")).to_have_count(2)
    shuts_nobody_out(page)
    page.get_by_role("button", name="Forget Review of Cid").click()
    expect(page.locator("#library-list a")).to_have_count(1)
    page.click("#nav-review")
    page.set_input_files("#file", tmp_path / "review.json")
    expect(page.locator("#moves button > :first-child")).to_have_text(["b1", "a1", "c1"])


def test_openings_are_named_and_empty_squares_are_the_winners(open_page, server):
    page = open_page()
    choose(page, agent="network", strength=4, colour="white", size=8)
    page.click("#start")
    my_turn(page)
    expect(page.locator("#player-black .note")).to_contain_text("6 plies")
    room = max(server.hall.rooms.values(), key=lambda room: room.created)
    assert room._row.black.agent == "network:depth=6,book=yes,variety=1"
    page.click("#nav-review")
    page.fill("#transcript", "f5d6c5f4e7f6g5e6e3")  # white has no disc left: the empty squares are black's
    page.click("#loader button[type=submit]")
    expect(page.locator("#game-title")).to_have_text("Review")
    page.keyboard.press("Home")
    expect(page.locator("#opening")).to_be_hidden()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#opening")).to_have_text(re.compile(r"^Perpendicular Opening – book: c[34] [+−].* \(\d+\)"))
    page.keyboard.press("End")
    expect(page.locator("#status")).to_have_text("Black played e3. Black wins, 64–0, 51 empty squares included.")


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


def test_a_friend_joins_by_the_link(open_page):
    mine = open_page()
    choose(mine, mode="friend", size=4)
    mine.click("#start")
    expect(mine.locator("#analysis")).to_be_hidden()
    link = mine.locator("#invite-link")
    expect(link).to_have_value(re.compile(r"http://127\.0\.0\.1:\d+/#join=.+\.white\..{32}"), timeout=WAIT)
    expect(mine.locator("#invite-warning")).to_be_visible()  # another machine has another 127.0.0.1
    for script in ("", "delete Navigator.prototype.clipboard"):  # without encryption there is none
        mine.evaluate(script)
        mine.click("#invite-copy")
        expect(mine.locator("#toast")).to_have_text("Copied.")
        mine.locator("#toast").evaluate("toast => { toast.hidden = true; }")
        mine.evaluate("""() => {
            window.pasted = null;
            document.addEventListener("paste", ({ clipboardData }) => { pasted = clipboardData.getData("text"); }, { once: true });
        }""")
        mine.keyboard.press("Control+V")
        mine.wait_for_function("pasted !== null")
        assert mine.evaluate("pasted") == link.input_value()
    friend = open_page(PHONE, address=link.input_value().split("/", 3)[3])
    expect(friend.locator("#status")).to_contain_text("Waiting for black", timeout=WAIT)
    expect(mine.locator("#invite")).to_be_hidden(timeout=WAIT)
    my_turn(mine)
    mine.locator(".square.legal").first.click()
    my_turn(friend)
    friend.locator(".square.legal").first.click()
    my_turn(mine)
    assert moves(mine) == moves(friend)
    mine.click("#share")
    expect(link).to_have_value(re.compile(r"/#watch=.+\..{32}"))
    guest = open_page(address=link.input_value().split("/", 3)[3])
    expect(guest.locator("#moves button")).to_have_count(2)
    expect(guest.locator("#status")).to_contain_text("Waiting for black")
    expect(guest.locator("#undo, #resign, #rematch").locator("visible=true")).to_have_count(0)
    legal = mine.locator(".square.legal").first.get_attribute("data-square")
    guest.locator(f".square[data-square={legal}]").click()  # nothing comes of it
    guest.reload()
    expect(guest.locator("#moves button")).to_have_count(2)
    mine.click("#undo")
    friend.click("#grant")
    expect(mine.locator("#moves button")).to_have_count(0, timeout=WAIT)


def names_of_steps():
    """For every step of the guide, and for its end, what it prints in bold: the names of what is to be found on the page."""
    steps = re.split(r"^(?=\d\. |Your friend)", WALK.read_text(), flags=re.M)[1:]
    return [re.findall(r"\*\*(.+?)\*\*", step) for step in steps]


def picture(page, name):
    """Keep what the docs show, where REVERSI_PICTURES says."""
    if folder := os.environ.get("REVERSI_PICTURES"):
        shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
        shot.save(Path(folder) / f"{name}.webp", quality=80)


@pytest.fixture
def served(tmp_path):
    """The server as the guide starts it, but for its port and database: where it says that other machines find it."""
    [line] = re.findall("^reversi serve.*", WALK.read_text(), re.M)
    words = [*shlex.split(line)[1:], "--port", "0", "--workers", "0", "--database", tmp_path / "games"]
    with subprocess.Popen(
        [sys.executable, "-m", "play", *words],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            own, others = (next(server.stdout) for _ in range(2))
            yield re.search(r"http://\S+", others if "find it on" in others else own)[0]
        finally:
            server.terminate()


def test_a_newcomer_follows_the_guide(browser, served):
    """From the command that serves to a friend who reads a variation; all is found under the name that the guide has for it."""
    (strength, size, start), help, (review,), _, (comment,), (share, copy), (own,) = names_of_steps()
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce", permissions=["clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.goto(served)
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
    picture(page, "walk-review")
    played = page.locator("#moves button > :first-child").all_inner_texts()
    page.locator("#moves button").first.click()
    page.locator(f".square.legal:not([data-square={played[1]}])").first.click()
    expect(page.locator("#moves .variation button")).to_have_count(1)
    page.get_by_label(comment).fill("Would this have been better?")
    picture(page, "walk-variation")
    page.get_by_role("button", name=share, exact=True).click()
    expect(page.locator("#invite-link")).to_have_value(re.compile(f"^{re.escape(served)}/review/"))
    page.get_by_role("button", name=copy, exact=True).click()
    link, shown = (
        page.locator("#invite-link").input_value(),
        page.locator("#moves button > :first-child").all_inner_texts(),
    )

    friend = browser.new_context(viewport=PHONE).new_page()
    friend.goto(link)
    expect(friend.locator("#moves .variation .remark")).to_have_text("Would this have been better?")
    assert friend.locator("#moves button > :first-child").all_inner_texts() == shown
    page.get_by_role("button", name=own, exact=True).click()
    expect(page.locator("#library-list a")).to_have_count(2)  # the game and its review
    for one in (page, friend):
        one.context.close()


def test_a_dropped_connection_comes_back(open_page, server):
    page = open_page()
    choose(page, mode="here", size=4)
    page.click("#start")
    expect(page.locator("#status")).to_have_text("Black to move.", timeout=WAIT)
    room = max(server.hall.rooms.values(), key=lambda room: room.created)
    loop = server.hall.store._loop
    loop.call_soon_threadsafe(server.hall.drop, room, "put away by a test")
    eventually(lambda: (now := server.hall.rooms.get(room.id)) not in (None, room) and now.members, "the return")
    expect(page.locator("#status")).to_have_text("Black to move.", timeout=WAIT)
    page.locator(".square.legal").first.click()
    expect(page.locator("#status")).to_have_text("White to move.", timeout=WAIT)
    page.click("#undo")  # both sides sit here, so it needs nobody else
    expect(page.locator("#status")).to_have_text("Black to move.", timeout=WAIT)
    expect(page.locator("#moves button")).to_have_count(0)


def test_dark_and_light_on_all_screens(open_page):
    page = open_page(color_scheme="dark")
    theme = page.locator("html")
    expect(theme).to_have_attribute("data-theme", "dark")
    shuts_nobody_out(page)
    page.click("#nav-review")
    shuts_nobody_out(page)
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
        const { Chart } = await import("/chart.js");
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
    "en": ("en-GB", "Start", "1 disc", "2 discs", "Your turn.", "Nobody asked to take a move back."),
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


def test_puzzles_are_solved_refuted_counted_and_kept(open_page):
    from search.solver import solve_all_moves

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
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

    values = solve_all_moves(position)
    wrong = min(values, key=values.get)
    page.click(f".square[data-square={wrong}]")
    expect(verdict).to_contain_text(f"{wrong} gives away {puzzle['value'] - values[wrong]} discs")
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
    expect(verdict).to_contain_text(f"Right! {puzzle['move']} is worth")
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
    expect(verdict).to_contain_text("Right!")
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("#puzzle-reset")
    expect(streak).to_have_text("Streak: 0 (longest: 0)")


def test_games_against_levels_rate_the_player_unless_there_was_help(open_page):
    page = open_page()
    page.on("dialog", lambda dialog: dialog.accept())
    rated = page.locator("#rated")
    choose(page, agent="human", strength=2)
    page.click("#start")
    expect(rated).to_have_text("This game counts for your rating.")
    page.click("#resign")
    lost = rating_text([(RATINGS[2], 0)])
    expect(rated).to_have_text(f"Your rating: {lost} after 1 game.")
    page.reload()
    expect(rated).to_have_text(f"Your rating: {lost} after 1 game.")  # a game counts once
    page.click("#nav-new")
    expect(page.locator("#setup-standing")).to_contain_text(f"{lost} after 1 game. Level 2 is nearest to it.")
    page.click("#start")
    page.click("#hint")
    expect(rated).to_contain_text("does not count")
    page.click("#resign")
    expect(page.locator("#rematch")).to_be_visible()
    page.click("#nav-games")
    expect(page.locator("#standing")).to_contain_text(lost)
    page.click("#standing-reset")
    expect(page.locator("#standing")).to_be_hidden()

"""Own games on the page: lesson, balanced openings, pictures, spaced practice, results by opening."""

import json
import re
from io import BytesIO

import pytest
from PIL import Image

from reversi_env import Position, Rules
from reversi_env.notation import read_transcript

from .steps import (
    PHONE,
    check_accessibility,
    check_no_overflow,
    choose,
    confirm,
    expect,
    moves,
    my_turn,
    press_square,
    review,
    until,
)

pytestmark = pytest.mark.slow

DAY = 86_400_000


def test_the_rules_page_and_the_lesson(open_page):
    page = open_page({"width": 320, "height": 640})
    page.locator("#nav-help").press("Enter")
    expect(page.locator("#help-title")).to_be_focused()
    expect(page.locator("#help img")).to_have_count(3)
    assert page.locator("#help img").evaluate_all("images => images.every((image) => image.naturalWidth && image.alt)")
    expect(page.locator("#help figcaption").last).to_contain_text("Fewest discs win")
    check_no_overflow(page)
    check_accessibility(page)
    page.locator("#help-lesson").press("Enter")
    my_turn(page)
    lesson, status = page.locator("#lesson"), page.locator("#status")
    expect(lesson).to_contain_text("Click a marked square")
    check_accessibility(page)
    check_no_overflow(page)
    ended = re.compile(r"Your turn\.|win|draw")
    for step in range(12):
        if "Your turn" not in status.inner_text():
            break
        before = page.locator("#moves button").count()
        press_square(page, page.locator(".square.legal").first.get_attribute("data-square"), 4)
        expect(page.locator("#moves button").nth(before)).to_be_attached()
        expect(status).to_have_text(ended)
        if step == 0 and "Your turn" in status.inner_text() and "pass" not in moves(page):
            expect(lesson).to_contain_text("White has replied")
    expect(lesson).to_contain_text("The game is over")
    page.reload()
    expect(lesson).to_contain_text("The game is over")


def test_a_balanced_opening_is_played_once_with_each_colour(open_page):
    page = open_page(PHONE)
    choose(page, size=4)
    expect(page.locator("select[name=opening]")).to_be_disabled()
    choose(page, size=8, agent="greedy", opening="even")
    expect(page.locator("#opening-hint")).to_be_visible()
    check_accessibility(page)
    check_no_overflow(page)
    page.click("#start")
    my_turn(page)
    first = moves(page)
    Position.initial().play_all(first)  # legal
    assert len(first) == 8
    page.click("#undo")
    expect(page.locator("#toast")).to_have_text("There is no move to take back.")
    page.locator(".square.legal").first.click()
    expect(page.locator("#moves button").nth(9)).to_be_attached()
    my_turn(page)
    played = moves(page)
    page.click("#resign")
    confirm(page)
    expect(page.locator("#status")).to_contain_text("White wins")
    [entry] = json.loads(page.evaluate("localStorage['reversi.games']")).values()
    assert entry["moves"] == played  # used by the results by opening
    page.click("#rematch")
    expect(page.locator("#player-white .name")).to_have_text("You")
    my_turn(page)
    assert moves(page)[:8] == first
    page.click("#resign")
    confirm(page)
    page.click("#rematch")
    expect(page.locator("#player-black .name")).to_have_text("You")
    my_turn(page)
    assert len(moves(page)) == 8
    assert moves(page) != first


def download_from(page, button):
    with page.expect_download() as download:
        page.locator(button).press("Enter")
    return download.value.path().read_bytes()


def is_black(picture, name):
    """Return whether the middle of a square is dark, in a picture with squares of 40 pixels and a rim of 20, or twice that."""
    scale = picture.width / 360
    x, y = ("abcdefgh".index(name[0]), int(name[1]) - 1)
    return sum(picture.convert("RGB").getpixel((scale * (20 + 40 * x + 28), scale * (20 + 40 * y + 20)))) < 200


def test_positions_and_games_are_saved_as_pictures(open_page):
    page, played = open_page(), read_transcript("f5d6c3d3c4f4c5b3").moves
    review(page, "".join(played))
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.locator("#picture-png").evaluate("button => { button.closest('details').open = true; }")
    check_accessibility(page)
    positions = [Position.initial().play_all(played[:n]) for n in range(len(played) + 1)]
    svg = download_from(page, "#picture-svg").decode()
    assert svg.count('fill="#1d1f22"') == 4
    png = Image.open(BytesIO(download_from(page, "#picture-png")))
    gif = Image.open(BytesIO(download_from(page, "#picture-gif")))
    assert (png.size, gif.size, gif.n_frames) == ((720, 720), (360, 360), len(positions))
    pictures = [(png, positions[1])]
    for number, position in enumerate(positions):
        gif.seek(number)
        pictures.append((gif.copy(), position))
    for picture, position in pictures:
        for name, disc in zip(map(position.rules.name_of, range(64)), position.to_text(), strict=True):
            if disc != "-":
                assert is_black(picture, name) == (disc == "X"), name


def test_mistakes_return_as_puzzles_at_growing_intervals(open_page):
    """The review of a 4x4 game collects the player's third move, which loses and has one better move."""
    page = open_page(PHONE)
    start_board = {"board": Position.initial(Rules(4)).to_text(), "turn": "black"}
    document = {**start_board, "moves": [{"move": move} for move in ("b1", "a1", "c4", "d4", "d3", "a3")]}
    page.evaluate(
        "document => { localStorage['reversi.review.mine'] = JSON.stringify({ document, moves: 6, mine: 'black', at: 1 }); }",
        document,
    )
    page.goto(page.url.split("#")[0] + "#review=mine")
    expect(page.locator("#summary")).to_be_visible()

    def own():
        return json.loads(page.evaluate("localStorage['reversi.puzzles'] ?? '{}'")).get("own", [])

    until(page, own)
    count = len(own())
    page.click("#nav-games")
    practise = page.locator("#library-practise")
    expect(practise).to_have_text(f"Practise my errors ({count} of {count} due)")
    check_accessibility(page)
    for solved in range(1, 5):
        for number in range(count):
            (page.locator("#puzzle-next") if number else practise).press("Enter")
            expect(page.locator("#puzzle-tags")).to_have_text(f"solved {solved - 1} of 4 times")
            page.click(f".square[data-square={best_move_of_puzzle(page)}]")
            expect(page.locator("#puzzle-verdict")).to_contain_text("Correct!")
            expect(page.locator("#puzzle-tags")).to_have_text(f"solved {solved} of 4 times")
        page.click("#puzzle-next")
        words = "is due on" if solved < 4 else "solved all your errors"
        expect(page.locator("#puzzle-verdict")).to_contain_text(words)
        if solved == 4:
            break
        for wait, due in (({1: 1, 2: 3, 3: 7}[solved] - 0.5, 0), (1, count)):
            page.evaluate(
                """past => {
                    const stored = JSON.parse(localStorage['reversi.puzzles']);
                    for (const one of stored.own) one.at -= past;
                    localStorage['reversi.puzzles'] = JSON.stringify(stored);
                }""",
                wait * DAY,
            )
            page.click("#nav-games")
            expect(practise).to_have_text(f"Practise my errors ({due} of {count} due)")
    page.click("#nav-games")
    expect(practise).to_be_hidden()


def best_move_of_puzzle(page):
    return json.loads(page.evaluate("localStorage['reversi.puzzles']"))["current"]["move"]


def test_own_openings_show_results_and_values(open_page):
    page = open_page(PHONE)
    games = {}
    played = (("f5d6c3d3c4f4", "black", "black"), ("f5d6c3d3c4b3", "black", None), ("f5d6c3d3c4", "white", "black"))
    for number, (line, mine, winner) in enumerate(played):
        result = {"winner": winner, "ending": "played", "score": 2, "discs": {"black": 33, "white": 31}, "size": 8}
        moves = list(read_transcript(line).moves)
        games[f"g{number}"] = {"mode": "computer", "mine": mine, "tokens": {}, "moves": moves, "at": number + 1}
        games[f"g{number}"]["result"] = result | {"variant": "normal"}
    page.evaluate("games => { localStorage['reversi.games'] = JSON.stringify(games); }", games)
    page.click("#nav-games")
    rows = page.locator("#openings-list li")
    expect(rows.first).to_contain_text("as black")
    texts = rows.all_inner_texts()
    assert any("Tiger, as white" in text and "1 game, 0\N{NO-BREAK SPACE}%" in text for text in texts)
    assert sum(int(re.search(r"(\d+) game", text)[1]) for text in texts) == 3
    stood = re.compile(r"your evaluation [+−±]\d+\.\d")
    assert all(stood.search(text) for text in texts)
    assert any("book (value" in text for text in texts)
    check_accessibility(page)
    check_no_overflow(page)
    rows.filter(has_text="as white").locator("button").press("Enter")
    expect(page.locator("#game-title")).to_have_text("Review")
    assert moves_of(page) == list(read_transcript("f5d6c3d3c4").moves)


def moves_of(page):
    return page.locator("#moves button > :first-child").all_inner_texts()

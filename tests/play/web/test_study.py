"""Study on the page: analysis, reviews with variations, position setup, sharing, openings, puzzles."""

import json
import re
import struct

import pytest

from play.server.catalogue import sizes
from reversi_env import BLACK, WHITE, Position, Rules
from reversi_env.notation import read_ggf_game
from search.engine.solver import solve_all_moves
from tests.play.server.test_games import WTHOR

from .steps import (
    PHONE,
    call_module,
    check_accessibility,
    check_no_overflow,
    choose,
    confirm,
    expect,
    my_turn,
    play_moves,
    press_square,
    rating_text,
    review,
    save_screenshot,
    start,
    until,
)

pytestmark = pytest.mark.slow


def test_analysis_shows_values_line_and_chart(open_page):
    page = open_page()
    start(page, agent="greedy")
    play_moves(page, 2)
    page.click("#hint")
    expect(page.locator(".square.hint.legal")).to_have_count(1)
    page.locator(".switch").click()
    best = page.locator(".worth[data-grade=best]")
    expect(best.first).to_be_visible()  # all equally good moves are marked
    legal = page.locator(".square.legal").count()
    assert page.locator(".square.valued").count() == legal
    expect(page.locator("#line .verdict")).to_contain_text("searched")
    expect(page.locator("#bar")).to_be_visible()
    expect(page.locator("#chart .curve")).to_have_count(1)
    if legal > 1:  # hovering over another move shows its value and line
        page.locator(".square.legal:not(.best)").first.hover()
        expect(page.locator("#line .verdict")).to_contain_text("for black")
    page.reload()  # the switch is stored with this game
    expect(best.first).to_be_visible()
    check_accessibility(page)
    page.click("#nav-new")
    page.click("#start")
    my_turn(page)
    expect(page.locator("#analysis")).not_to_be_checked()


def test_reviews_of_6x6_are_exact_from_the_first_move(open_page):
    page = open_page()
    review(page, "c2 b2 b3", size=6)  # the second move loses 24 discs
    expect(page.locator("#summary")).to_contain_text("exact")
    expect(page.locator("#moves button").nth(1)).to_have_attribute("data-grade", "blunder")
    for key, lead in (
        ("Home", "White wins by 4 discs"),
        ("ArrowRight", "White wins by 4 discs"),
        ("ArrowRight", "Black wins by 20"),
    ):
        page.keyboard.press(key)
        expect(page.locator("#line .verdict")).to_contain_text(lead)
        expect(page.locator("#line .verdict")).to_contain_text("exact")


def test_the_perfect_opponent_plays_on_small_boards(open_page):
    page = open_page()
    choose(page, size=8)
    expect(page.locator("#agent option[value=perfect]")).to_be_disabled()
    for size in sizes("perfect"):
        page.click("#nav-new")
        start(page, size=size, agent="perfect")
        play_moves(page, 2)


def test_a_review_shows_exact_verdicts(open_page):
    """A 4x4 game of best moves except plies 5 and 6, which are worst moves."""
    position, text, losses = Position.initial(Rules(4)), [], []
    while not position.is_over():
        values = solve_all_moves(position)
        move = min(values, key=values.get) if len(text) in (4, 5) else max(values, key=values.get)
        losses.append(max(values.values()) - values[move])
        text.append(move)
        position = position.play(move)
    assert max(losses) >= 5
    page = open_page(PHONE)
    review(page, " ".join(move for move in text if move != "pass"), size=4)
    expect(page.locator("#summary")).to_be_visible()
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
    check_accessibility(page)
    play_and_delete_a_variation(page, text)

    counted = """async ({ blundersOf }) => {
        const { app } = await import(new URL("state.js", document.querySelector("script[type=module]").src));
        return ["black", "white"].map((mine) => blundersOf({ ...app.line, mine }).length);
    }"""
    mine = call_module(page, "study/puzzle.js", counted)
    assert mine == [1, 0]  # one of the two bad moves had a single best alternative
    page.click("#practise")
    expect(page.locator("#puzzle-kind option:checked")).to_have_text("My errors: 1 of 1 due")
    expect(page.locator(".square.legal")).to_have_count(4)
    page.click(".square[data-square=d3]")  # the move of the game
    expect(page.locator("#puzzle-verdict")).to_contain_text("−14 instead of −10")
    page.evaluate("scrollTo(0, 9999)")
    page.click("#puzzle-next")
    expect(page.locator(".square.legal")).to_have_count(4)
    expect(page.locator("#board")).to_be_in_viewport(ratio=1)
    page.click(".square[data-square=d4]")
    expect(page.locator("#puzzle-verdict")).to_contain_text("Correct! d4 is worth −10.")
    expect(page.locator("#puzzle-streak")).to_have_text("Streak: 1 (longest: 1)")
    expect(page.locator("#puzzle-rating")).to_contain_text("first answer")  # own errors do not change the rating


def test_clicks_work_while_verdicts_arrive(open_page):
    page, held = open_page(), []
    page.route("**/api/analyse", lambda route: held.append(route))
    review(page, "b1a1a2c1", size=4)
    move = page.locator("#moves button").nth(1)
    for left in (4, 3, 2, 1):
        until(page, lambda: held)
        move.hover()
        page.mouse.down()
        held.pop().continue_()
        expect(page.locator("#progress")).to_have_text(f"positions left: {left}")
        page.mouse.up()
        expect(move).to_have_attribute("aria-current", "true")
        page.keyboard.press("Home")
    page.unroute("**/api/analyse")


def play_and_delete_a_variation(page, text):
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    other = page.locator(f".square.legal:not([data-square={text[1]}])").first
    name = other.get_attribute("data-square")
    other.click()
    tried = page.locator("#moves .variation button > :first-child")
    expect(tried).to_have_text([name])
    expect(page.locator("#ply")).to_have_text("2 / 2")
    expect(page.locator("#line .pv button").nth(1)).to_be_visible()  # moves of the expected line can be played
    line = page.locator("#line .pv button").all_inner_texts()
    page.locator("#line .pv button").nth(1).press("Enter")
    expect(page.locator("#game :focus")).to_have_count(1)  # although the line is redrawn
    assert [move for move in tried.all_inner_texts() if move != "pass"] == [name, *line[:2]]
    current = page.locator("#moves [aria-current=true] > :first-child")
    tried.first.click()
    expect(current).to_have_text(name)  # the expected line may contain the move of the game
    page.keyboard.press("ArrowUp")  # to the alternative move of the game, and back
    expect(current).to_have_text(text[1])
    page.keyboard.press("ArrowDown")
    expect(current).to_have_text(name)
    is_long = tried.count() > 3
    page.click("#remove")
    if is_long:
        confirm(page)
    expect(page.locator("#moves .variation")).to_have_count(0)
    check_no_overflow(page)


OBF = "-----OX--XO----- X; % the start\nOX--OXX-OOX--XXX O; C1:+6;"
GAMES = (
    "(;GM[Othello]PB[Ann]PW[Bob]TY[4]BO[4 ---- -O*- -*O- ---- *]B[b1]W[a1];)"
    "(;GM[Othello]PB[Cid]PW[Dan]TY[4]BO[4 ---- -O*- -*O- ---- *]B[b1]W[c1];)"
)


def test_a_position_is_set_up_studied_and_shared(open_page, tmp_path):
    """From the board, pasted text and a file to a shared review with a variation; reload and Back lose nothing."""
    page = open_page()
    page.click("#nav-review")
    page.check("input[name=rsize][value='4']", force=True)
    corner = page.locator("[data-square=a1]")
    for what in ("black", "white", "empty", "black"):
        corner.press("Enter")  # works by keyboard
        expect(corner).to_have_attribute("aria-label", f"a1, {what}")
    page.fill("#transcript", OBF)
    page.reload()
    expect(corner).to_have_attribute("aria-label", "a1, black")
    page.click("#loader button[type=submit]")
    page.locator("#choice-list button").nth(1).click()
    expect(page.locator("#status")).to_have_text("White to move.")
    expect(page.locator("#moves .remark")).to_have_text("c1:+6")
    expect(page.locator(".worth[data-grade=best]").first).to_be_visible()
    expect(page.locator("#summary")).to_be_hidden()  # there are no moves to judge
    page.go_back()
    expect(page.locator("#choice-list button")).to_have_count(2)
    check_accessibility(page)
    corner.press("Enter")  # the last change decides
    expect(page.locator("#transcript")).to_have_value("")
    page.fill("#transcript", 500 * GAMES)  # more than the text field may have
    page.click("#loader button[type=submit]")
    expect(page.locator("#choice-title")).to_have_text("Games 1 to 500")

    names = (
        struct.pack("<4BIHH4B", 20, 26, 1, 1, 0, 13, 0, 0, 0, 0, 0)
        + 12 * bytes(20)
        + "Zoé".encode("latin-1").ljust(20, b"\0")
    )
    files = (("WTHOR.JOU", names), ("WTH_1999.wtb", WTHOR))
    page.set_input_files("#file", [{"name": name, "mimeType": "", "buffer": data} for name, data in files])
    expect(page.locator("#choice-list .name")).to_have_text(["Zoé – #13"] * 2)
    expect(page.locator("#choice-list .note").first).to_contain_text(re.compile("black [+−]"))
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
    friend.locator(".square.legal[data-square=a3]").click()  # a variation makes an own copy of the review
    expect(friend).to_have_url(re.compile("/#review="))
    expect(shown).to_have_text(["b1", "a1", "c1", "a3"])
    expect(friend.locator("#moves [aria-current=true] > :first-child")).to_have_text("a3")
    friend.go_back()
    expect(shown).to_have_text(["b1", "a1", "c1"])
    check_no_overflow(friend)

    with page.expect_download() as saved:
        page.click("#save")
    game = read_ggf_game(saved.value.path().read_text())
    assert (game.black, game.moves, game.tags["C"]) == ("Cid", ("b1", "a1"), "2. a1: or [this]")
    with page.expect_download() as saved:
        page.click("#save-json")
    saved.value.save_as(tmp_path / "review.json")
    page.click("#nav-games")
    expect(page.locator("#library-list a")).to_have_count(2)
    page.get_by_role("button", name="Remove Review of Cid").click()
    expect(page.locator("#library-list a")).to_have_count(1)
    page.click("#nav-review")
    page.set_input_files("#file", tmp_path / "review.json")
    expect(page.locator("#moves button > :first-child")).to_have_text(["b1", "a1", "c1"])


def test_a_shared_review_shows_its_stored_verdicts(open_page, server):
    page = open_page()
    review(page, "b1 c1 d1 a3 a4 a1 a2", size=4)
    summary = page.locator("#summary")
    expect(summary).to_contain_text("accuracy")
    page.reload()  # the analysis is stored
    expect(summary).to_contain_text("accuracy")
    page.click("#share")
    link = page.locator("#invite-link")
    expect(link).to_have_value(re.compile("/review/"))
    friend, requests = open_page(PHONE), []
    friend.route("**/api/analyse", lambda route: (requests.append(route), route.continue_()))
    friend.goto(link.input_value())
    expect(friend.locator("#summary")).to_have_text(summary.inner_text().replace("\n", ""))
    expect(friend.locator(".worth[data-grade=best]").first).to_be_visible()
    expect(friend.locator("#go-on, #progress").locator("visible=true")).to_have_count(0)
    assert not requests
    old = server.call(
        "POST", "/api/reviews", json={"board": 5 * "-" + "OX--XO" + 5 * "-", "turn": "black", "moves": [{"move": "b1"}]}
    )
    friend.goto(f"{server.url}/review/{old.json()['review']}")
    expect(friend.locator("#line")).to_contain_text("No evaluation yet.")
    check_accessibility(friend)
    assert not requests
    friend.locator("#go-on").press("Enter")
    expect(friend.locator("#summary")).to_contain_text("accuracy")
    assert requests


def test_openings_are_named_and_the_winner_gets_empties(open_page, server):
    page = open_page()
    start(page, agent="network", strength=4, colour="white", size=8)
    my_turn(page)
    expect(page.locator("#player-black .note")).to_contain_text("6 moves ahead")
    room = max(server.hall.rooms.values(), key=lambda room: room.created)
    assert room._row.black.agent == "network:depth=6,book=yes,variety=1"
    review(page, "f5d6c5f4e7f6g5e6e3")  # white has no discs, so empty squares count for black
    page.keyboard.press("Home")
    expect(page.locator("#opening")).to_be_hidden()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    for words in (r"^Perpendicular Opening", r"book .*: c3 .* \(\d+\), c4 ", r"recorded games .*: c3 1 .*, c4 1 "):
        expect(page.locator("#opening")).to_have_text(re.compile(words))
    page.keyboard.press("End")
    expect(page.locator("#status")).to_contain_text("64–\N{WJ}0, the larger number includes 51 empty squares.")
    drawn = {"winner": None, "score": 0, "discs": {"black": 30, "white": 30}, "size": 8, "variant": "normal"}
    text = call_module(page, "page/words.js", "({ resultText }, drawn) => resultText(drawn)", drawn)
    assert text == "A draw, 30–\N{WJ}30."


def test_fast_stepping_requests_only_the_last_opening(open_page):
    page, held = open_page(), []
    page.route("**/api/openings", lambda route: held.append(route))  # like a busy server
    review(page, "f5d6c3d3c4")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    until(page, lambda: len(held) == 1)
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#ply")).to_have_text("5 / 5")
    held[0].continue_()
    until(page, lambda: len(held) == 2)
    requested = [route.request.post_data_json["moves"] for route in held]
    assert requested == [["f5"], ["f5", "d6", "c3", "d3", "c4"]]
    held[1].continue_()
    expect(page.locator("#opening")).to_contain_text("Tiger")


def test_puzzles_are_solved_refuted_counted_and_stored(open_page):
    def current_puzzle():
        known = json.loads(page.evaluate("localStorage['reversi.puzzles']"))
        return known["current"], Position.from_text(
            known["current"]["board"], BLACK if known["current"]["turn"] == "black" else WHITE
        )

    page = open_page(PHONE, "#puzzles")
    verdict, streak = page.locator("#puzzle-verdict"), page.locator("#puzzle-streak")
    expect(verdict).to_contain_text("to move: find the best move.")
    puzzle, position = current_puzzle()
    page.reload()  # the same puzzle stays
    expect(page.locator(".square.legal")).to_have_count(len(position.legal_moves()))
    assert current_puzzle()[0] == puzzle
    check_no_overflow(page)

    values = solve_all_moves(position)
    wrong = min(values, key=values.get)
    page.click(f".square[data-square={wrong}]")
    expect(verdict).to_contain_text(f"{wrong} loses {puzzle['value'] - values[wrong]} discs")
    expect(page.locator("#status")).to_contain_text(re.compile("wins|draw"))  # the line continues to the end
    expect(page.locator("#live")).to_contain_text("instead of")
    expect(streak).to_have_text("Streak: 0 (longest: 0)")
    expect(page.locator("#puzzle-rating")).to_contain_text(rating_text([(puzzle["rating"], 0)]))
    expect(page.locator("#puzzle-line button").first).to_have_text(wrong)
    save_screenshot(page, "puzzle")
    check_accessibility(page)

    page.click("#puzzle-again")
    expect(page.locator(".square.legal")).to_have_count(len(values))
    press_square(page, puzzle["move"], 8)
    expect(verdict).to_contain_text(f"Correct! {puzzle['move']} is worth")
    expect(streak).to_have_text("Streak: 0 (longest: 0)")  # only the first answer counts
    expect(page.locator(":focus")).to_have_text("Next puzzle")
    page.keyboard.press("Enter")
    expect(verdict).to_contain_text("find the best move")
    second, _ = current_puzzle()
    assert second["number"] != puzzle["number"]
    press_square(page, second["move"], 8)
    expect(streak).to_have_text("Streak: 1 (longest: 1)")
    expect(page.locator("#puzzle-rating")).to_contain_text(rating_text([(puzzle["rating"], 0), (second["rating"], 1)]))
    page.click("#puzzle-study")
    expect(page.locator("#game-title")).to_have_text("Review")
    page.go_back()
    expect(verdict).to_contain_text("Correct!")
    page.click("#puzzle-reset")
    confirm(page)
    expect(streak).to_have_text("Streak: 0 (longest: 0)")

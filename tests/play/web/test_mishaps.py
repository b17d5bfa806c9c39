"""The page when something goes wrong on the way: broken links, requests that fail or are slow, words that come late."""

import re

import pytest

from .steps import WAIT, choose, expect, my_turn, play_some, until

pytestmark = pytest.mark.slow


def invitation(page):
    """The link to the other seat of a new game between friends, without the server's name."""
    choose(page, mode="friend", size=4)
    page.click("#start")
    link = page.locator("#invite-link")
    expect(link).to_have_value(re.compile("/#join=.+"), timeout=WAIT)
    return link.input_value().split("/", 3)[3]


def review(page, moves, comment=""):
    page.click("#nav-review")
    page.fill("#transcript", moves)
    page.click("#loader button[type=submit]")
    page.wait_for_url(re.compile("#review=."))
    if comment:
        page.locator("#comment").press_sequentially(comment)


def test_a_link_with_something_wrong_does_not_shut_its_seat(open_page):
    mine = open_page()
    link = invitation(mine)
    friend = open_page(address=link[:-1] + ("x" if link[-1] != "x" else "y"))
    expect(friend.locator("#status")).to_have_text("This game no longer exists on the server.")
    friend.click("#nav-games")
    expect(friend.locator("#library-list a")).to_have_count(0)
    friend.evaluate("address => { location.hash = address; }", link + ").")  # as messengers write it
    expect(friend.locator("#status")).to_have_text("Waiting for black …")
    expect(mine.locator("#status")).to_have_text("Your turn.")


def test_a_link_for_spectators_does_not_take_the_place_of_the_friends(open_page):
    mine = open_page()
    link = invitation(mine)
    mine.click("#share")
    expect(mine.locator("#toast")).to_have_text("Copied.")
    expect(mine.locator("#invite-link")).to_have_value(re.compile(re.escape(link)))
    friend = open_page(address=link)
    expect(friend.locator("#status")).to_have_text("Waiting for black …")
    expect(mine.locator("#invite-link")).to_have_value(re.compile("/#watch="))


def test_who_asks_to_take_back_is_told_of_a_refusal_and_who_grants_it_is_not_told_to_wait(open_page):
    mine = open_page()
    friend = open_page(address=invitation(mine))
    mine.locator(".square.legal").first.click()
    expect(friend.locator("#status")).to_have_text("Your turn.")
    mine.click("#undo")
    expect(mine.locator("#toast")).to_have_text("Waiting for your opponent to agree.")
    friend.click("#refuse")
    expect(mine.locator("#toast")).to_have_text("Your opponent declined.")
    mine.click("#undo")
    expect(friend.locator("#ask")).to_be_visible()
    expect(friend.locator("#live")).to_contain_text("Your opponent asks to take back a move.")
    friend.click("#undo")
    expect(mine.locator("#moves button")).to_have_count(0)
    expect(friend.locator("#toast")).not_to_have_text(
        "Waiting for your opponent to agree."
    )  # which would stay when it is hidden


def test_a_comment_belongs_to_the_position_that_is_shown(open_page):
    page = open_page()
    comment = page.locator("#comment")
    review(page, "f5", "first")
    review(page, "f5d6", "second")
    page.evaluate("history.go(-2)")
    expect(comment).to_have_value("first")
    comment.press("End")
    comment.press("!")
    page.reload()
    expect(comment).to_have_value("first!")


def test_what_is_written_while_a_review_is_sent_goes_along(open_page):
    page, sent = open_page(), []

    def hold(route):
        sent.append(route.request.post_data_json["comment"])
        if len(sent) == 1:  # the answer comes after the words
            page.locator("#comment").press_sequentially(" two")
        route.continue_()

    page.route("**/api/reviews", hold)
    review(page, "f5", "one")
    page.click("#share")
    expect(page.locator("#toast")).to_have_text("Copied.")
    assert sent == ["one", "one two"]


@pytest.mark.parametrize(
    ("outage", "said"),
    [
        (lambda route: route.abort(), "The server is not responding."),
        (
            lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"),
            "The server rejected the request.",
        ),  # a proxy's
    ],
)
def test_analysis_goes_on_after_an_outage(open_page, outage, said):
    page = open_page(mishaps="/api/analyse")
    page.route("**/api/analyse", outage)
    review(page, "f5f6")
    expect(page.locator("#progress")).to_contain_text(said)
    page.unroute("**/api/analyse")
    expect(page.locator("#progress")).to_be_hidden()


def test_a_review_that_comes_late_does_not_take_the_page(open_page):
    page = open_page()
    review(page, "f5", "theirs")
    page.click("#share")
    expect(page.locator("#invite-link")).to_have_value(re.compile("/review/"))
    address, held = page.locator("#invite-link").input_value(), []
    page.route("**/api/reviews/*", lambda route: held.append(route))
    page.goto(address)
    until(page, lambda: held)
    page.click("#nav-games")
    with page.expect_response("**/api/reviews/*"):
        held[0].continue_()
    page.evaluate("fetch('/api/health').then((answer) => answer.json())")  # after which the other answer was read, too
    expect(page.locator("#library")).to_be_visible()
    expect(page.locator("#game")).to_be_hidden()


def test_the_form_comes_with_the_next_try(open_page):
    page = open_page(mishaps="/api/agents", address="#games")
    page.route("**/api/agents", lambda route: route.abort())
    page.reload()
    expect(page.locator("#toast")).to_have_text("The server is not responding.")
    page.unroute("**/api/agents")
    page.click("#nav-new")
    expect(page.locator("#agent option").first).to_be_attached()
    page.click("#start")
    expect(page.locator("#status")).to_contain_text(re.compile("Your turn|thinking"))


def test_puzzles_can_be_asked_for_again(open_page):
    page = open_page(mishaps="/api/puzzles")
    verdict = page.locator("#puzzle-verdict")
    page.route("**/api/puzzles", lambda route: route.abort())
    page.goto(page.url + "#puzzles")
    page.reload()
    expect(verdict).to_have_text("The server is not responding.")
    page.unroute("**/api/puzzles")
    page.click("#puzzle-next")
    expect(verdict).to_contain_text("to move: find the best move.")
    page.route("**/api/puzzles", lambda route: route.abort())
    page.select_option("#puzzle-kind", "6-reversed")
    expect(verdict).to_have_text("The server is not responding.")
    expect(page.locator("#puzzle-solve")).to_be_hidden()


def test_a_game_that_is_paused_says_so(open_page):
    page = open_page()
    choose(page, mode="watch", agent="greedy", agent2="random", size=4)
    page.evaluate("document.getElementById('speed').value = 2000")
    page.click("#start")
    page.click("#pause")
    expect(page.locator("#status")).to_have_text("Paused.")
    page.click("#pause")
    expect(page.locator("#status")).not_to_have_text("Paused.")


def test_a_connection_that_has_fallen_silent_is_made_anew(open_page):
    page, sockets, silent = open_page(), [], []

    def attend(socket):
        server = socket.connect_to_server()
        socket.on_message(lambda message: socket in silent or server.send(message))
        server.on_message(lambda message: socket in silent or socket.send(message))
        sockets.append(socket)

    page.route_web_socket(re.compile("/socket$"), attend)
    page.clock.install()
    page.reload()
    choose(page, agent="greedy", size=4)
    page.click("#start")
    for ask in (page.locator(".square.legal").first.click, lambda: page.clock.fast_forward(20_000)):
        my_turn(page)
        silent[:] = sockets  # as when a computer comes into another network: nobody says goodbye
        ask()
        page.clock.fast_forward(10_000)
        until(page, lambda: len(sockets) > len(silent))
    my_turn(page)
    play_some(page, 1)

"""The page with broken links, failed or slow requests, and late answers."""

import re

import pytest

from .steps import expect, my_turn, play_moves, review, start, until

pytestmark = pytest.mark.slow


def invitation(page):
    """Return the link to the other seat of a new game between friends, without the server name."""
    start(page, mode="friend", size=4)
    link = page.locator("#invite-link")
    expect(link).to_have_value(re.compile("/#join=.+"))
    return link.input_value().split("/", 3)[3]


def test_a_damaged_link_does_not_block_its_seat(open_page):
    mine = open_page()
    link = invitation(mine)
    mine.click("#share")  # the link for spectators does not replace the friend's link
    expect(mine.locator("#toast")).to_have_text("Copied.")
    expect(mine.locator("#invite-link")).to_have_value(re.compile(re.escape(link)))
    friend = open_page(address=link[:-1] + ("x" if link[-1] != "x" else "y"))
    expect(friend.locator("#status")).to_contain_text("no longer exists")
    friend.click("#nav-games")
    expect(friend.locator("#library-list a")).to_have_count(0)
    friend.evaluate("address => { location.hash = address; }", link + ").")  # messengers add such characters
    expect(friend.locator("#status")).to_have_text("Waiting for black …")
    my_turn(mine)
    expect(mine.locator("#invite-link")).to_have_value(re.compile("/#watch="))


def test_comments_belong_to_the_shown_position(open_page):
    page = open_page()
    comment = page.locator("#comment")
    for moves, words in (("f5", "first"), ("f5d6", "second")):
        review(page, moves)
        comment.press_sequentially(words)
    page.evaluate("history.go(-2)")
    expect(comment).to_have_value("first")
    comment.press("End")
    comment.press("!")
    page.reload()
    expect(comment).to_have_value("first!")


def test_text_typed_while_a_review_is_sent_is_included(open_page):
    page, sent = open_page(), []

    def hold(route):
        sent.append(route.request.post_data_json["comment"])
        if len(sent) == 1:  # types while the request is held
            page.locator("#comment").press_sequentially(" two")
        route.continue_()

    page.route("**/api/reviews", hold)
    review(page, "f5")
    page.locator("#comment").press_sequentially("one")
    page.click("#share")
    expect(page.locator("#toast")).to_have_text("Copied.")
    assert sent == ["one", "one two"]


@pytest.mark.parametrize("answer", [None, {"status": 502, "body": "<h1>Bad Gateway</h1>"}])
def test_analysis_continues_after_an_outage(open_page, answer):
    page = open_page(may_fail="/api/analyse")
    page.route("**/api/analyse", lambda route: route.fulfill(**answer) if answer else route.abort())
    review(page, "f5f6")
    expect(page.locator("#progress")).to_contain_text("The server")
    page.unroute("**/api/analyse")
    expect(page.locator("#progress")).to_be_hidden()


def test_a_late_review_does_not_replace_the_page(open_page):
    page = open_page()
    review(page, "f5")
    page.click("#share")
    expect(page.locator("#invite-link")).to_have_value(re.compile("/review/"))
    address, held = page.locator("#invite-link").input_value(), []
    page.route("**/api/reviews/*", lambda route: held.append(route))
    page.goto(address)
    until(page, lambda: held)
    page.click("#nav-games")
    with page.expect_response("**/api/reviews/*"):
        held[0].continue_()
    page.evaluate("fetch('/api/health').then((answer) => answer.json())")  # the other answer was read before this one
    expect(page.locator("#library")).to_be_visible()
    expect(page.locator("#game")).to_be_hidden()


@pytest.mark.parametrize(
    ("path", "address", "message", "retry", "result"),
    [
        ("/api/agents", "#games", "#toast", "#nav-new", "#agent option"),
        ("/api/puzzles", "#puzzles", "#puzzle-verdict", "#puzzle-next", ".square.legal"),
    ],
)
def test_failed_requests_succeed_on_retry(open_page, path, address, message, retry, result):
    page = open_page(may_fail=path)
    page.route(f"**{path}", lambda route: route.abort())
    # The address changes before the reload, so that no stored puzzle is shown.
    page.evaluate("(address) => { location.hash = address }", address)
    page.reload()
    expect(page.locator(message)).to_have_text("The server is not responding.")
    expect(page.locator("#puzzle-solve")).to_be_hidden()
    page.unroute(f"**{path}")
    page.click(retry)
    expect(page.locator(result).first).to_be_attached()


def test_a_silent_connection_is_replaced(open_page):
    page, sockets, silent = open_page(), [], []

    def attend(socket):
        server = socket.connect_to_server()
        socket.on_message(lambda message: socket in silent or server.send(message))
        server.on_message(lambda message: socket in silent or socket.send(message))
        sockets.append(socket)

    page.route_web_socket(re.compile("/socket$"), attend)
    page.clock.install()
    page.reload()
    start(page, agent="greedy", size=4)
    for ask in (page.locator(".square.legal").first.click, lambda: page.clock.fast_forward(20_000)):
        my_turn(page)
        silent[:] = sockets  # as after a change of network: no close frame
        ask()
        page.clock.fast_forward(10_000)
        until(page, lambda: len(sockets) > len(silent))
    my_turn(page)
    play_moves(page, 1)

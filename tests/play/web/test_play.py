"""Playing on the page: games, undo, watching, friends, the player's rating."""

import re

import pytest

from models.human import RATINGS
from reversi_env import BLACK, WHITE, Position, Rules
from search.engine.solver import solve_all_moves
from tests.play.server.conftest import eventually
from tests.play.server.test_clocks import in_loop
from train.evaluation.review import VERDICT_THRESHOLDS

from .steps import (
    PHONE,
    call_module,
    check_accessibility,
    check_no_overflow,
    choose,
    confirm,
    expect,
    moves,
    my_turn,
    play_moves,
    rating_text,
    start,
)

pytestmark = pytest.mark.slow


def test_a_game_with_undo_reload_and_another_variant(open_page, server):
    page = open_page()
    start(page, agent="six-factor", strength=0)
    play_moves(page, 10)
    played = moves(page)
    assert len(played) >= 20
    board = page.locator("#board svg")
    discs = sum(map(int, page.locator(".player .count").all_inner_texts()))
    assert discs == 4 + len([move for move in played if move != "pass"])

    page.click("#undo")
    expect(page.locator("#moves button")).to_have_count(len(played) - 2)
    my_turn(page)

    page.reload()
    my_turn(page)
    expect(page.locator("#moves button")).to_have_count(len(played) - 2)
    assert moves(page) == played[:-2]
    play_moves(page, 1)

    page.click("#nav-new")
    choose(page, variant="reversed", size=6, colour="white", agent="greedy")
    expect(board.locator(".square")).to_have_count(36)  # shown at once
    page.click("#start")
    my_turn(page)
    assert len(moves(page)) == 1  # the agent has black
    games = [room for room in server.hall.rooms.values() if room.game.rules.variant == "reversed"]
    assert len(games) == 1

    page.click("#resign")
    confirm(page)
    expect(page.locator("#status")).to_contain_text("Black wins")
    expect(page.locator("#undo")).to_be_hidden()
    old = re.sub(r'"at":\d+', '"at":1', page.evaluate("localStorage['reversi.games']"))
    page.evaluate("games => { localStorage['reversi.games'] = games; }", old)
    page.reload()
    expect(page.locator("#status")).to_contain_text("Black wins")
    assert page.evaluate("localStorage['reversi.games']") == old  # viewing does not change its time
    page.click("#rematch")  # with colours exchanged
    my_turn(page)
    expect(page.locator("#player-black .name")).to_have_text("You")
    expect(page.locator("#tags")).to_have_text("6×6 · fewest discs win")


def test_every_disc_makes_a_sound_unless_it_is_off(open_page):
    page = open_page(reduced_motion="no-preference")
    page.evaluate("() => { window.knocks = 0; AudioBufferSourceNode.prototype.start = () => { knocks++; }; }")
    start(page, agent="greedy", size=6)
    play_moves(page, 2)
    assert page.evaluate("knocks") == 4
    page.click("#sound")
    play_moves(page, 1)
    assert page.evaluate("knocks") == 4
    page.reload()
    expect(page.locator("#sound")).to_have_attribute("aria-pressed", "false")


def test_watching_two_agents_to_the_end(open_page, server):
    page, known = open_page(PHONE), set(server.hall.rooms)
    choose(page, mode="watch", agent="human", strength=9, agent2="random", size=4)
    expect(page.locator("#strength-text")).to_have_text("10 · Full strength")
    expect(page.locator("#agent2-about")).to_have_text("any legal move")
    page.fill("#strength", "0")
    expect(page.locator("select[name=clock]")).to_be_hidden()  # games of agents have no clock
    page.evaluate("document.getElementById('speed').value = 2000")
    page.click("#start")
    page.click("#pause")
    (room,) = [room for name, room in server.hall.rooms.items() if name not in known]
    eventually(room.game.is_over, "the end of the game")
    expect(page.locator("#status")).to_have_text("Paused.")
    assert len(moves(page)) < len(room.game.moves)  # the game is over, but the page is paused
    page.select_option("#speed", "Fast")
    page.click("#pause")
    expect(page.locator("#status")).to_contain_text(re.compile("win|draw"))
    expect(page.locator("#undo")).to_be_hidden()
    expect(page.locator("#watching")).to_be_hidden()
    check_no_overflow(page)


def test_a_friend_joins_by_link(open_page):
    mine = open_page()
    start(mine, mode="friend", size=4)
    expect(mine.locator("#analysis")).to_be_hidden()
    link = mine.locator("#invite-link")
    expect(link).to_have_value(re.compile(r"http://127\.0\.0\.1:\d+/#join=.+\.white\..{32}"))
    expect(mine.locator("#invite-warning")).to_be_visible()  # the link works only on this machine
    for script in ("", "delete Navigator.prototype.clipboard"):  # absent without HTTPS
        mine.evaluate(script)
        mine.click("#invite-copy")
        expect(mine.locator("#toast")).to_have_text("Copied.")
        expect(mine.locator(":focus")).to_have_id("invite-copy")
        mine.locator("#toast").evaluate("toast => { toast.hidden = true; }")
        mine.evaluate("""() => {
            window.pasted = null;
            document.addEventListener("paste", ({ clipboardData }) => { pasted = clipboardData.getData("text"); }, { once: true });
        }""")
        mine.keyboard.press("Control+V")
        mine.wait_for_function("pasted !== null")
        assert mine.evaluate("pasted") == link.input_value()
    friend = open_page(PHONE, address=link.input_value().split("/", 3)[3])
    expect(friend.locator("#status")).to_contain_text("Waiting for black")
    expect(mine.locator("#invite")).to_be_hidden()
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
    expect(guest.locator("#undo, #resign, #rematch").locator("visible=true")).to_have_count(0)
    legal = mine.locator(".square.legal").first.get_attribute("data-square")
    guest.locator(f".square[data-square={legal}]").click()  # has no effect
    guest.reload()
    expect(guest.locator("#moves button")).to_have_count(2)
    for answer, count in (("#refuse", 2), ("#grant", 0)):
        mine.click("#undo")
        expect(mine.locator("#toast")).to_contain_text("Waiting")
        friend.click(answer)
        expect(friend.locator("#ask")).to_be_hidden()
        expect(mine.locator("#moves button")).to_have_count(count)
    mine.locator(".square.legal").first.click()
    my_turn(friend)
    mine.click("#undo")
    expect(friend.locator("#live")).to_contain_text("Your opponent asks")
    friend.click("#undo")  # agrees to the request
    expect(mine.locator("#moves button")).to_have_count(0)
    expect(friend.locator("#toast")).not_to_contain_text("Waiting")


def test_a_link_seats_one_person_and_rematches_are_accepted(open_page):
    mine = open_page()
    start(mine, mode="friend", size=4)
    link = mine.locator("#invite-link")
    expect(link).to_have_value(re.compile("/#join="))
    address = link.input_value().split("/", 3)[3]
    friend = open_page(PHONE, address=address)
    expect(friend.locator("#player-white .name")).to_have_text("You")
    third = open_page(address=address)
    expect(third.locator("#toast")).to_contain_text("taken this seat")
    friend.reload()
    third.reload()
    for page, name in ((friend, "You"), (third, "White")):
        expect(page.locator("#status")).to_have_text("Waiting for black …")
        expect(page.locator("#player-white .name")).to_have_text(name)
    expect(third.locator("#player-white .note")).to_have_text("")  # the name is not repeated
    mine.click("#resign")
    confirm(mine)
    for page, title in ((mine, "You lost"), (friend, "You won"), (third, "White won")):
        expect(page.locator("#game-title")).to_have_text(title)
    expect(third.locator("#rematch")).to_be_hidden()
    mine.locator("#rematch").press("Enter")
    expect(mine.locator("#player-white .name")).to_have_text("You")
    expect(mine.locator("#status")).to_have_text("Waiting for black to connect …")
    expect(friend.locator("#offer")).to_be_visible()
    expect(friend.locator("#live")).to_contain_text("wants a rematch")
    check_accessibility(friend)
    friend.locator("#rematch").press("Enter")
    my_turn(friend)
    friend.locator(".square.legal").first.press("Enter")
    my_turn(mine)
    third.click("#rematch")
    expect(third.locator("#moves button")).to_have_count(1)


def test_the_end_shows_accuracy_and_a_way_back_to_the_game(open_page):
    page = open_page(PHONE)
    start(page, agent="greedy", size=4)
    my_turn(page)
    while "Your turn." in page.locator("#status").inner_text():
        before = page.locator("#moves button").count()
        page.locator(".square.legal").first.click()
        expect(page.locator("#moves button").nth(before)).to_be_attached()
        expect(page.locator("#status")).to_have_text(re.compile(r"Your turn\.|win|draw"))
    expect(page.locator("#game-title")).to_have_text(re.compile("^(You won|You lost|Draw)$"))
    position, losses = Position.initial(Rules(4)), {BLACK: [], WHITE: []}
    for move in moves(page):
        if len(position.legal_moves()) > 1:
            values = solve_all_moves(position)
            losses[position.turn].append(max(values.values()) - values[move])
        position = position.play(move)
    texts = [
        f"{colour}: {accuracy(lost)} % accuracy, {sum(lost) / len(lost):.1f} discs lost per move"
        for colour, lost in zip(("Black", "White"), losses.values(), strict=True)
    ]
    expect(page.locator("#accuracy span")).to_have_text(texts)
    check_accessibility(page)
    page.click("#previous")
    expect(page.locator("#return")).to_have_text(
        f"Move {len(moves(page)) - 1} of {len(moves(page))} – back to the game"
    )
    check_accessibility(page)
    page.reload()
    expect(page.locator("#return")).to_be_hidden()
    page.click("#first")
    page.locator("#return").press("Enter")
    expect(page.locator("#last")).to_be_disabled()
    page.click("#review")
    for text in texts:
        expect(page.locator("#summary")).to_contain_text(text)
    page.click("#nav-games")
    expect(page.locator("#library-list .name").first).to_have_text("Review of You – Greedy")


ENDS = (
    ("reversed", "white", "played", 40, {"black": 10, "white": 45}),
    ("reversed", "black", "timeout", -64, {"black": 30, "white": 29}),
    ("normal", "white", "resigned", -64, {"black": 30, "white": 29}),
    ("normal", None, "played", 0, {"black": 30, "white": 30}),
)


def test_review_button_is_visible_on_phones_after_every_ending(open_page):
    """Uses the longest texts in every language, with a changed rating and an offered rematch."""
    page = open_page(PHONE)
    start(page, agent="human", strength=2)
    for button in ("#resign", "#rematch", "#resign"):
        page.click(button)
        if button == "#resign":
            confirm(page)
    expect(page.locator("#rated")).to_contain_text("Change: ")
    for variant, winner, ending, score, discs in ENDS:
        state = {
            "variant": variant,
            "discs": discs,
            "result": {"winner": winner, "ending": ending, "score": score},
            "rematch": "another",
        }
        end = "({ app }, state) => { Object.assign(app.game.state, state); app.line.variant = state.variant; }"
        call_module(page, "page/state.js", end, state)
        for language in ("fr", "ja", "zh-Hans", "en"):
            page.select_option("#language", language)  # redraws everything
            expect(page.locator("html")).to_have_attribute("lang", language)
            for size in (PHONE, {"width": 844, "height": 390}, {"width": 320, "height": 640}):
                page.set_viewport_size(size)
                for button in ("#review", "#rematch"):
                    expect(page.locator(button)).to_be_in_viewport(ratio=1)
                check_no_overflow(page)


def accuracy(losses):
    """Return the page's accuracy: 100 for best moves on 4x4, 0 for blunders, rounded half up as in JavaScript."""
    return int(100 * sum(max(0, 1 - loss / VERDICT_THRESHOLDS[4][-1]) for loss in losses) / len(losses) + 0.5)


def test_first_start_offers_the_first_compiled_opponent(open_page, server):
    page, answers = open_page(), server.call("GET", "/api/agents").json()
    compiled = [answers]

    def answer(route):
        route.fulfill(json=compiled[0])

    early = [{**agent, "ready": agent["sizes"] if agent["name"] == "greedy" else []} for agent in answers["agents"]]
    compiled[0] = {**answers, "compiled": 0.25, "agents": early}
    page.route("**/api/agents", answer)
    page.reload()
    expect(page.locator("#compiling progress")).to_have_js_property("value", 0.25)
    expect(page.locator("#agent")).to_have_value("greedy")
    expect(page.locator("#agent option").first).to_have_text("Human-like (being prepared)")
    check_accessibility(page)
    compiled[0] = {**compiled[0], "agents": [{**agent, "ready": []} for agent in early]}
    expect(page.locator("#start")).to_be_disabled()
    compiled[0] = answers
    expect(page.locator("#compiling")).to_be_hidden()
    expect(page.locator("#agent")).to_have_value("human")
    expect(page.locator("#start")).to_be_enabled()


def test_a_dropped_connection_is_restored(open_page, server):
    page = open_page()
    start(page, mode="here", size=4)
    expect(page.locator("#status")).to_have_text("Black to move.")
    room = max(server.hall.rooms.values(), key=lambda room: room.created)
    in_loop(server, server.hall.drop, room, "put away by a test")
    eventually(lambda: (now := server.hall.rooms.get(room.id)) not in (None, room) and now.members, "the return")
    expect(page.locator("#status")).to_have_text("Black to move.")
    page.locator(".square.legal").first.click()
    expect(page.locator("#status")).to_have_text("White to move.")
    page.click("#undo")  # both sides are on this page, so nobody else must agree
    expect(page.locator("#status")).to_have_text("Black to move.")
    expect(page.locator("#moves button")).to_have_count(0)


def test_games_against_levels_are_rated_unless_help_was_used(open_page, server):
    page, others = open_page(), set(server.hall.rooms)
    rated = page.locator("#rated")
    start(page, agent="human", strength=2)
    expect(rated).to_contain_text("This game is rated")
    page.click("#resign")
    confirm(page)
    lost = rating_text([(RATINGS[2], 0)])
    expect(rated).to_have_text(f"Your rating: {lost} after 1 game.")
    page.reload()
    expect(rated).to_have_text(f"Your rating: {lost} after 1 game.")  # every game counts once
    check_accessibility(page)
    page.click("#nav-new")
    expect(page.locator("#setup-standing")).to_contain_text(f"{lost} after 1 game. The closest level is 2.")
    check_accessibility(page)
    start(page, colour="white")
    my_turn(page)
    page.click("#undo")
    expect(page.locator("#toast")).to_have_text("There is no move to take back.")
    expect(rated).to_contain_text("This game is rated")  # no help was given
    page.click("#hint")
    expect(rated).to_contain_text("not rated")
    page.click("#resign")
    confirm(page)
    page.click("#rematch")  # with another seed, so that the agent's replies do not repeat
    expect(rated).to_contain_text("This game is rated")
    rooms = [room for name, room in server.hall.rooms.items() if name not in others]
    seeds = [agent.spec.options["seed"] for room in rooms for agent in room.agents.values()]
    assert len(set(seeds)) == len(seeds) == 3
    page.click("#nav-games")
    expect(page.locator("#standing")).to_contain_text(lost)
    check_accessibility(page)
    page.click("#standing-reset")
    confirm(page)
    expect(page.locator("#standing")).to_be_hidden()

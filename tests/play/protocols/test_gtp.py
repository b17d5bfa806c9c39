"""`reversi gtp` against the GTP 2 specification, line by line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from play.protocols.gtp import GtpEngine
from play.thinker import Thinker
from reversi_env import Position, ReversiError, Rules
from reversi_env.rules import BLACK, WHITE
from search import evaluators

FIRST_MOVES = {"D3", "C4", "F5", "E6"}
WORDS = (
    *("play", "genmove", "undo", "b", "w", "d3", "pass", "a1", "zz", "9"),
    *("boardsize", "4", "-1", "time_left", "1e9", "#"),
)
REQUIRED = {
    *("protocol_version", "name", "version", "known_command", "list_commands", "quit"),
    *("boardsize", "clear_board", "komi", "play", "genmove"),
}


@pytest.fixture
def engine():
    return GtpEngine(Thinker("six-factor:depth=1"), version="1")


def ask(engine, *lines):
    """Send commands that must succeed; return the answer to the last one."""
    for line in lines:
        answer = engine.answer(line)
        assert answer.startswith("=")
        assert answer.endswith("\n\n")
        assert "\n\n" not in answer[:-1]  # an empty line ends an answer
    return answer[1:].strip()


def refused(engine, line):
    """Send a command that must fail; return its message."""
    before = engine.position
    answer = engine.answer(line)
    assert answer.startswith("? ")
    assert answer.endswith("\n\n")
    assert engine.position == before
    return answer[2:].strip()


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("name", "= Reversi Lab\n\n"),
        ("12 name\n", "=12 Reversi Lab\n\n"),
        ("\t3\tname # hello\r\n", "=3 Reversi Lab\n\n"),
        *(("protocol_version", "= 2\n\n"), ("5 komi 6.5", "=5\n\n"), ("8 komi x", "?8 syntax error\n\n")),
        *(("nonsense", "? unknown command\n\n"), ("9 nonsense", "?9 unknown command\n\n")),
        *(("-1 name", "? unknown command\n\n"), ("NAME", "? unknown command\n\n")),
        *(("known_command genmove", "= true\n\n"), ("known_command", "? syntax error\n\n")),
        *((line, None) for line in ("", "\n", "   \t \r\n", "# a comment", "   # name", "\x01\x07\n")),
    ],
)
def test_answers_have_the_form_of_the_specification(engine, line, answer):
    assert engine.answer(line) == answer


@settings(max_examples=40)
@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_line_gets_a_well_formed_answer(line):
    engine = GtpEngine(Thinker("random"), Rules(4))
    answer = engine.answer(line.replace("\n", " "))
    assert answer is None or (answer[0] in "=?" and answer.endswith("\n\n"))


def test_all_required_commands_are_known(engine):
    commands = ask(engine, "list_commands").split("\n")
    assert set(commands) >= REQUIRED
    assert all(ask(engine, f"known_command {command}") == "true" for command in commands)


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        ("illegal move", ["play b a1", "play b j9", "play b pass", "play b d4"]),
        ("syntax error", ["play green d3", "play b", "play b i5", "play b 3d", "genmove", "genmove x", "boardsize"]),
        ("syntax error", ["set_game", "time_settings 1 2", "time_left b x 0", "reversi-set threads"]),
        ("unacceptable size", ["boardsize 7", "boardsize 19"]),
        *(("cannot undo", ["undo"]), ("cannot score", ["final_score"])),
        ("", ["set_game Go", "reversi-set colour 3"]),
    ],
)
def test_refused_commands_change_nothing(engine, error, lines):
    assert all(refused(engine, line).startswith(error) for line in lines)


def test_options_are_set_during_a_session():
    engine = GtpEngine(Thinker("six-factor", time=0.1, threads=1))
    ask(engine, "reversi-set threads 2", "reversi-set table 1", "reversi-set depth 2")
    assert engine.thinker.spec.text == "six-factor:threads=2,table=1,depth=2"
    assert (engine.thinker.agent.threads, engine.thinker.agent.limits.depth) == (2, 2)
    assert "threads='x'" in refused(engine, "reversi-set threads x")
    assert engine.thinker.agent.threads == 2
    ask(engine, "reversi-set level 2")
    assert engine.thinker.spec.text == "human:level=2"


def test_reversi_values_returns_the_requested_count(engine):
    assert [len(ask(engine, f"reversi-values {count}").splitlines()) for count in (1, 2, 3, 64)] == [1, 2, 3, 4]
    assert refused(engine, "reversi-values 0") == "no values"


def test_board_sizes_without_weights_are_refused():
    weights = evaluators.get_evaluator("network").file(Rules(8))
    engine = GtpEngine(Thinker(f"network:depth=1,weights={weights}"))
    assert refused(engine, "boardsize 6") == "unacceptable size"
    assert refused(engine, "set_game Anti-Othello")
    assert engine.rules.size == 8


def test_boardsize_and_set_game_change_the_rules(engine):
    ask(engine, "boardsize 6")
    assert engine.position == Position.initial(Rules(6))
    assert ask(engine, "query_boardsize") == "6"
    assert ask(engine, "list_games").split("\n") == ["Othello", "Anti-Othello"]
    ask(engine, "set_game Anti-Othello")
    assert engine.rules.variant == "reversed"
    ask(engine, "set_game othello")
    assert engine.rules.variant == "normal"


def test_genmove_plays_reg_genmove_does_not_and_undo_works(engine):
    start = engine.position
    assert ask(engine, "reg_genmove b") in FIRST_MOVES
    assert engine.position == start
    assert "white" in ask(engine, "play black D3", "showboard")
    ask(engine, "genmove w")
    assert (engine.position.round, engine.position.turn) == (6, BLACK)
    for expected in (start.play("d3"), start):
        ask(engine, "undo")
        assert engine.position == expected
    assert ask(engine, "genmove b") in FIRST_MOVES


def test_either_colour_may_move_at_any_time(engine):
    white_first = ask(engine, "genmove w")
    assert white_first not in FIRST_MOVES  # white's moves are mirror images of black's
    assert engine.position.turn == BLACK
    assert ask(engine, "undo", "play b d3", "genmove b") != "pass"
    assert engine.position.discs(WHITE) in (0, 1)


#: After these moves on the 4x4 board white must pass, and black may play b1, a2 or d3.
BEFORE_WHITE_PASSES = ("c4", "d2", "c1", "b4", "a3", "a1", "a4")


@pytest.fixture
def engine_before_pass(engine):
    ask(engine, "boardsize 4")
    for number, move in enumerate(BEFORE_WHITE_PASSES):
        ask(engine, f"play {'bw'[number % 2]} {move}")
    assert engine.position.turn == WHITE
    assert engine.position.must_pass()
    return engine


def test_passes_are_played_generated_or_omitted(engine_before_pass):
    before = engine_before_pass.position
    for line, after in (("play w pass", "pass"), ("play b b1", "pass b1")):
        ask(engine_before_pass, line)
        assert engine_before_pass.position == before.play_all(after.split())
        ask(engine_before_pass, "undo")
        assert engine_before_pass.position == before
    refused(engine_before_pass, "play w b1")
    assert ask(engine_before_pass, "genmove b") in {"B1", "A2", "D3"}
    assert ask(engine_before_pass, "undo", "genmove w") == "pass"
    assert engine_before_pass.position == before.play("pass")


@pytest.mark.parametrize("size", [4, 6])
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_genmove_plays_a_whole_game(size, variant):
    """Two passes in a row end the game, for controllers without Othello rules; the score follows the rules."""
    engine = GtpEngine(Thinker("six-factor:depth=1"), Rules(size, variant))
    passes, number = 0, 0
    while passes < 2:
        move = ask(engine, f"genmove {'bw'[number % 2]}")
        passes = passes + 1 if move == "pass" else 0
        number += 1
        assert number < 2 * size**2
    score = engine.position.score(BLACK)
    expected = "0" if not score else f"{'B' if score > 0 else 'W'}+{abs(score)}"
    assert ask(engine, "final_score") == expected
    ask(engine, "play b pass", "undo")


class RecordingThinker(Thinker):
    """Records the time for each move."""

    def think(self, position, *, clock=None, **options):
        self.seconds = clock and clock.usual_seconds(position)
        return super().think(position, clock=clock, **options)


@pytest.fixture
def recording_engine():
    return GtpEngine(RecordingThinker("six-factor:depth=1"))


@pytest.mark.parametrize(
    ("lines", "low", "high"),
    [
        ("time_settings 60 0 0", 0.5, 6),
        ("time_settings 0 10 1", 8, 10),  # the period is shared by its moves
        ("time_settings 0 10 1|genmove b|genmove w|time_left b 10 5", 1.6, 2),
        ("time_left b 100 0", 1, 20),  # valid without time_settings
        ("time_left b 100 0|genmove b|time_left b 0 0", 0, 0.01),
        ("time_settings 1 0 0|time_settings 0 1 0", None, None),  # GTP's form of no limit
        ("name", None, None),
    ],
)
def test_move_time_follows_the_time_commands(recording_engine, lines, low, high):
    ask(recording_engine, *lines.split("|"), "genmove b")
    assert recording_engine.thinker.seconds is None if low is None else low < recording_engine.thinker.seconds < high


def test_the_engine_runs_its_own_clock_without_time_left(recording_engine):
    ask(recording_engine, "time_settings 1000 0 0", "genmove b")
    assert recording_engine._clocks[BLACK].left < 1000
    assert recording_engine._clocks[WHITE].left == 1000
    ask(recording_engine, "clear_board")
    assert recording_engine._clocks[BLACK].left == 1000


def test_a_session_on_standard_input(reversi):
    session = "1 boardsize 6\n\n# begin\n2 clear_board\n3 genmove black\n4 play w pass\n5 quit\n6 name\n"
    status, out, err = reversi("gtp", "six-factor:depth=1", stdin=session)
    answers = out.split("\n\n")
    assert (status, err) == (0, "")
    assert [answer[:2] for answer in answers] == ["=1", "=2", "=3", "?4", "=5", ""]
    assert answers[3].startswith("?4 illegal move: pass")
    for lines, answer in (("name", "= Reversi Lab\n\n"), ("", "")):  # the end of the input ends the session
        assert reversi("gtp", "random", stdin=lines) == (0, answer, "")


def test_failing_agent_is_reported_and_the_session_continues():
    class Broken(Thinker):
        def think(self, position, **options):
            raise ReversiError("out of\norder")

    engine = GtpEngine(Broken("random"))
    assert refused(engine, "genmove b") == "out of order"
    assert ask(engine, "name")

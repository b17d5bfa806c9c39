"""solve, evaluate, analyse, match as a contract: stable JSON keys, bad lines by number, one-line errors; resumable jobs."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from play.cli.analysis.solve_start import CHECKPOINT_FORMAT
from play.cli.interrupt import INTERRUPTED
from play.game import Game
from reversi_env import Position, Rules
from reversi_env.notation import read_obf_line
from search import evaluators
from search.engine.solver import solve_all_moves
from search.engine.table import TranspositionTable
from tests.oracles.jobs import ANALYSIS, PATIENCE, launched, wait_until
from tests.play.cli.test_contract import check_refusal

FOUR_EMPTIES = "OXOOOOOOXXXOOXOXXXOOXXXXXXXXXXXXOXXXXXXXOOXXXOXXOOXX-OX-OXOO--XX"
PROBLEMS = f"""% two boards and some trouble

{FOUR_EMPTIES} X;
this is no board
OX--OXX-OOX--XXX O; C1:+6; D1:-4; D2:-4; D3:-4;
OX--OXX-OOX--XX? O;
OX--OXX-OOX--XXX O; C1:+6; A1:+2;
"""


@pytest.fixture
def problem_file(tmp_path):
    path = tmp_path / "problems.obf"
    path.write_text(PROBLEMS)
    return path


# --- solve ----------------------------------------------------------------------------------------


def test_solve_reports_bad_lines_by_number_and_solves_the_rest(json_lines, problem_file):
    results = json_lines("solve", problem_file, "--table", 1, status=1)
    assert [result["line"] for result in results] == [3, 4, 5, 6, 7]
    assert ["error" in result for result in results] == [False, True, False, True, True]
    for result in results:
        if "error" in result:
            assert result.keys() == {"line", "error"}
        else:
            assert {"line", "score", "move", "nodes", "seconds"} <= result.keys()
    assert (results[2]["score"], results[2]["move"]) == (6, "c1")
    assert "a1" in results[4]["error"]


def test_solve_for_people(reversi, problem_file):
    code, out, err = reversi("solve", problem_file, "--table", 1)
    assert code == 1
    assert out.splitlines()[1].startswith("line 5: +6  = file")
    assert [line.split(":")[0] for line in err.splitlines()] == ["line 4", "line 6", "line 7"]


def test_a_move_that_is_as_good_says_the_score_too(reversi):
    _, out, _ = reversi("solve", "-", "--table", 1, stdin="O---XOX-XXO--OOO X; D3:-12;")  # as is b1
    assert out.startswith("line 1: -12  = file  6 empties")


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ("C1:+6; D1:-4; D2:-4; D3:-4;", "  = file"),
        ("C1:+6;", "  = file"),
        ("D1:-4;", ""),  # of the best move it says nothing
        ("D1:+8;", "  (the file says +8!)"),
        ("C1:-2; D1:-4;", "  (the file says -2!)"),
    ],
)
def test_solve_holds_against_the_file_what_it_says(reversi, scores, told):
    text = f"\ufeffOX--OXX-OOX--XXX O; {scores}"  # with the mark that some editors begin a file with
    _, out, err = reversi("solve", "-", "--table", 1, stdin=text)
    assert out.startswith(f"line 1: +6{told}  5 empties")
    assert not err


@pytest.mark.parametrize("command", [("solve", "-", "--table", 1), ("analyse", "-", "--agent", "discs", "--depth", 0)])
@pytest.mark.parametrize(
    ("bad", "last"), [(5, "line 5:"), (6, "… and 1 more line that"), (30, "… and 25 more lines that")]
)
def test_of_many_bad_lines_the_first_few_are_shown(reversi, json_lines, command, bad, last):
    text = "no position\n" * bad
    code, out, err = reversi(*command, stdin=text)
    assert (code, out) == (1, "")
    assert [line.split(":")[0] for line in err.splitlines()[:5]] == [f"line {number}" for number in range(1, 6)]
    assert len(err.splitlines()) == min(bad, 6)
    assert err.splitlines()[-1].startswith(last)
    assert len(json_lines(*command, stdin=text, status=1)) == bad  # a program gets them all


def test_solve_without_bad_lines_succeeds_and_reads_standard_input(json_lines):
    results = json_lines("solve", "-", "--table", 1, stdin="% nothing\n\nOX--OXX-OOX--XXX O;\r\n")
    assert [(result["line"], result["score"]) for result in results] == [(3, 6)]
    assert json_lines("solve", "-", stdin="") == []


def test_solve_scores_every_move_on_request_and_in_both_games(json_lines):
    for variant in ("normal", "reversed"):
        position = Position.from_text(FOUR_EMPTIES, rules=Rules(8, variant))
        [result] = json_lines(
            "solve", "-", "--all-moves", "--variant", variant, "--table", 1, stdin=f"{FOUR_EMPTIES} X;"
        )
        assert {entry["move"]: entry["score"] for entry in result["moves"]} == solve_all_moves(position)
        assert result["score"] == result["moves"][0]["score"]
        assert position.play_all(result["pv"]).score(position.turn) == result["score"]


def test_solve_mixes_sizes_in_one_file(json_lines):
    lines = [f"{FOUR_EMPTIES} X;", "OX--OXX-OOX--XXX O;", f"{FOUR_EMPTIES} X;"]
    results = json_lines("solve", "-", "--threads", 2, "--table", 1, stdin="\n".join(lines))
    assert results[0]["score"] == results[2]["score"]
    assert results[1]["score"] == 6


def test_a_finished_game_has_a_score_and_no_move(json_lines):
    [result] = json_lines("solve", "-", "--table", 1, stdin="XXXXXXXXXXXXXX-- O;")
    assert (result["score"], result["move"], result["pv"]) == (-16, None, [])


def test_the_files_verdict_is_not_that_of_the_other_game(reversi):
    line = "OX--OXX-OOX--XXX O; C1:+6; D1:-4; D2:-4; D3:-4;"
    assert "= file" in reversi("solve", "-", stdin=line)[1]
    assert "file" not in reversi("solve", "-", "--variant", "reversed", stdin=line)[1]


@pytest.mark.parametrize(("variant", "score"), [("normal", -10), ("reversed", 4)])
def test_solve_from_the_start(json_lines, reversi, variant, score):
    [result] = json_lines("solve", "start", "--size", 4, "--variant", variant, "--table", 1)
    assert (result["score"], result["lower"], result["upper"], result["proven"]) == (score, score, score, True)
    assert {"size", "variant", "pv", "nodes", "seconds"} <= result.keys()
    assert Position.initial(Rules(4, variant)).play_all(result["pv"]).score() in (score, -score)
    code, out, _ = reversi("solve", "start", "--size", 4, "--variant", variant, "--table", 1)
    assert code == 0
    assert f"4x4 {variant}: {score:+d} for black" in out


# --- checkpoints ----------------------------------------------------------------------------------


def saved_nodes(checkpoint):
    if not checkpoint.exists():
        return 0
    with np.load(checkpoint) as saved:
        return json.loads(str(saved["header"]))["nodes"]


def test_an_interrupted_job_saves_says_what_it_knows_and_ends(reversi, tmp_path):
    """6x6 from the start, far beyond a test's time, saved every 0.6 s; meanwhile nobody else can use its checkpoint."""
    checkpoint = tmp_path / "six.npz"
    options = ("start", "--size", 6, "--table", 2, "--minutes", 0.01, "--checkpoint", checkpoint, "--json")
    with launched("solve", *options) as job:
        wait_until(lambda: saved_nodes(checkpoint), job, pause=0.05)
        before = saved_nodes(checkpoint)
        second = reversi("solve", "start", "--size", 6, "--table", 2, "--checkpoint", checkpoint)
        assert second[:2] == (2, "")
        assert f"'{checkpoint}' is in use by another process: expected it to end first" in second[2]
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == INTERRUPTED, err
    result = json.loads(out)
    assert saved_nodes(checkpoint) == result["nodes"] >= before
    assert (result["proven"], result["score"], result["pv"]) == (False, None, [])
    assert -36 <= result["lower"] < result["upper"] <= 36
    assert err.startswith("reversi: interrupted, ")
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_a_finished_job_is_finished_at_once_when_resumed(json_lines, tmp_path):
    """It leaves a small file that needs no table."""
    path = tmp_path / "four.npz"
    arguments = ("solve", "start", "--size", 4, "--checkpoint", path, "--table")
    [first] = json_lines(*arguments, 4)
    assert first["score"] == -10
    assert path.stat().st_size < 10_000
    [second] = json_lines(*arguments, 1)
    assert second | {"seconds": 0} == first | {"seconds": 0}  # the nodes too: nothing was searched again


def checkpoint_with(path, words=None, **changes):
    header = {"format": CHECKPOINT_FORMAT, "size": 4, "variant": "normal", "lower": -16, "upper": 16}
    header |= {"nodes": 5, "seconds": 1.0, "generation": 1} | changes
    header = {key: value for key, value in header.items() if value is not None}
    np.savez(path, header=np.array(json.dumps(header)), words=TranspositionTable(1).words() if words is None else words)


def test_checkpoints_that_do_not_fit_are_refused(reversi, tmp_path):
    path = tmp_path / "job.npz"
    arguments = ("solve", "start", "--size", 4, "--table", 1, "--checkpoint", path)

    checkpoint_with(path)
    assert reversi(*arguments)[0] == 0  # as it should be
    for changes, game in (({"size": 6}, "6x6 normal"), ({"variant": "reversed"}, "4x4 reversed")):
        checkpoint_with(path, **changes)
        check_refusal(reversi, arguments, f"checkpoint '{path}' is of {game}: expected 4x4 normal\n")
    for changes, message in (
        ({"format": "something else"}, f"is of the format 'something else': expected '{CHECKPOINT_FORMAT}'"),
        ({"words": TranspositionTable(2).words()}, "expected the same --table"),
        ({"lower": 20}, "window (20, 16): expected"),
    ):
        checkpoint_with(path, **changes)
        check_refusal(reversi, arguments, message)
    line = ["b1", "a1", "a2", "c1", "d4", "a3", "d1", "b4", "a4", "c4"]
    finished = {"lower": -10, "upper": -10, "pv": line}
    checkpoint_with(path, **finished)
    assert reversi(*arguments)[0] == 0
    no_results = ({"lower": -12}, {"upper": -8}, {"pv": line[:-1]}, {"pv": []}, {"pv": ["a1"]}, {"pv": 5})
    no_headers = ({"size": 5}, {"lower": "x"}, {"nodes": None}, {"generation": None}, {"size": None})
    for changes in (*({**finished, **wrong} for wrong in no_results), *no_headers):
        checkpoint_with(path, **changes)
        check_refusal(reversi, arguments, "cannot be read")


def test_a_damaged_checkpoint_is_refused_and_left_alone(reversi, tmp_path):
    path = tmp_path / "job.npz"
    checkpoint_with(path)
    whole = path.read_bytes()
    for data in (b"", b"no checkpoint", whole[: len(whole) // 2], whole[:400] + b"\xff" * 100 + whole[500:]):
        path.write_bytes(data)
        arguments = ("solve", "start", "--size", 4, "--table", 1, "--checkpoint", path)
        check_refusal(reversi, arguments, "cannot be read: expected a whole one of reversi solve start")
        assert path.read_bytes() == data


# --- evaluate -------------------------------------------------------------------------------------


def test_evaluate_gives_static_values(json_lines, reversi, problem_file):
    results = json_lines("analyse", problem_file, "--agent", "six-factor", "--depth", 0, status=1)
    assert [sorted(result) for result in results][:3] == [["line", "value"], ["error", "line"], ["line", "value"]]
    position = read_obf_line(f"{FOUR_EMPTIES} X;").position
    assert results[0]["value"] == evaluators.get_evaluator("six-factor").static_value(position)
    code, out, err = reversi("analyse", problem_file, "-a", "six-factor", "-d", 0)
    assert code == 1
    assert out.startswith(f"line 3: {results[0]['value']:+.2f}\nline 5: ")
    assert "line 4: " in err


def test_evaluate_follows_the_variant_and_knows_the_end_of_a_game(json_lines):
    for variant, score in (("normal", 16), ("reversed", -16)):
        lines = f"XXXXXXXXXXXXXX-- X;\n{FOUR_EMPTIES} X;"
        finished, unfinished = json_lines(
            "analyse", "-", "--agent", "discs", "--depth", 0, "--variant", variant, stdin=lines
        )
        assert finished["value"] == score
        position = Position.from_text(FOUR_EMPTIES, rules=Rules(8, variant))
        assert unfinished["value"] == position.rules.sign * position.disc_difference()


# --- analyse --------------------------------------------------------------------------------------


def test_analyse_searches_to_a_depth(json_lines, reversi):
    [result] = json_lines("analyse", "start", "--depth", 3)
    assert result.keys() == ANALYSIS
    assert (result["depth"], result["exact"], result["pv"][0]) == (3, False, result["move"])
    assert result["move"] in Position.initial().legal_moves()
    code, out, _ = reversi("analyse", "start", "--depth", 3)
    assert code == 0
    assert "discs (depth 3)" in out


def test_analyse_is_exact_near_the_end_and_lists_moves(json_lines, reversi):
    position = Position.from_text(FOUR_EMPTIES)
    values = solve_all_moves(position)
    [result] = json_lines("analyse", FOUR_EMPTIES, "--time", 2, "--multi-pv", 9)
    assert result.keys() == ANALYSIS | {"moves"}
    assert {entry["move"]: entry["value"] for entry in result["moves"]} == values
    assert (result["value"], result["exact"]) == (max(values.values()), True)
    _, out, _ = reversi("analyse", FOUR_EMPTIES, "-m", 9)
    assert "(exact)" in out
    assert out.count("\n    ") == len(values)


def test_analyse_takes_the_side_to_move_and_the_game_as_told(json_lines):
    [white] = json_lines("analyse", "start", "--side", "white", "--depth", 1)
    assert white["move"] in ("e3", "f4", "c5", "d6")
    [small] = json_lines("analyse", "start", "--size", 4, "--variant", "reversed", "--time", 60)  # solved long before
    assert (small["value"], small["exact"]) == (4, True)


def test_a_board_may_begin_with_an_empty_corner(json_lines):
    """Its first character is that of an option."""
    position = Position.initial(Rules(6)).play("e4")
    assert position.to_text().startswith("-")
    [result] = json_lines("analyse", position.to_text(), "--side", "white", "--depth", 3)
    assert result["move"] in position.legal_moves()


@pytest.mark.parametrize(("size", "variant", "moves"), [(8, "normal", "f5d6c3"), (6, "reversed", "e4 e5")])
def test_analyse_takes_the_moves_of_a_game(reversi, tmp_path, size, variant, moves):
    """Typed, from a transcript or from GGF, which tells its rules itself; and any position on the way."""
    game = Game.from_transcript(moves, Rules(size, variant))
    (tmp_path / "game.ggf").write_text(game.to_ggf())
    (tmp_path / "moves").write_text(moves)
    told = ("--size", size, "--variant", variant)
    for arguments in ((moves, *told), (tmp_path / "game.ggf",), (tmp_path / "moves", *told)):
        for after in (None, 0, 1, len(game.moves)):
            option = () if after is None else ("--after", after)
            code, out, _ = reversi("analyse", *arguments, *option, "--agent", "six-factor:depth=1")
            assert code == 0
            assert out.startswith(f"{game.positions[-1 if after is None else after]}\n")


def test_a_file_may_be_called_as_a_move_is(json_lines, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("g2.txt").write_text("f5\nd6\n")
    [found], [typed] = (json_lines("analyse", text, "--depth", 2) for text in ("g2.txt", "f5d6"))
    assert found["pv"] == typed["pv"]


def test_analyse_takes_one_of_the_games_in_a_file_and_says_which(reversi, tmp_path):
    file = tmp_path / "two.ggf"
    file.write_text("(;GM[Othello]TY[4]B[b1];)\n(;GM[Othello]TY[4]B[b1]W[a1]B[a2];)\n")
    _, out, err = reversi("analyse", file, "--depth", 1)
    assert "white to move (X 4, O 1)" in out
    assert err.startswith(f"reversi: the first of 2 games in {file}; --game N ")
    _, out, err = reversi("analyse", file, "--depth", 1, "--game", 2)
    assert "white to move (X 5, O 2)" in out
    assert err == ""
    assert "game 3" in reversi("analyse", file, "--game", 3)[2]


def test_analyse_uses_the_limits_of_the_spec(json_lines):
    """A second is what an analysis takes if nobody says anything; an agent's own depth says something."""
    [result] = json_lines("analyse", "start", "--agent", "six-factor:depth=2")
    assert (result["depth"], result["seconds"] < 0.9) == (2, True)
    [by_clock] = json_lines("analyse", "start", "--agent", "six-factor", "--time", 0.3)
    assert by_clock["depth"] > 2


def test_analyse_of_a_finished_game(json_lines, reversi):
    [result] = json_lines("analyse", "XXXXXXXXXXXXXX--")
    assert (result["move"], result["value"], result["exact"], result["pv"]) == (None, 16, True, [])
    assert "game over" in reversi("analyse", "XXXXXXXXXXXXXX--")[1]


# --- match ----------------------------------------------------------------------------------------


def test_match_limits_the_nodes_of_agents_that_leave_them_open(json_lines):
    """As the spec does it: a search of so few nodes that the result is another one without the limit."""
    arguments = ("match", "--games", 4, "--size", 6, "--seed", 4, "six-factor:table=0.1,depth=5")
    results = [json_lines(*arguments, *rest)[0] for rest in (("greedy:seed=1", "--nodes", 20), ("greedy:seed=1",))]
    assert results[0]["discs_per_game"] != results[1]["discs_per_game"]


# --- bad input ------------------------------------------------------------------------------------


def test_a_fresh_process_keeps_the_contract_too():
    """Once from outside: nothing but JSON on standard output, problems through a pipe."""
    result = subprocess.run(
        [sys.executable, "-m", "play.cli.app", "solve", "-", "--json", "--table", "1"],
        input=PROBLEMS,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert [json.loads(line)["line"] for line in result.stdout.splitlines()] == [3, 4, 5, 6, 7]
    assert result.stderr == ""


@pytest.mark.parametrize("command", ["analyse", "review"])
def test_options_must_not_contradict_the_rules_of_a_file(reversi, tmp_path, command):
    file = tmp_path / "game.ggf"
    file.write_text(Game.from_transcript("f5d6", Rules()).to_ggf())
    for options, message in (
        (("--variant", "reversed"), "--variant reversed: expected normal"),
        (("--size", 6), "--size 6: expected 8"),
    ):
        code, out, err = reversi(command, file, *options)
        assert (code, out) == (2, "")
        assert message in err

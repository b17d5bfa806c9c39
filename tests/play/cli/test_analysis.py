"""`solve`, `analyse`, `match`, `perft` and `winrate`: JSON keys, texts and exact results."""

import re

import pytest

from play.interrupt import INTERRUPTED
from reversi_env import BLACK, Position, Rules
from search import agents
from search.engine.solver import solve_all_moves
from tests.conftest import REPOSITORY
from tests.oracles.jobs import ANALYSIS
from train.arena import tournament

FOUR_EMPTIES = "OXOOOOOOXXXOOXOXXXOOXXXXXXXXXXXXOXXXXXXXOOXXXOXXOOXX-OX-OXOO--XX"


def without_times(result):
    return {key: value for key, value in result.items() if "seconds" not in key}


@pytest.mark.parametrize(("scores", "wrong"), [("C1:+6; D1:-4;", None), ("D1:+8;", "+8"), ("C1:-2; D1:-4;", "-2")])
def test_solve_compares_its_score_with_the_files(reversi, scores, wrong):
    line = f"\ufeffOX--OXX-OOX--XXX O; {scores}"  # with the byte-order mark of some editors
    _, out, err = reversi("solve", "-", "--table", 1, stdin=line)
    assert out.startswith("line 1: +6")
    assert (wrong or "= file") in out
    assert not err
    assert "file" not in reversi("solve", "-", "--variant", "reversed", "--table", 1, stdin=line)[1]


def test_solve_scores_every_move_on_request_and_in_both_games(json_lines):
    for variant in ("normal", "reversed"):
        position = Position.from_text(FOUR_EMPTIES, rules=Rules(8, variant))
        [result] = json_lines(
            "solve", "-", "--all-moves", "--variant", variant, "--table", 1, stdin=f"{FOUR_EMPTIES} X;"
        )
        assert {entry["move"]: entry["score"] for entry in result["moves"]} == solve_all_moves(position)
        assert result["score"] == result["moves"][0]["score"]
        assert position.play_all(result["pv"]).score(position.turn) == result["score"]


def test_solve_reads_mixed_sizes_and_finished_games(json_lines):
    lines = [f"{FOUR_EMPTIES} X;", "OX--OXX-OOX--XXX O;", "XXXXXXXXXXXXXX-- O;", f"{FOUR_EMPTIES} X;"]
    first, small, over, last = json_lines("solve", "-", "--threads", 2, "--table", 1, stdin="\n".join(lines))
    assert (first["score"], small["score"]) == (last["score"], 6)
    assert (over["score"], over["move"], over["pv"]) == (-16, None, [])


@pytest.mark.parametrize(("variant", "score"), [("normal", -10), ("reversed", 4)])
def test_solve_from_the_start(json_lines, variant, score):
    [result] = json_lines("solve", "start", "--size", 4, "--variant", variant, "--table", 1)
    assert result["score"] == score
    assert Position.initial(Rules(4, variant)).play_all(result["pv"]).score() in (score, -score)


def test_solved_book_answers_6x6_unless_an_agent_is_given(json_lines, reversi):
    values = {"b4": 4, "d2": 2, "b2": -20}
    [result] = json_lines("analyse", "c2", "--size", 6, "--depth", 2, "--multi-pv", 9)
    assert {entry["move"]: entry["value"] for entry in result["moves"]} == values
    assert (result["exact"], result["value"], len(result["pv"]), result["nodes"]) == (True, 4, 6, 0)
    assert "(exact)" in reversi("analyse", "c2", "--size", 6)[1]
    [searched] = json_lines("analyse", "c2", "--size", 6, "--depth", 2, "--agent", "six-factor")
    assert (searched["exact"], searched["depth"]) == (False, 2)
    request = '{"id": 1, "position": "c2", "size": 6}'
    [served] = json_lines("analyse", "--jsonl", "--depth", 2, stdin=request)
    assert (served["exact"], served["value"], served["depth"]) == (True, 4, 31)
    [small] = json_lines("analyse", "start", "--size", 4, "--depth", 2)
    assert (small["exact"], small["value"]) == (True, -10)


@pytest.mark.slow
def test_6x6_start_is_solved_with_a_complete_line(json_lines):
    [result] = json_lines("solve", "start", "--size", 6, "--all-moves", "--order", "network")
    assert (result["score"], result["moves"]) == (-4, [{"move": m, "score": -4} for m in ("c2", "b3", "e4", "d5")])
    end = Position.initial(Rules(6)).play_all(result["pv"])
    assert (end.is_over(), end.score(BLACK)) == (True, -4)


def test_depth_0_follows_variant_and_scores_finished_games(json_lines):
    for variant, score in (("normal", 16), ("reversed", -16)):
        lines = f"XXXXXXXXXXXXXX-- X;\n{FOUR_EMPTIES} X;"
        finished, unfinished = json_lines(
            "analyse", "-", "--agent", "discs", "--depth", 0, "--variant", variant, stdin=lines
        )
        assert finished["value"] == score
        position = Position.from_text(FOUR_EMPTIES, rules=Rules(8, variant))
        assert unfinished["value"] == position.rules.sign * position.disc_difference()


def test_analyse_follows_depth_side_and_variant(json_lines, reversi):
    [result] = json_lines("analyse", "start", "--depth", 3)
    assert result.keys() == ANALYSIS
    assert (result["depth"], result["exact"], result["pv"][0]) == (3, False, result["move"])
    assert result["move"] in Position.initial().legal_moves()
    assert "discs (depth 3)" in reversi("analyse", "start", "--depth", 3)[1]
    [own] = json_lines("analyse", "start", "--agent", "six-factor:depth=2")  # the depth is its only limit
    assert own["depth"] == 2
    [white] = json_lines("analyse", "start", "--side", "white", "--depth", 1)
    assert white["move"] in ("e3", "f4", "c5", "d6")
    [small] = json_lines("analyze", "start", "--size", 4, "--variant", "reversed", "--time", 60)  # ends once solved
    assert (small["value"], small["exact"]) == (4, True)
    [over] = json_lines("analyse", "XXXXXXXXXXXXXX--")
    assert (over["move"], over["value"], over["exact"], over["pv"]) == (None, 16, True, [])
    assert "game over" in reversi("analyse", "XXXXXXXXXXXXXX--")[1]


def test_analyse_is_exact_in_endgames_and_lists_moves(json_lines, reversi):
    position = Position.from_text(FOUR_EMPTIES)
    values = solve_all_moves(position)
    [result] = json_lines("analyse", FOUR_EMPTIES, "--time", 2, "--multi-pv", 9)
    assert result.keys() == ANALYSIS | {"moves"}
    assert {entry["move"]: entry["value"] for entry in result["moves"]} == values
    assert (result["value"], result["exact"]) == (max(values.values()), True)
    _, out, _ = reversi("analyse", FOUR_EMPTIES, "-m", 9)
    assert "(exact)" in out
    assert out.count("\n    ") == len(values)


def test_perft(reversi, json_lines):
    [result] = json_lines("perft", "--size", 6, "--depth", 7)
    assert without_times(result) == {"size": 6, "depth": 7, "leaves": 47740, "known": 47740}
    assert result["seconds"] >= 0
    assert "47,740  (equals the table)" in reversi("perft", "--size", 6, "--depth", 7)[1]
    assert "depth 0: 1  0.0" in reversi("perft", "--depth", 0)[1]  # not in the table


def test_match_is_paired_and_reproducible(json_lines):
    arguments = ("match", "six-factor:table=0.1", "greedy", "--games", 20, "--size", 6, "--depth", 2, "--seed", 4)
    [first], [second] = json_lines(*arguments), json_lines(*arguments)
    assert without_times(first) == without_times(second)
    assert (first["a"], first["b"]) == ("six-factor:table=0.1", "greedy")
    assert first["wins"] + first["draws"] + first["losses"] == first["games"] == 20
    assert 0.5 < first["interval"][0] < first["score"] <= first["interval"][1]
    assert first.keys() == {
        *("a", "b", "games", "wins", "draws", "losses", "score", "interval", "discs_per_game"),
        *("seconds_per_move_a", "seconds_per_move_b", "forfeits_a", "forfeits_b", "size", "variant", "seed"),
    }
    assert (first["size"], first["variant"], first["seed"]) == (6, "normal", 4)


@pytest.mark.slow
def test_match_limits_nodes_of_agents_without_a_limit(json_lines):
    arguments = ("match", "--games", 4, "--size", 6, "--seed", 4, "six-factor:table=0.1,depth=5")
    results = [json_lines(*arguments, *rest)[0] for rest in (("greedy:seed=1", "--nodes", 20), ("greedy:seed=1",))]
    assert results[0]["discs_per_game"] != results[1]["discs_per_game"]


def test_interrupted_winrate_without_games_prints_no_result(reversi, monkeypatch):
    def interrupted(*arguments, **others):
        raise KeyboardInterrupt

    monkeypatch.setattr(tournament, "estimate_win_rate", interrupted)
    status, out, err = reversi("winrate", "greedy")
    assert (status, out, err.count("\n")) == (INTERRUPTED, "", 1)


def test_agent_options_are_documented(reversi):
    names = {option for name in agents.names() for option in agents.option_names(name)}
    page = (REPOSITORY / "docs" / "reference" / "agents.md").read_text()
    assert names <= set(re.findall(r"^\| `(\w+)` ", page, re.MULTILINE))
    assert names <= set(re.findall(r"\w+", reversi("match", "--help")[1]))

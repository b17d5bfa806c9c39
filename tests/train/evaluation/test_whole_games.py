"""Whole games against perfect play: move values equal minimax in Python; runs are reproducible and resume."""

from functools import cache

import numpy as np
import pytest

from reversi_env import BLACK, WHITE, Rules
from reversi_env.errors import ReversiError, TrainError
from search.agents.base import Agent
from search.agents.spec import make_agent
from search.engine.solver import Solver
from search.exact_scores import ExactScores
from tests.oracles import jobs
from train import score_policy
from train.evaluation.options import WholeGameOptions
from train.evaluation.whole_games import LOG, fixed_openings, play_whole_games
from train.jobs.processes import LocalExecutor

IN_PROCESS = LocalExecutor(0)
RUN = """
import sys
from pathlib import Path
from train.evaluation.whole_games import WholeGameOptions, play_whole_games
from train.jobs.processes import LocalExecutor
options = WholeGameOptions(agents=("greedy", "random"), size=4, games=8)
play_whole_games(options, Path(sys.argv[1]), cache=Path(sys.argv[2]), executor=LocalExecutor(0))
"""


@cache
def exact(position):
    """Return the value by minimax, in Python."""
    if position.is_over():
        return position.score()
    return max(-exact(position.play(move)) for move in position.legal_moves() or ("pass",))


class Recorder(Agent):
    """A random agent that records its moves where it had a choice."""

    def __init__(self):
        self.agent, self.moves = make_agent("random", seed=5), []

    def choose(self, position):
        action = self.agent.choose(position)
        if len(position.legal_actions()) > 1:
            self.moves.append((position, action))
        return action


def options(*agents, games=8, **others):
    return WholeGameOptions(agents=agents, size=4, games=games, **others)


def results(chosen, folder=None, **others):
    return [one.as_dict() for one in play_whole_games(chosen, folder, **{"executor": IN_PROCESS, **others})]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_move_values_equal_minimax(variant, tmp_path):
    rules, agent = Rules(4, variant), Recorder()
    (result,) = play_whole_games(options("policy", variant=variant), policy=agent, cache=tmp_path)
    judged = [tuple(move) for game in result.games for move in game.moves]
    assert judged == [(12 - p.empties, exact(p), -exact(p.play(action))) for p, action in agent.moves]
    openings = fixed_openings(rules, 4, ExactScores(rules, tmp_path))
    for game, opening in zip(result.games, np.repeat(openings, 2), strict=True):
        colour = (BLACK, WHITE)[game.number % 2]
        assert game.opening_value == exact(opening.position) * (1 if opening.position.turn == colour else -1)
        lost = sum(move.best - move.value for move in game.moves)
        assert lost == game.opening_value - game.final  # perfect play and moves without a choice lose nothing
    losses = [best - value for _, best, value in judged]
    assert sum(losses) > 0
    assert result.overall.moves == len(losses) == sum(part.moves for part in result.phases.values() if part)
    assert len(losses) == sum(part.moves for part in result.by_ply.values())
    assert result.overall.lost.mean == pytest.approx(np.mean(losses))
    assert result.overall.perfect.mean == pytest.approx(np.mean(np.equal(losses, 0)))
    assert result.lost_per_game.mean == pytest.approx(sum(losses) / 8)
    count, kept = result.kept
    held = [np.sign(game.final) == np.sign(game.opening_value) for game in result.games if game.opening_value >= 0]
    assert (count, kept.mean) == (len(held), pytest.approx(np.mean(held)))
    assert f"{sum(losses) / 8:.1f}" in str(result)


def test_perfect_play_loses_nothing(tmp_path):
    (judged,) = results(options("perfect"), cache=tmp_path)
    assert judged["lost_per_game"]["mean"] == 0
    assert (judged["overall"]["perfect"]["mean"], judged["kept"]["mean"]) == (1, 1)
    assert judged["lost_from_the_start"] == {"black": 0, "white": 0}
    openings = fixed_openings(Rules(4), 30, ExactScores(Rules(4), tmp_path))
    assert openings[0].moves == ()
    assert len({opening.position.canonical() for opening in openings}) == 30
    assert openings[:8] == fixed_openings(Rules(4), 8, ExactScores(Rules(4), tmp_path))


@pytest.mark.slow
def test_workers_and_cache_do_not_change_the_results(tmp_path, monkeypatch):
    chosen = options("greedy", "random")
    expected = results(chosen, cache=tmp_path / "a")
    assert results(chosen, cache=tmp_path / "b", executor=LocalExecutor(1)) == expected
    assert results(chosen, cache=tmp_path / "c", executor=LocalExecutor(2)) == expected
    solved = []
    narrow = Solver.narrow
    monkeypatch.setattr(Solver, "narrow", lambda *args: solved.append(args[1].empties) or narrow(*args))
    assert results(chosen, cache=tmp_path / "c") == expected
    assert max(solved) < 10
    assert results(options("random", seed=1), cache=tmp_path / "a")[0] != expected[1]


@pytest.mark.slow
def test_a_killed_run_resumes_with_other_agents_and_more_games(tmp_path):
    folder, solved, log = tmp_path / "out", tmp_path / "cache", tmp_path / "out" / LOG
    with jobs.launched(folder, solved, code=jobs.held(RUN, LOG, 6)) as job:
        jobs.wait_until(lambda: log.exists() and log.read_bytes().count(b"\n") == 5, job)
    log.write_bytes(log.read_bytes()[:-9])  # four lines and a part of the fifth
    played = []
    judged = results(options("greedy", "random"), folder, cache=solved, progress=lambda *at: played.append(at[1]))
    assert played == [*range(4, 17)]
    assert judged == results(options("greedy", "random"), cache=solved)
    more = options("six-factor:depth=1", "greedy", games=10)
    assert results(more, folder, cache=solved) == results(more, cache=solved)
    with pytest.raises(TrainError, match="seed"):
        results(options("greedy", games=10, seed=1), folder, cache=solved)


def test_changed_weights_play_again(tmp_path, monkeypatch):
    chosen, played = options("greedy"), []
    results(chosen, tmp_path, cache=tmp_path)
    monkeypatch.setattr("search.agents.simple.GreedyAgent.content_hashes", lambda self, rules: {"weights": "other"})
    results(chosen, tmp_path, cache=tmp_path, progress=lambda *at: played.append(at[1]))
    assert played[0] == 0


def first_legal(boards, masks):
    return masks.argmax(axis=1)


def test_policies_and_agents_are_scored(tmp_path, monkeypatch):
    monkeypatch.setattr("search.exact_scores.cache_folder", tmp_path.joinpath)  # the kernel cache stays in its place

    class FirstLegal(Agent):
        def choose(self, position):
            return position.legal_actions()[0]

    score = score_policy(first_legal, Rules(4), whole_games=True, games=2)
    (expected,) = play_whole_games(options("policy", games=2), policy=FirstLegal())
    assert score.as_dict() == expected.as_dict()
    greedy = score_policy("greedy", Rules(4), whole_games=True, games=2)
    assert [greedy.as_dict()] == results(options("greedy", games=2))
    assert (tmp_path / "solved" / "bounds-4x4-normal").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rules": Rules(8)}, "8x8"),
        ({"rules": Rules(4), "games": 3}, "even"),
        ({"rules": Rules(4), "opponents": ("greedy",)}, "opponents"),
        ({"rules": Rules(4), "policy": "nobody"}, "nobody"),
    ],
)
def test_wrong_options_are_refused(given, message):
    with pytest.raises(ReversiError, match=message):
        score_policy(**{"policy": first_legal, "whole_games": True, **given})


@pytest.mark.slow
def test_whole_games_command(json_lines, reversi, tmp_path):
    arguments = ("exam", "greedy", "random", "--whole-games", "-n", 4, "-g", 8, "-w", 1, "--cache", tmp_path)
    (result,) = json_lines(*arguments, "--out", tmp_path / "out")
    assert [agent["games"] for agent in result["agents"]] == [8, 8]
    expected = results(options("greedy", "random"), cache=tmp_path)
    assert [agent["lost_per_game"] for agent in result["agents"]] == [agent["lost_per_game"] for agent in expected]
    code, out, _ = reversi(*arguments, "--plot", tmp_path / "plot.svg")
    assert code == 0
    assert f"{expected[0]['lost_per_game']['mean']:.1f}" in out
    assert (tmp_path / "plot.svg").read_bytes() == (tmp_path / "out" / "whole-games.svg").read_bytes()

"""`reversi tournament` and `reversi winrate`: output, Ctrl-C, and worker processes that end with their parent."""

import os
import signal
import sys
from dataclasses import replace
from functools import partial
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from play.interrupt import INTERRUPTED
from reversi_env import ReversiError
from tests.oracles.jobs import PATIENCE, children_of, launched, wait_until
from tests.search.agents.test_external import FAKE, gone
from tests.train.jobs.workers import Worker
from train.arena.options import TournamentOptions
from train.arena.storage import GAMES
from train.arena.tournament import estimate_win_rate, run_tournament
from train.jobs.processes import ProcessPool

SMALL = ("six-factor:table=0.1", "greedy", "random", "--size", 6, "--depth", 1)


@pytest.fixture
def in_this_process(monkeypatch):
    """Play in this process, because starting workers takes longer than these games."""
    from train.arena import tournament

    run = tournament.run_tournament
    monkeypatch.setattr(tournament, "run_tournament", lambda *a, **k: run(*a, **{**k, "workers": 0}))


def test_tournament_json_has_all_keys(json_lines, tmp_path, in_this_process):
    arguments = ("tournament", *SMALL, "--games", 2, "--out", tmp_path / "out")
    [result], [again] = json_lines(*arguments), json_lines(*arguments)
    assert [agent.keys() for agent in result["agents"]] == [
        {
            *("name", "games", "wins", "draws", "losses", "score", "discs_per_game", "elo", "elo_low", "elo_high"),
            *("seconds_per_move", "slowest_move", "overruns", "forfeits"),
        }
    ] * 3
    assert {"size", "variant", "games", "agents", "cross_table", "games_file", "ggf_file", "plot_file"} <= result.keys()
    for kind in ("games_file", "ggf_file", "plot_file"):
        assert Path(result[kind]).stat().st_size > 0
    assert result["games"] == 6
    assert (result["agents"], result["cross_table"]) == (again["agents"], again["cross_table"])


def test_tournament_text_shows_forfeits(reversi, tmp_path, in_this_process):
    spec = f"gtp[limit=60]:{sys.executable} {FAKE} gtp --fail crash --after 2"
    code, out, _ = reversi("tournament", spec, "random", "--games", 2, "--size", 6, "--out", tmp_path / "out")
    assert code == 0
    assert "lost 2 by forfeit, crash: " in out
    assert "Elo is not determined" in out


def test_sprt_result_is_printed(reversi, json_lines, tmp_path, in_this_process):
    arguments = ("tournament", "six-factor:depth=3,table=0.1", "random", "--size", 6, "--sprt", "0,200", "--games", 100)
    code, out, _ = reversi(*arguments, "--out", tmp_path)
    assert code == 0
    assert "SPRT: six-factor:depth=3,table=0.1 is stronger than random by more than 0 Elo" in out
    [result] = json_lines(*arguments, "--out", tmp_path)
    assert result["sprt"]["accepted"] == "H1"
    assert sum(result["sprt"]["pairs"]) * 2 == result["games"] < 100
    assert (result["elo_scale"], result["sprt"]["elo_scale"]) == ("Davidson", "logistic")
    assert result["sprt"]["elo_is_biased"]


def test_each_tournament_gets_its_own_folder(json_lines, tmp_path, monkeypatch, in_this_process):
    monkeypatch.chdir(tmp_path)
    files = {json_lines("tournament", *SMALL, "--games", 2, "--seed", seed)[0]["games_file"] for seed in (1, 2, 1)}
    assert len(files) == 2
    assert all(name.startswith("tournaments/") for name in files)


def test_all_expands_to_every_agent_of_the_board(monkeypatch, capsys):
    from play.cli.measure.tournament import _expanded
    from search.agents.registry import names
    from search.evaluators.registry import published_names

    without_gpt = tuple(name for name in names() if name != "gpt")  # it needs a file
    assert _expanded(["network:depth=2", "all"], 6, "reversed") == ("network:depth=2", *without_gpt)
    assert capsys.readouterr().err.split()[1] == "gpt"
    assert _expanded(["network", "published"], 6, "normal") == ("network", *published_names())
    assert capsys.readouterr().err == ""
    for size, left_out in (
        (8, {"gpt", "rl", "rl-search", "perfect"}),
        (4, {"gpt", "rl", "rl-search", "network", "zero"}),
    ):
        assert _expanded(["all"], size, "normal") == tuple(name for name in names() if name not in left_out)
        assert {line.split()[1] for line in capsys.readouterr().err.splitlines()} == left_out
    assert _expanded(["greedy", "greedy"], 8, "normal") == ("greedy", "greedy")


@pytest.mark.slow
def test_ctrl_c_prints_partial_results_and_ends_all_processes(tmp_path):
    program = f"gtp:{sys.executable} {FAKE} gtp --pids {tmp_path / 'pids'}"
    arguments = ("tournament", program, "random", "--games", 2000, "--workers", 2, "--out", tmp_path / "out")
    games = tmp_path / "out" / GAMES
    with launched(*arguments, cwd=tmp_path, start_new_session=True) as job:
        wait_until(lambda: games.exists() and games.read_text().count("\n") >= 4, job)
        children = children_of(job.pid)
        assert len(children) >= 2
        os.killpg(job.pid, signal.SIGINT)  # the whole group, as a terminal does
        out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == INTERRUPTED, err
    assert "of 2000 games" in err
    assert "8x8 normal" in out
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    wait_until(lambda: all(map(gone, [*pids, *children])))
    assert int(err.split("after ")[1].split()[0]) == games.read_text().count("\n")


@pytest.mark.slow
def test_kill_9_ends_workers_and_programs(tmp_path):
    program = f"gtp[limit=600]:{sys.executable} {FAKE} gtp --pids {tmp_path / 'pids'} --fail hang --after 5"
    # One program checks that the command starts; then every worker starts one.
    with launched("tournament", program, "random", "--games", 20, "--workers", 2, "--out", "out", cwd=tmp_path) as job:
        wait_until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text().count("\n") >= 3, job)
        children = children_of(job.pid)
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    wait_until(lambda: all(map(gone, [*pids, *children])))


@pytest.mark.slow
def test_protocol_programs_play_like_in_process_agents(tmp_path):
    agent = "six-factor:depth=1,table=0.1"
    run = f"{sys.executable} -m play.cli.app"
    programs = (f"gtp:{run} gtp {agent}", f"nboard[depth=1]:{run} nboard six-factor:table=0.1")
    for number, program in enumerate(programs):
        games = []
        for first in (program, agent):
            options = TournamentOptions((first, "greedy"), 2, 6, "reversed", seed=4)
            played = run_tournament(options, tmp_path / f"{number} {len(games)}")
            games.append([record.game.moves for record in played.records])
            assert all(record.game.forfeit is None for record in played.records)
        assert games[0] == games[1]


@pytest.mark.slow
def test_workers_do_each_job_once_and_pass_on_exceptions():
    with ProcessPool(2, Worker) as workers:
        results = list(workers.results(iter(range(20))))
        assert sorted(job for job, _ in results) == list(range(20))
        pids = {pid for _, pid in results}
        assert os.getpid() not in pids
    wait_until(lambda: all(map(gone, pids)))
    for job, kind, words in (("refuse", ReversiError, "I will not"), ("fail", RuntimeError, "ZeroDivisionError")):
        with ProcessPool(1, Worker) as workers, pytest.raises(kind, match=words):
            list(workers.results(iter([job])))


def test_workers_ignore_ctrl_c_from_their_start(capfd):
    with ProcessPool(1, partial, abs) as workers:
        [process] = workers._processes.values()
        os.kill(process.pid, signal.SIGINT)  # before its first import
        assert list(workers.results(iter([-1, -2]))) == [1, 2]
    assert capfd.readouterr().err == ""
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_during_start_ends_all_workers(monkeypatch):
    started = []
    start = SpawnProcess.start

    def interrupted(process):
        start(process)
        started.append(process)
        signal.raise_signal(signal.SIGINT)  # as from a terminal: held back until all are started

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ProcessPool(2, partial, abs)
    assert [process.exitcode for process in started] == [-signal.SIGKILL] * 2


GREEDY = TournamentOptions(("greedy", "random"), 100_000, size=4, seed=2)


@pytest.mark.slow
def test_win_rate_plays_until_the_margin_is_reached():
    estimate = estimate_win_rate(GREEDY, margin=0.1)
    assert estimate.converged
    assert estimate.interval[0] <= estimate.rate <= estimate.interval[1]
    assert estimate.margin <= 0.1
    assert estimate == estimate_win_rate(GREEDY, margin=0.1)
    limited = estimate_win_rate(replace(GREEDY, games=10), margin=0.1)
    assert (limited.converged, limited.games) == (False, 10)
    with pytest.raises(ReversiError, match="margin 0: expected"):
        estimate_win_rate(GREEDY, margin=0)


@pytest.mark.slow
def test_winrate_command(json_lines, reversi):
    arguments = ("winrate", "greedy", "--size", 4, "--margin", 0.1, "--seed", 2, "--workers", 2)
    [result] = json_lines(*arguments)
    assert {"agent", "opponent", "rate", "interval", "games", "converged", "confidence", "seed"} <= result.keys()
    expected = estimate_win_rate(GREEDY, margin=0.1)
    assert (result["rate"], result["games"]) == (expected.rate, expected.games)  # whatever the number of workers
    code, out, _ = reversi(*arguments)
    assert code == 0
    assert out.startswith("greedy wins ")

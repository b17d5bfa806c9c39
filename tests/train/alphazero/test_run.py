"""An AlphaZero run: evaluation, metrics, jobs, resumption and refusals. tests/train/jobs/test_kills.py kills it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from reversi_env import Position, Rules
from reversi_env.errors import TrainError
from search.agents.spec import make_agent
from search.engine.solver import Solver
from tests.oracles.jobs import files
from train.alphazero.jobs import derived_seed, games_jobs
from train.alphazero.learner import Learner
from train.alphazero.options import SelfPlayOptions, preset
from train.alphazero.run import STATE, SelfPlayRun
from train.jobs.checkpoints import load_checkpoint, save_checkpoint
from train.jobs.processes import LocalExecutor
from train.jobs.run import Run, stored_options

pytestmark = pytest.mark.usefixtures("one_torch_thread")

TINY = {"games": 12, "simulations": 2, "steps": 3, "final_steps": 4, "generations": 2}
TINY |= {"batch_size": 16, "channels": 4, "blocks": 1}


@pytest.mark.parametrize(("final_steps", "measured"), [pytest.param(0, [1, 2], marks=pytest.mark.slow), (4, [1, 3])])
def test_a_run_is_evaluated_regularly_and_at_its_end(tmp_path, monkeypatch, final_steps, measured):
    monkeypatch.setattr(SelfPlayRun, "measure_strength", lambda run: {"regret": 0.5})
    options = preset(4, "cpu", **TINY | {"generations": 3, "eval_every": 2, "final_steps": final_steps})
    metrics = SelfPlayRun(tmp_path, options).run().metrics
    assert [number for number, row in enumerate(metrics) if "regret" in row] == measured


def test_metrics_go_to_the_callback_and_tensorboard(tmp_path):
    """A run that is killed before its checkpoint reports a row again. TensorBoard shows the second report."""
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reported, options = [], preset(4, "cpu", **TINY, eval_games=0)

    def report_and_interrupt(number, metrics):
        reported.append((number, metrics))
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SelfPlayRun(tmp_path, options, on_metrics=report_and_interrupt).run()
    metrics = SelfPlayRun(tmp_path, options, on_metrics=lambda *row: reported.append(row)).run().metrics
    assert [number for number, _ in reported] == [1, 2, 2, 3]
    assert [row["error"] for _, row in reported[:1] + reported[2:]] == [row["error"] for row in metrics]
    board = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert [(event.step, round(event.value, 3)) for event in board.Scalars("error")] == [
        (number, row["error"]) for number, row in enumerate(metrics, 1)
    ]


@pytest.mark.slow
def test_games_are_split_into_jobs_with_different_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr("train.jobs.ray.job_device", lambda: "cpu")
    whole, split = preset(4, "cpu", **TINY, eval_games=0), preset(4, "cpu", **TINY, eval_games=0, job_games=4)
    jobs = games_jobs(split, 1)
    assert [job.number for job in jobs] == [0, 1, 2]
    assert jobs[0] == games_jobs(whole, 1)[0]
    seeds = [job.seed for generation in range(3) for job in games_jobs(split, generation)]
    assert len({*seeds, *(derived_seed(split, generation, 1) for generation in range(3))}) == 12
    SelfPlayRun(tmp_path / "split", split).run()
    SelfPlayRun(tmp_path / "workers", split, executor=LocalExecutor(0)).run()
    SelfPlayRun(tmp_path / "small", replace(whole, games=4)).run()
    names, last = ("split", "workers", "small"), "positions-0001.npz"
    ours, theirs, first = (np.load(tmp_path / name / "positions-0000.npz")["own"] for name in names)
    assert np.array_equal(ours[: len(first)], first)
    assert len(ours) > 2 * len(first)
    assert np.array_equal(ours, theirs)
    assert (tmp_path / "split" / last).read_bytes() == (tmp_path / "workers" / last).read_bytes()
    with pytest.raises(TrainError, match="job_games=5"):
        replace(split, job_games=5)


def test_a_finished_run_rewrites_only_damaged_weights(tmp_path):
    options = preset(4, "cpu", **TINY, eval_games=0)
    weights = SelfPlayRun(tmp_path, options, command="reversi train alphazero --size 4").run().weights
    before = files(tmp_path)
    assert SelfPlayRun(tmp_path, options, command="reversi train alphazero --json").run().weights == weights
    assert files(tmp_path) == before
    weights.write_bytes(weights.read_bytes()[:-1])
    SelfPlayRun(tmp_path, options, command="reversi train alphazero --size 4").run()
    assert files(tmp_path) == before


def test_a_run_refuses_another_device(tmp_path, reversi):
    options = preset(4, "cuda", **TINY)
    Run(tmp_path, options).store_or_check_options()
    assert stored_options(tmp_path, SelfPlayOptions) == options
    with pytest.raises(TrainError, match="device='cuda'"):
        Run(tmp_path, replace(options, device="cpu")).store_or_check_options()
    status, _, err = reversi("train", "alphazero", "--out", tmp_path, "--device", "cpu")
    assert (status, "device='cuda'" in err) == (2, True)


def test_a_run_resumes_only_with_its_options_and_state(tmp_path):
    def interrupt(doing, done, total):
        if doing.startswith("generation 2/2: learning"):
            raise KeyboardInterrupt

    options = preset(4, "cpu", **TINY)
    with pytest.raises(KeyboardInterrupt):
        SelfPlayRun(tmp_path, options, progress=interrupt).run()
    with pytest.raises(TrainError, match="games=12"):
        SelfPlayRun(tmp_path, preset(4, "cpu", **{**TINY, "games": 13})).run()
    learner, state = Learner(options, torch.device("cpu")), load_checkpoint(tmp_path / STATE)
    learner.load_state(state)
    parameters = learner.optimiser.param_groups[0]["params"]
    assert all(learner.optimiser.state[one]["exp_avg"].stride() == one.stride() for one in parameters)
    state["net"]["entry.weight"] = state["net"]["entry.weight"][:, :5]
    save_checkpoint(tmp_path / STATE, state)
    with pytest.raises(TrainError, match="of this version"):
        SelfPlayRun(tmp_path, options).run()
    (tmp_path / STATE).write_bytes(b"nothing")
    with pytest.raises(TrainError, match=STATE):
        SelfPlayRun(tmp_path, options).run()


@pytest.mark.slow
@pytest.mark.long
def test_the_4x4_preset_learns_perfect_play(tmp_path):
    """By the policy alone, from the start and from all openings of four plies: 5 minutes on two cores."""
    rules = Rules(4)
    run = SelfPlayRun(tmp_path, preset(4, "cpu", eval_every=1000, eval_games=2), threads=2)
    agent = make_agent(f"zero:{run.run().weights}")
    openings, solver = {Position.initial(rules)}, Solver(rules)
    for _ in range(4):
        openings = {position.play(action) for position in openings for action in position.legal_actions()}
    assert len(openings) > 100
    for opening in {Position.initial(rules), *openings}:
        position = opening
        while not position.is_over():
            after = position.play(agent.choose(position))
            value = -(after.score() if after.is_over() else solver.solve(after).score)
            assert value == solver.solve(position).score, position
            position = after

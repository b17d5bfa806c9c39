"""AlphaZero: its games against rules and solver, its run in a folder, its agent."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.bitboards import board_planes, legal_moves
from models.files import WeightsError
from models.residual.inference import InferenceNetwork
from models.residual.net import ResidualNet, SavedResidual, symmetrised
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import TrainError
from search.agents.spec import make_agent
from search.engine.solver import Solver, solve_batch
from tests.oracles.jobs import files
from train.alphazero.options import SelfPlayOptions, preset
from train.alphazero.run import Measures, SelfPlayRun
from train.alphazero.self_play import play, search_of
from train.arena.batch import EvaluatorPlayer
from train.evaluation.exam import packaged_endgames
from train.evaluation.ladder import Ladder
from train.jobs.logs import no_progress
from train.jobs.run import Run, stored_options

pytestmark = pytest.mark.usefixtures("one_torch_thread")

CPU = torch.device("cpu")
TINY = {"games": 12, "simulations": 2, "steps": 3, "final_steps": 4, "generations": 2}
TINY |= {"batch_size": 16, "channels": 4, "blocks": 1}


def network_of(size):
    torch.manual_seed(size)
    net = ResidualNet(size, channels=4, blocks=1)
    torch.nn.init.normal_(net.value.weight, std=0.02)
    return net


@pytest.mark.parametrize(("variant", "method"), [("normal", "gumbel"), ("reversed", "puct")])
def test_positions_of_games_have_legal_policies_and_exact_ends(variant, method):
    options = preset(
        4, "cpu", **TINY | {"variant": variant, "method": method, "simulations": 5, "exact": 4, "td_lambda": 1.0}
    )
    rules = options.rules

    def solve(own, opp):
        return solve_batch(own, opp, rules, threads=1)

    search = search_of(InferenceNetwork(network_of(4)).logits_and_values, options, CPU)
    found = play(search, solve, options, 3, CPU)
    own, opp = (side.numpy().view(np.uint64) for side in (found.own, found.opp))
    empties = rules.square_count - np.bitwise_count(own | opp)
    assert set(empties.tolist()) >= set(range(1, 9))
    near = empties <= 4
    assert (found.score.numpy()[near] == solve(own[near], opp[near])).all()
    assert set(np.abs(found.score.numpy()[~near])) <= set(np.abs(found.score.numpy()[near]))  # what came of the game
    legal = board_planes(legal_moves(found.own, found.opp, rules.playable), 4).flatten(1).numpy() > 0
    policy = found.policy.numpy().astype(int)
    assert not policy[~legal].any()
    assert (np.abs(policy.sum(1) - 255 * legal.any(1)) <= 12).all()
    again = play(search, solve, options, 3, CPU)
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))


@pytest.mark.parametrize(("last_steps", "measured"), [(0, [1, 2]), (4, [1, 3])])
def test_a_run_is_measured_now_and_then_and_at_its_end(tmp_path, monkeypatch, last_steps, measured):
    monkeypatch.setattr(Measures, "of", lambda measures, learner: {"regret": 0.5})
    options = preset(4, "cpu", **TINY | {"generations": 3, "evaluate": 2, "final_steps": last_steps})
    figures = SelfPlayRun(tmp_path, options).run().figures
    assert [number for number, row in enumerate(figures) if "regret" in row] == measured


def test_an_elo_that_is_not_determined_is_none():
    measures = Measures(preset(4, "cpu", **TINY), CPU, None, None, no_progress)
    measures._ladder = Ladder(Rules(6), 4, rungs=("random",))
    measures._truth = packaged_endgames(Rules(6))
    found = measures.standing(EvaluatorPlayer("six-factor", Rules(6), 4, threads=1))
    assert (found["elo"], found["elo_high"]) == (None, None)
    assert isinstance(found["elo_low"], float)


def test_a_finished_run_that_is_looked_at_again_stays_as_it_is(tmp_path):
    options = preset(4, "cpu", **TINY, ladder=0)
    weights, before = (
        SelfPlayRun(tmp_path, options, command="reversi train alphazero --size 4").run().weights,
        files(tmp_path),
    )
    assert SelfPlayRun(tmp_path, options, command="reversi train alphazero --json").run().weights == weights
    assert files(tmp_path) == before
    weights.write_bytes(weights.read_bytes()[:-1])
    SelfPlayRun(tmp_path, options, command="reversi train alphazero --size 4").run()
    assert files(tmp_path) == before  # what was damaged is made again


def test_a_run_remembers_its_device(tmp_path):
    options = preset(4, "cuda", **TINY)
    Run(tmp_path, options).store_or_check_options()
    assert stored_options(tmp_path, SelfPlayOptions) == options
    with pytest.raises(TrainError, match="was started with device='cuda': expected the same value, not 'cpu'"):
        Run(tmp_path, replace(options, device="cpu")).store_or_check_options()


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    saved = SavedResidual(Rules(4), network_of(4), {"training": "none"})
    data = saved.to_bytes()
    path = tmp_path_factory.mktemp("zero") / saved.file_name(data)
    path.write_bytes(data)
    return path


def test_the_agent_plays_with_and_without_search(weights):
    position, played = Position.initial(Rules(4)), set()
    for spec in ("", ",simulations=12", ",simulations=6,exact=5", ",temperature=3", ",simulations=4,temperature=2"):
        agent, now = make_agent(f"zero:{weights}{spec}"), position
        while not now.is_over():
            action = agent.choose(now)
            assert action in now.legal_actions()
            now = now.play(action)
        played.add(now)
    assert len(played) > 1


def test_options_that_exclude_each_other_are_refused_before_the_game(weights):
    with pytest.raises(ReversiError, match="depth=2 with simulations=4"):
        make_agent(f"zero:{weights},simulations=4,depth=2")
    with pytest.raises(ReversiError, match="exact=17 with simulations on device 'cuda': expected at most 16, or"):
        make_agent(f"zero:{weights},simulations=4,exact=17,device=cuda")


def test_numbers_of_images_are_those_of_the_position():
    net, rules = network_of(6), Rules(6)
    own, opp = (torch.tensor([side]) for side in (Position.initial(rules).own, Position.initial(rules).opp))
    with torch.no_grad():
        numbers, value = symmetrised(net, rules)(own, opp)
    squares = numbers[0].view(6, 6)
    assert torch.allclose(squares, squares.flip(0, 1), atol=1e-5)  # as the start has it
    assert torch.allclose(squares, squares.T, atol=1e-5)
    assert value.shape == (1,)


def test_files_that_are_wrong_or_of_another_game_are_refused(weights, tmp_path):
    (tmp_path / "foreign.safetensors").write_bytes(b"\x80\x04cposix\nsystem\n.")
    damaged = tmp_path / weights.name
    damaged.write_bytes(weights.read_bytes()[:-1] + b"\0")
    for path, message in (
        (tmp_path / "foreign.safetensors", "expected safetensors"),
        (damaged, "is damaged"),
        (tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(WeightsError, match=message):
            make_agent(f"zero:{path}").check(Rules(4))
    with pytest.raises(WeightsError, match="is for 4x4 normal: expected one for 6x6 normal"):
        make_agent(f"zero:{weights}").choose(Position.initial(Rules(6)))
    with pytest.raises(
        WeightsError, match="zero for 4x4 reversed: the package has no network for it: expected zero:FILE"
    ):
        make_agent("zero").check(Rules(4, "reversed"))


@pytest.mark.parametrize("variant", ["normal", "reversed"])
@pytest.mark.parametrize("size", [6, 8])
def test_the_package_has_networks(size, variant):
    """How they were made is in their records; that they are strong, in docs/lab/rl.md."""
    rules = Rules(size, variant)
    saved = make_agent("zero").saved(rules)
    assert saved.record["command"].startswith(f"reversi rl zero --size {size}")
    points = saved.record["figures"][-1]["points"]
    assert points["greedy"] > 0.8
    assert points["six-factor:depth=2"] > 0.5
    assert make_agent("zero:simulations=2").choose(Position.initial(rules)) in Position.initial(rules).legal_actions()


@pytest.mark.slow
@pytest.mark.long
def test_4x4_is_played_perfectly_after_its_preset(tmp_path):
    """By the policy alone, from the start and from all openings of four plies: 5 minutes on two cores."""
    rules = Rules(4)
    agent = make_agent(
        f"zero:{SelfPlayRun(tmp_path, preset(4, 'cpu', evaluate=1000, ladder=2), threads=2).run().weights}"
    )
    openings, solver = {Position.initial(rules)}, Solver(rules)
    for _ in range(4):
        openings = {position.play(action) for position in openings for action in position.legal_actions()}
    assert len(openings) > 100
    for opening in {Position.initial(rules), *openings}:
        position = opening
        while not position.is_over():
            after = position.play(agent.choose(position))
            worth = -(after.score() if after.is_over() else solver.solve(after).score)
            assert worth == solver.solve(position).score, position
            position = after

"""Self-play: its games against the solver and the rules, its run in a folder, and files of residual networks."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from torch._dynamo.exc import TorchDynamoException

from models.bitboards import bit_counts, board_planes, board_tensor, legal_moves, transformed
from models.files import WeightsError
from models.residual.net import ResidualNet, SavedResidual, ValueFromBoards, read_residual, square_images
from models.torch_evaluator import TorchEvaluator
from reversi_env import Position, Rules, batch, functional
from reversi_env.errors import TrainError
from search.agents.spec import make_agent
from search.engine.solver import solve_batch
from train.alphazero.learner import Learner
from train.alphazero.options import SelfPlayOptions, preset
from train.alphazero.run import STATE, SelfPlayRun
from train.alphazero.self_play import (
    Chosen,
    Positions,
    let_strangers_in,
    play,
    played,
    random_actions,
    search_of,
    searched,
    worth,
)
from train.jobs.checkpoints import load_checkpoint, save_checkpoint
from train.jobs.run import Run

pytestmark = pytest.mark.usefixtures("one_torch_thread")

CPU = torch.device("cpu")
TINY = {"games": 12, "simulations": 2, "steps": 3, "final_steps": 4, "generations": 2}
TINY |= {"batch_size": 16, "channels": 4, "blocks": 1}


def boards_of(rules, count=200, seed=1):
    plies = np.arange(count) % (rules.square_count - 5)
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    return own, opp, board_tensor(own), board_tensor(opp)


def solver(rules):
    return partial(solve_batch, rules=rules, threads=1)


def discs(own, opp):
    """A network that anybody can check: own discs minus the other's, and all moves alike."""
    return torch.zeros(len(own), 36), (bit_counts(own) - bit_counts(opp)).float()


def test_images_of_squares_are_those_of_the_boards():
    for size in (4, 6, 8):
        rules = Rules(size)
        _, _, own, opp = boards_of(rules)
        legal = board_planes(legal_moves(own, opp, rules.playable), size).flatten(1)
        for symmetry, images in enumerate(square_images(rules)):
            image = torch.full_like(own, symmetry)
            expected = legal_moves(transformed(own, image), transformed(opp, image), rules.playable)
            assert (legal[:, images] == board_planes(expected, size).flatten(1)).all()


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_positions_are_worth_what_their_games_came_to(variant):
    """Near the end that is the solver's score; before it, as nothing else counts here, what a position further on was worth."""
    options = SelfPlayOptions(
        size=6, variant=variant, games=40, exact=9, td_lambda=1.0, simulations=4, greedy_share=0.0
    )
    rules, solve = options.rules, solver(options.rules)
    found = play(search_of(discs, options, CPU), solve, options, 3, CPU)
    own, opp = (side.numpy().view(np.uint64) for side in (found.own, found.opp))
    empties = rules.square_count - np.bitwise_count(own | opp)
    solved = empties <= 9
    assert solved.sum() > 80
    assert (found.score.numpy()[solved] == solve(own[solved], opp[solved])).all()
    assert set(np.unique(empties)) >= {8, 9, 10, 20}
    assert set(np.abs(found.score.numpy()[~solved])) <= set(np.abs(found.score.numpy()[solved]))
    likely = found.policy.float().sum(1)
    assert (((likely > 240) & (likely < 270)) | (likely == 0)).all()


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_a_game_that_ends_early_is_worth_its_result(variant):
    """The side that moves last wipes the other out, with 23 empty squares; the search had thought otherwise."""
    rules, moves = Rules(6, variant), iter([22, 28, 8, 9, 10, 16, 34, 7, 0])

    def choose(state, games):
        return Chosen.nothing(1, rules, CPU)._replace(action=torch.tensor([next(moves)]), value=torch.tensor([5.0]))

    plies, last = played(functional.init(1, rules, device="cpu"), choose, rules)
    found = worth(plies, last, solver(rules), rules, exact=4, td_lambda=1.0)
    assert found.score.tolist() == [rules.sign * 36.0 * (-1) ** number for number in range(9)]


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_strangers_take_what_they_can_and_spoil_no_values(variant):
    """Black in game 0, white in game 1, nobody in game 2. Before their moves a position is worth what came of these, or more."""
    options = SelfPlayOptions(size=6, variant=variant, games=4, greedy_share=0.5)
    rules, generator, taken = options.rules, torch.Generator().manual_seed(5), []

    def choose(state, games):
        found = Chosen.nothing(len(games), rules, CPU)
        found.action[:], found.value[:] = random_actions(state, generator), torch.randn(len(games), generator=generator)
        let_strangers_in(found, state, games, options, generator)
        taken.extend(
            zip(
                *(column.tolist() for column in (games, state.turn, *state[:2], found.action, found.strange)),
                strict=True,
            )
        )
        return found

    plies, last = played(functional.init(3, rules, device="cpu"), choose, rules)
    for game, turn, own, opp, action, strange in taken:
        assert strange == (game < 2 and turn == game)
        if strange:
            position = Position(rules, own, opp)
            best = max(-rules.sign * position.play(move).disc_difference() for move in position.legal_actions())
            assert -rules.sign * position.play(action).disc_difference() == best
    found = worth(plies, last, solver(rules), rules, exact=0, td_lambda=0.9)
    scores = iter(found.score.split([int(ply.kept.sum()) for ply in reversed(plies)]))
    now = functional.score(last).float()
    for ply in reversed(plies):
        for row, score in zip(ply.kept.nonzero().squeeze(1).tolist(), next(scores).tolist(), strict=True):
            value, onward = float(ply.value[row]), -float(now[row])
            assert score == pytest.approx(
                max(value, onward) if ply.strange[row] else 0.9 * onward + 0.1 * value, abs=1e-4
            )
            now[row] = score


@pytest.mark.parametrize("method", ["gumbel", "puct"])
def test_the_lot_counts_as_much_as_the_temperature_says(method):
    """At 0 nothing is drawn, at 1 something is; the policy that is learnt of PUCT's visits stays as it is."""
    options = SelfPlayOptions(size=6, method=method, simulations=12, exact=0)
    search, states = (
        search_of(discs, options, CPU),
        functional.init(50, options.rules, seed=1, opening_plies=8, device="cpu"),
    )

    def found(temperature, seed):
        return searched(search, states, 50, torch.Generator().manual_seed(seed), temperature)

    cold = found(0.0, 1)
    if method == "gumbel":
        assert (cold.action == searched(search, states, 50).action).all()
    else:
        best = cold.policy.max(1).values
        assert (cold.policy[range(50), cold.action] == best).all()
        chilly = found(0.01, 1)  # as good as 0: nothing is lost in the power
        assert (chilly.policy[range(50), chilly.action] == best).all()
        assert (chilly.policy == cold.policy).all()
    assert (found(1.0, 1).action != found(1.0, 2).action).any()


def test_presets_are_options():
    for size, device in product((4, 6, 8), ("cpu", "cuda")):
        options = preset(size, device)
        assert (options.size, options.device) == (size, device)
        assert options.exact < options.rules.square_count - options.plies
    assert replace(preset(8, "cuda"), device="cpu") == SelfPlayOptions()


def test_a_device_that_is_given_is_that_of_the_folder(tmp_path, reversi):
    """One that is not given is remembered, so that the default must not pass for one that is."""
    Run(tmp_path, preset(4, "cuda", **TINY)).store_or_check_options()
    status, _, told = reversi("train", "alphazero", "--out", tmp_path, "--device", "cpu")
    assert (status, "was started with device='cuda': expected the same value, not 'cpu'" in told) == (2, True)


def test_a_run_goes_on_with_its_own_options_and_state_alone(tmp_path):
    """That it ends with the same weights, whenever it is killed, is in test_kills.py."""

    def interrupt(doing, done, total):
        if doing.startswith("generation 2/2: learning"):
            raise KeyboardInterrupt

    options = preset(4, "cpu", **TINY)
    with pytest.raises(KeyboardInterrupt):
        SelfPlayRun(tmp_path, options, progress=interrupt).run()
    with pytest.raises(TrainError, match="was started with games=12: expected the same value, not 13"):
        SelfPlayRun(tmp_path, preset(4, "cpu", **{**TINY, "games": 13})).run()
    learner = Learner(options, CPU)
    learner.load(load_checkpoint(tmp_path / STATE))
    parameters = learner.optimiser.param_groups[0]["params"]
    assert all(learner.optimiser.state[one]["exp_avg"].stride() == one.stride() for one in parameters)
    state = load_checkpoint(tmp_path / STATE)
    state["net"]["entry.weight"] = state["net"]["entry.weight"][:, :5]
    save_checkpoint(tmp_path / STATE, state)
    with pytest.raises(TrainError, match="was started with another kind of network: expected one of this version"):
        SelfPlayRun(tmp_path, options).run()
    (tmp_path / STATE).write_bytes(b"nothing")
    with pytest.raises(TrainError, match="cannot be read"):
        SelfPlayRun(tmp_path, options).run()


def test_a_learner_goes_on_where_torch_cannot_compile(monkeypatch):
    def refused(*_):
        raise TorchDynamoException("no compiler here")

    monkeypatch.setattr(torch, "compile", lambda function, **how: refused)
    options = preset(4, "cpu", **TINY)
    own, opp = boards_of(options.rules, 20)[2:]
    positions = Positions(own, opp, torch.ones(20), torch.ones(20, 16, dtype=torch.uint8))
    with pytest.warns(RuntimeWarning, match="torch cannot compile _losses, which is slower without: no compiler here"):
        found = Learner(options, CPU, compiled=True).learn(positions, 2, lambda step: 1.0, seed=1)
    assert found == Learner(options, CPU).learn(positions, 2, lambda step: 1.0, seed=1)


def assert_it_plays(path, rules):
    """By its policy, one ply ahead and two, what is legal, and the same in every image of a position."""
    for own, opp in zip(*boards_of(rules, 8)[:2], strict=True):
        position = Position(rules, int(own), int(opp))
        if position.is_over():
            continue
        for depth in (0, 1, 2):
            assert make_agent(f"zero:{path},depth={depth},exact=0").choose(position) in position.legal_actions()
    with pytest.raises(WeightsError, match="is for 4x4 normal: expected one for 6x6 normal"):
        make_agent(f"zero:{path},depth=1").choose(Position.initial(Rules(6)))


def test_a_network_is_told_whether_the_number_of_empties_is_odd():
    rules = Rules(6)
    own, opp, *boards = boards_of(rules)
    seen = []
    net = ResidualNet(6, channels=4, blocks=1)
    net.entry.register_forward_hook(lambda module, given, found: seen.append(given[0]))
    net(*boards)
    odd = torch.from_numpy(np.bitwise_count(own | opp) % 2 == 1)
    assert seen[0].shape[1] == 6
    assert (seen[0][:, 5] == odd[:, None, None]).all()
    assert 50 < odd.sum() < 150


def test_the_packaged_6x6_network_does_not_use_the_plane_of_odd_empties():
    """It was trained with five planes, and saved with zeros for the sixth: the same logits and values."""
    rules = Rules(6)
    net, boards = make_agent("zero").saved(rules).net, boards_of(rules)[2:]
    maps, (logits, values) = [], net(*boards)
    hook = net.entry.register_forward_hook(lambda module, given, found: maps.append(given[0]))
    net(*boards)
    hook.remove()
    with torch.no_grad():
        five = torch.nn.functional.conv2d(maps[0][:, :5], net.entry.weight[:, :5], net.entry.bias, padding=1)
        expected = net.heads(net.blocks(torch.relu(five)))
    assert torch.equal(logits, expected[0])
    assert torch.equal(values, expected[1])


def test_files_of_residual_networks_are_checked(tmp_path):
    rules = Rules(4)
    net = ResidualNet(4, channels=4, blocks=1)
    torch.nn.init.normal_(net.value.weight, std=0.01)
    saved = SavedResidual(rules, net, {"training": "none"})
    data = saved.to_bytes()
    path = tmp_path / saved.file_name(data)
    path.write_bytes(data)
    found = read_residual(path)
    own, opp, *_ = boards_of(rules, 20)
    evaluator = TorchEvaluator(ValueFromBoards(found.net, symmetric=True), rules, inputs="boards")
    values = evaluator.static_values(own, opp)
    images = batch.canonical(own, opp)[:2]
    assert np.allclose(values, evaluator.static_values(*images), atol=1e-4)
    assert np.ptp(values) > 0
    assert_it_plays(path, rules)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(WeightsError, match="damaged"):
        read_residual(path)
    other = tmp_path / "other.safetensors"
    other.write_bytes(
        data.replace(b'"channels\\": 4', b'"channels\\": 6', 1).replace(b'channels\\\\": 4', b'channels\\\\": 6')
    )
    with pytest.raises(WeightsError):
        read_residual(other)

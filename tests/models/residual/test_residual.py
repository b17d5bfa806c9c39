"""Residual networks: symmetries, files, fused inference, and the agent `zero`."""

import numpy as np
import pytest
import torch

from models.bitboards import board_planes, board_tensor, legal_moves, transformed
from models.evaluator import NetworkEvaluator
from models.files import WeightsError, file_content, read_file
from models.residual import inference
from models.residual import net as residual
from models.residual.inference import fused_network
from models.torch_evaluator import TorchEvaluator
from reversi_env import Position, ReversiError, Rules, batch
from search.agents.spec import make_agent
from search.engine.limits import Limits
from search.engine.solver import Solver
from tests.oracles.processes import PATIENCE, in_background, wait_until


def network_of(size, blocks=1):
    torch.manual_seed(size)
    net = residual.ResidualNet(size, channels=4, blocks=blocks).requires_grad_(False)
    torch.nn.init.normal_(net.value.weight, std=0.02)
    for block in net.blocks:
        torch.nn.init.normal_(block.second.weight, std=0.2)
        torch.nn.init.normal_(block.second.bias)
    return net.eval()


def boards_of(rules, count=200, seed=1):
    own, opp = batch.random_positions(count, np.arange(count) % (rules.square_count - 5), rules, seed=seed)
    return own, opp, board_tensor(own), board_tensor(opp)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    saved = residual.SavedResidual(Rules(4), network_of(4), {"training": "none"})
    data = saved.to_bytes()
    path = tmp_path_factory.mktemp("zero") / saved.file_name(data)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("size", [4, 6, 8])
def test_square_images_match_transformed_boards(size):
    rules = Rules(size)
    _, _, own, opp = boards_of(rules)
    legal = board_planes(legal_moves(own, opp, rules.playable), size).flatten(1)
    for symmetry, images in enumerate(residual.square_images(rules)):
        image = torch.full_like(own, symmetry)
        expected = legal_moves(transformed(own, image), transformed(opp, image), rules.playable)
        assert (legal[:, images] == board_planes(expected, size).flatten(1)).all()


def test_symmetrised_network_is_equivariant():
    net, rules = network_of(6), Rules(6)
    own, opp = boards_of(rules, 8)[2:]
    logits, values = residual.symmetrised(net, rules)(own, opp)
    for symmetry, images in enumerate(residual.square_images(rules)):
        image = torch.full_like(own, symmetry)
        of_image = residual.symmetrised(net, rules)(transformed(own, image), transformed(opp, image))
        assert torch.allclose(of_image[0], logits[:, images], atol=1e-5)
        assert torch.allclose(of_image[1], values, atol=1e-4)


def test_parity_plane_is_set_for_odd_empties():
    own, opp, *boards = boards_of(Rules(6))
    planes, net = [], network_of(6)
    net.entry.register_forward_hook(lambda module, args, output: planes.append(args[0]))
    net(*boards)
    odd = torch.from_numpy(np.bitwise_count(own | opp) % 2 == 1)
    assert (planes[0][:, 5] == odd[:, None, None]).all()


def test_failed_compilation_or_graph_recording_warns_once(monkeypatch):
    def raise_error(*_, **__):
        raise RuntimeError("no compiler\nhere")

    def doubled(tensor):
        return (tensor + tensor,)

    monkeypatch.setattr(torch, "compile", lambda function, **kwargs: raise_error)
    monkeypatch.setattr(inference, "_Graph", raise_error)
    for function, operation in (
        (inference.TorchCompiled(doubled), "compile"),
        (inference.CudaGraphed(doubled), "record"),
    ):
        with pytest.warns(RuntimeWarning, match=f"{operation} doubled") as warnings:
            assert [function(torch.tensor([2]))[0].item() for _ in range(2)] == [4, 4]
        assert len(warnings) == 1


def test_values_of_many_positions_are_those_of_the_network(monkeypatch):
    monkeypatch.setitem(inference.CHUNK, "cpu", 16)  # several forward passes
    boards, net = boards_of(Rules(6), 40)[2:], network_of(6)
    assert torch.allclose(inference.InferenceNetwork(net).values(*boards), net(*boards)[1], atol=1e-4)


def test_best_policy_action_is_legal_with_highest_logit():
    rules, net = Rules(6), network_of(6)
    boards = boards_of(rules)
    actions = residual.best_policy_actions(net, *boards[2:], rules)
    for own, opp, logits, action in zip(*boards[:2], net(*boards[2:])[0], actions.tolist(), strict=True):
        legal = Position(rules, int(own), int(opp)).legal_actions()
        assert action == (0 if legal == [rules.pass_action] else max(legal, key=logits.__getitem__))


def test_fused_network_agrees_and_falls_back_without_cudnn(monkeypatch):
    def one_kernel(maps, weight, added, share, bias, *convolution):  # replaces the kernel of cuDNN, which needs CUDA
        stride, padding, dilation, groups = convolution
        plain = torch.convolution(maps, weight, bias, stride, padding, dilation, False, [0, 0], groups)
        return torch.relu(plain + share * added)

    net = network_of(6, blocks=2)
    boards = [board_tensor(side) for side in batch.random_positions(50, 12, Rules(6), seed=1)]
    expected = net(*boards)
    monkeypatch.setattr(torch, "compile", lambda function, **kwargs: function)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("cudnn_convolution_add_relu", one_kernel, "CPU")
        torch.testing.assert_close(fused_network(net)(*boards), expected)
    logits_and_values = fused_network(net)
    with pytest.warns(RuntimeWarning, match="cannot fuse") as warnings:
        outputs = [logits_and_values(*boards) for _ in range(2)]
    torch.testing.assert_close(outputs, [expected, expected])
    assert len(warnings) == 1


def test_network_from_file_has_symmetric_values(weights):
    rules = Rules(4)
    saved, (own, opp, *_) = residual.read_residual(weights), boards_of(rules, 20)
    evaluator = TorchEvaluator(residual.ValueFromBoards(saved.net, symmetric=True), rules, inputs="boards")
    values = evaluator.static_values(own, opp)
    assert np.allclose(values, evaluator.static_values(*batch.canonical(own, opp)[:2]), atol=1e-4)
    assert np.ptp(values) > 0


def test_file_of_another_network_or_game_is_rejected(weights, tmp_path):
    others = [tmp_path / f"other{channels}.safetensors" for channels in (6, 0)]
    for channels, other in zip((6, 0), others, strict=True):
        content = weights.read_bytes().replace(b'channels\\": 4', b'channels\\": %d' % channels, 1)
        other.write_bytes(content)
    for spec, rules, name in (
        *((f"zero:{other}", Rules(4), other.name) for other in others),
        (f"zero:{NetworkEvaluator().file(Rules(6))}", Rules(6), "architecture"),
        (f"zero:{weights}", Rules(6), "4x4 normal"),
        ("zero", Rules(4, "reversed"), "4x4 reversed"),
    ):
        with pytest.raises(WeightsError, match=name):
            make_agent(spec).check(rules)


def test_file_with_unusable_content_is_rejected(weights, tmp_path):
    header, tensors = read_file(weights)
    infinite = {name: np.full_like(array, np.inf) for name, array in tensors.items()}
    other = tmp_path / "other.safetensors"
    for content, reason in (
        (file_content(tensors, header | {"channels": 10**6}), "channels"),
        (file_content(infinite, header), "inf"),
    ):
        other.write_bytes(content)
        with pytest.raises(WeightsError, match=reason):
            residual.read_residual(other)


def test_agent_plays_with_and_without_search(weights):
    ends = set()
    searches = "simulations=12 simulations=6,exact=5 time=0.02,exact=0 simulations=4,temperature=2 depth=2,exact=0"
    for options in ("temperature=0", "temperature=3", *searches.split()):
        agent, position = make_agent(f"zero:{weights},{options}"), Position.initial(Rules(4))
        while not position.is_over():
            action = agent.choose(position)
            assert action in position.legal_actions()
            position = position.play(action)
        ends.add(position)
    assert len(ends) > 1


def test_conflicting_options_are_rejected(weights):
    for options, name in (("simulations=4,depth=2", "depth=2"), ("depth=3,time=1", "depth=3")):
        with pytest.raises(ReversiError, match=name):
            make_agent(f"zero:{weights},{options}")


def test_search_ends_by_stop_soft_limit_or_solver(weights):
    agent, start = make_agent(f"zero:{weights},time=100000,exact=0"), Position.initial(Rules(4))
    agent.prepare(start.rules)
    searching = in_background(lambda: agent.search(start))
    wait_until(lambda: agent.stop() or searching.done())  # a stop before the search begins has no effect
    assert searching.result().move in start.legal_moves()
    soft = in_background(lambda: agent.search(start, Limits(time=100_000, soft=0.1), multi_pv=3))
    assert soft.result(PATIENCE).moves[0].move in start.legal_moves()
    solved = make_agent(f"zero:{weights},simulations=4").search(start)
    assert (solved.exact, solved.value) == (True, Solver(start.rules).solve(start).score)


def test_search_replaces_a_solver_that_takes_too_long():
    agent, rules = make_agent("zero:time=0.1,exact=30"), Rules(6)
    position = Position(rules, *map(int, np.concatenate(batch.random_positions(1, 4, rules, seed=2))))
    agent.prepare(rules)
    result = agent.search(position)
    assert not result.exact
    assert result.move in position.legal_moves()
    assert not agent.search(position, Limits(time=1e-6)).exact  # the stop comes before the solver begins


@pytest.mark.parametrize("variant", ["normal", "reversed"])
@pytest.mark.parametrize("size", [6, 8])
def test_package_has_strong_networks(size, variant):
    rules = Rules(size, variant)
    points = make_agent("zero").load(rules).record["figures"][-1]["points"]
    assert points["greedy"] > 0.8 > 0.5 < points["six-factor:depth=2"]
    assert make_agent("zero:simulations=2").choose(Position.initial(rules)) in Position.initial(rules).legal_actions()

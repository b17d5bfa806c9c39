"""The batched tree search against a reference in plain Python (one game, node by node) and against the solver."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from models.bitboards import board_tensor
from models.mcts import search as tree_search
from models.mcts.search import TreeSearch, considered_visits_sequence
from reversi_env import Position, ReversiError, Rules, batch, functional
from search.engine.solver import solve_batch
from tests.oracles.cuda import HAS_GPU, TRITON_SIMULATES, random_function
from tests.oracles.processes import output_of


def roots_of(rules, count, seed=3):
    plies = np.linspace(0, rules.square_count - 6, count).astype(np.int64)
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    going = ~batch.is_over(own, opp, rules)
    return own[going], opp[going]


class Node:
    def __init__(self, reference, position):
        self.position, self.children = position, {}
        self.visits, self.total = 0, 0.0
        boards = [board_tensor(np.array([side], np.uint64)) for side in (position.own, position.opp)]
        logits, discs = (output[0].tolist() for output in reference.network(*boards))
        self.logits = {action: [*logits, 0.0][action] for action in position.legal_actions()}
        self.terminal, value = position.is_over(), discs
        if self.terminal:
            value = position.score()
        elif position.empties <= reference.exact:
            self.terminal = True
            value = int(solve_batch(*(board.numpy().view(np.uint64) for board in boards), reference.rules)[0])
        self.raw_value = value / reference.rules.square_count

    def policy(self):
        return softmax(self.logits)

    def count(self, action):
        return self.children[action].visits if action in self.children else 0

    def values(self):
        """Return the completed Q-values of all actions."""
        seen = {action: -child.total / child.visits for action, child in self.children.items()}
        probs, visits = self.policy(), sum(child.visits for child in self.children.values())
        mixed = self.raw_value
        if seen:
            visited = sum(probs[action] * value for action, value in seen.items()) / sum(probs[a] for a in seen)
            mixed = (self.raw_value + visits * visited) / (1 + visits)
        return {action: seen.get(action, mixed) for action in self.logits}

    def improved(self):
        strength = 50 + max((child.visits for child in self.children.values()), default=0)
        return {action: self.logits[action] + strength * value for action, value in self.values().items()}


def softmax(logits):
    highest = max(logits.values())
    total = sum(math.exp(logit - highest) for logit in logits.values())
    return {action: math.exp(logit - highest) / total for action, logit in logits.items()}


@dataclass
class Reference:
    network: Callable
    rules: Rules
    simulations: int
    method: str = "gumbel"
    max_considered_actions: int = 16
    exact: int = 0
    max_depth: int = 24

    def run(self, position, noise):
        root = Node(self, position)
        root.visits, root.total = 1, root.raw_value
        if self.method == "puct":
            probs, total_noise = root.policy(), sum(noise[action] for action in root.logits)
            root.logits = {a: math.log(0.75 * share + 0.25 * noise[a] / total_noise) for a, share in probs.items()}
        plan = considered_visits_sequence(min(self.max_considered_actions, len(root.logits)), self.simulations)
        for simulation in range(self.simulations):
            self.simulate(root, plan[simulation], noise)
        if self.method == "puct":
            policy = {action: root.count(action) / self.simulations for action in root.logits}
            best = max(root.logits, key=root.count)
        else:
            policy, improved = softmax(root.improved()), root.improved()
            most = max(root.count(action) for action in root.logits)
            left = [action for action in root.logits if root.count(action) == most]
            best = max(left, key=lambda action: noise[action] + improved[action])
        return best, policy, {action: root.count(action) for action in root.logits}

    def simulate(self, root, considered_visits, noise):
        node, path = root, [root]
        while True:
            action = self.at_root(node, considered_visits, noise) if node is root else self.below(node)
            expanded = action in node.children
            if not expanded:
                node.children[action] = Node(self, node.position.play(action))
            node = node.children[action]
            path.append(node)
            if not expanded or node.terminal or len(path) > self.max_depth:
                break
        for height, node in enumerate(reversed(path)):
            node.visits += 1
            node.total += (-1) ** height * path[-1].raw_value

    def at_root(self, root, considered_visits, noise):
        if self.method == "puct":
            return self.below(root)
        improved = root.improved()
        left = [action for action in root.logits if root.count(action) == considered_visits]
        return max(left, key=lambda action: noise[action] + improved[action])

    def below(self, node):
        visits = sum(child.visits for child in node.children.values())
        if self.method == "puct":
            return max(node.logits, key=self.bounds(node).get)
        policy = softmax(node.improved())
        return max(node.logits, key=lambda action: policy[action] - node.count(action) / (1 + visits))

    def bounds(self, node):
        mean, policy = node.total / node.visits, node.policy()
        values = {a: -node.children[a].total / node.children[a].visits if a in node.children else mean for a in policy}
        low, high = min(mean, *values.values()), max(mean, *values.values())
        width = max(high - low, 1 / self.rules.square_count)
        weight = (1.25 + math.log((1 + 19652 + node.visits) / 19652)) * math.sqrt(node.visits)
        return {a: (v - low) / width + weight * policy[a] / (1 + node.count(a)) for a, v in values.items()}


@pytest.mark.parametrize(
    ("size", "variant", "how"),
    [
        (4, "reversed", {"simulations": 24, "max_considered_actions": 4}),
        pytest.param(6, "normal", {"simulations": 33, "exact": 5}, marks=pytest.mark.slow),
        (8, "normal", {"simulations": 16, "max_considered_actions": 8, "max_depth": 2}),
        pytest.param(6, "reversed", {"simulations": 24, "method": "puct"}, marks=pytest.mark.slow),
        (4, "normal", {"simulations": 25, "method": "puct", "exact": 3}),
    ],
)
def test_batched_search_equals_reference_search(size, variant, how):
    rules, network = Rules(size, variant), random_function(size)
    own, opp = roots_of(rules, 12)
    search, reference = TreeSearch(network, rules, **how), Reference(network, rules, **how)
    noise = search.noise(len(own), torch.Generator().manual_seed(5)).double()
    output = search.run(functional.from_boards(board_tensor(own), board_tensor(opp), rules), noise)
    assert torch.allclose(output.policy.sum(1), torch.ones(len(own), dtype=torch.float64))
    for row in range(len(own)):
        position = Position(rules, int(own[row]), int(opp[row]))
        best, policy, visits = reference.run(position, noise[row].tolist())
        assert {a: int(output.visits[row, a]) for a in visits} == visits
        assert int(output.visits[row].sum()) == how["simulations"]
        assert {a: float(output.policy[row, a]) for a in policy} == pytest.approx(policy)
        assert int(output.action[row]) == best


def test_search_without_working_kernels_falls_back_with_warning(monkeypatch):
    class Kernels:
        def __init__(self, *_, **__):
            pass

        def raise_error(self, *_):
            raise OSError("no compiler here")

        select = expand_and_backup = raise_error

    rules = Rules(4)
    roots = functional.init(3, rules, seed=1, opening_plies=4, device="cpu")
    expected = TreeSearch(random_function(4), rules, 6).run(roots)
    monkeypatch.setattr(tree_search, "kernels_for", lambda device: SimpleNamespace(Kernels=Kernels))
    monkeypatch.setattr(torch, "compile", lambda function, **how: function)
    search = TreeSearch(random_function(4), rules, 6, compiled=True)
    with pytest.warns(RuntimeWarning, match="no compiler here") as caught:
        output = [search.run(roots) for _ in range(2)]
    torch.testing.assert_close(output, [expected, expected])
    assert len(caught) == 2


def test_kernels_with_wrong_results_are_not_used(monkeypatch):
    rules = Rules(4)
    roots = functional.init(20, rules, seed=1, opening_plies=4, device="cpu")
    plain = TreeSearch(random_function(4), rules, 6)

    class Kernels:
        def __init__(self, rules, max_depth, puct):
            self.expand_and_backup = plain._expand_and_backup

        def select(self, tree, games, number, gumbel, considered_visits):
            return plain._select(tree, games, number, gumbel if right else -gumbel, considered_visits)

    monkeypatch.setattr(tree_search, "kernels_for", lambda device: SimpleNamespace(Kernels=Kernels))
    monkeypatch.setattr(torch, "compile", lambda function, **how: function)
    noise = 10 * plain.noise(20, torch.Generator().manual_seed(1))
    for right in (True, False):
        search = TreeSearch(random_function(4), rules, 6, compiled=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search._check_kernels(roots, noise)
        assert len(caught) == (0 if right else 1)
        torch.testing.assert_close(search.run(roots, noise), plain.run(roots, noise))


@pytest.mark.parametrize(
    ("variant", "method", "plies", "exact", "share"),
    [
        *(("normal", "gumbel", 8, 0, 0.8), ("normal", "gumbel", 5, 10, 1), ("normal", "puct", 5, 10, 1)),
        *(("reversed", "gumbel", 5, 10, 1), ("reversed", "puct", 5, 10, 1)),
    ],
)
def test_search_with_uniform_network_plays_like_the_solver(variant, method, plies, exact, share):

    def uniform(own, opp):
        return torch.zeros(len(own), 16), torch.zeros(len(own))

    rules = Rules(4, variant)
    own, opp = batch.random_positions(300, plies, rules, seed=3)
    own, opp = (side[batch.legal_moves(own, opp, rules) != 0] for side in (own, opp))
    search = TreeSearch(uniform, rules, 64, method=method, exact=exact)
    roots = functional.from_boards(board_tensor(own), board_tensor(opp), rules)
    after = functional.step(roots, search.run(roots).action)
    scores = -solve_batch(*(side.numpy().view(np.uint64) for side in after[:2]), rules).astype(int)
    assert (scores == solve_batch(own, opp, rules)).mean() >= share


@pytest.mark.parametrize("wrong", [{"method": "uct"}, {"simulations": 0}])
def test_invalid_search_options_are_rejected(wrong):
    with pytest.raises(ReversiError, match=f"{next(iter(wrong))}="):
        TreeSearch(random_function(4), Rules(4), **wrong)


def test_states_of_another_size_are_rejected():
    with pytest.raises(ReversiError, match="size=6"):
        TreeSearch(random_function(4), Rules(4)).run(functional.init(2, Rules(6), device="cpu"))


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("triton"), reason="triton is not installed")
def test_triton_kernels_equal_torch_operations():
    lines = output_of("-m", "tests.oracles.cuda", "trees", *["cuda"] * HAS_GPU, **TRITON_SIMULATES)
    assert len(lines) == 5
    assert all(line.endswith("games alike") for line in lines)

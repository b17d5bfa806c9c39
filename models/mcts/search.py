"""`TreeSearch`: AlphaZero's search in thousands of games at once, all of their trees in a few tensors on one device.

Names follow mctx. Unlike there, Q-values are not rescaled to 0 … 1 and have the factor 1 (`models.kernels.tree.VALUE_SCALE`), since
they are shares of the board.

``gumbel`` (Danihelka et al., "Policy improvement by planning with Gumbel", 2022): a few actions are sampled at the root without
replacement, and sequential halving shares the simulations among them; interior nodes follow the improved policy without noise.
Unvisited actions get the mixed value (completed Q-values), so the improved policy is better than the prior even after a few
simulations. ``puct`` (Silver et al., 2018): an upper confidence bound decides at every node.

A simulation selects a leaf in all trees at once, expands it with the network's logits and value, and backs the value up. Nothing
waits for the device. Turns alternate, passes are moves, so a value changes its sign with every ply. A value is a share of the
board: the score in discs for the side to move, divided by the number of squares.

>>> from reversi_env import Rules
>>> def uniform(own, opp):
...     return torch.zeros(len(own), 36), torch.zeros(len(own))
>>> search = TreeSearch(uniform, Rules(6), simulations=8)
>>> output = search.run(functional.init(3, Rules(6), device="cpu"))
>>> output.visits.sum(1).tolist(), output.policy.shape
([8, 8, 8], torch.Size([3, 37]))
"""

import warnings
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from models.bitboards import bit_counts
from models.mcts.tree import PB_C_BASE, PB_C_INIT, NetworkOutput, Selection, Tree, node_of
from models.residual.inference import CudaGraphed, TorchCompiled, WithFallback
from models.residual.net import ILLEGAL_LOGIT, PolicyValueFunction
from reversi_env import ReversiError, Rules, functional
from reversi_env.errors import check_integer, extra_libraries, quoted
from reversi_env.functional import State
from search.engine.solver import solve_batch

with extra_libraries():
    import torch
    from torch import Tensor

Method = Literal["gumbel", "puct"]

#: Share of Dirichlet noise in the policy of the root.
DIRICHLET_FRACTION = 0.25
#: Dirichlet's α is this number divided by the average number of moves, a sixth of the number of squares.
DIRICHLET_ALPHA_SUM = 10.0
#: Minimum of the gamma samples of which Dirichlet noise is made.
MIN_GAMMA = 1e-6
#: Minimum share of games in which the kernels must give the same visit counts as torch operations.
MIN_EQUAL_SHARE = 0.9
#: Maximum depth of a simulation in plies. A node at this depth is evaluated and backed up again at every visit.
MAX_DEPTH = 24


class SearchOutput(NamedTuple):
    """The result of a search of each game.

    ``action``: the move to play. ``policy``, ``(n, actions)``: action weights, the policy target for training. ``value``: share
    of the board for the side to move. ``visits``, ``(n, actions)``: visit counts.
    """

    action: Tensor
    policy: Tensor
    value: Tensor
    visits: Tensor


class Descent(NamedTuple):
    """The state of the selection in each tree: the last *action*, from *parent* to *leaf*, and whether it is still *active*.

    ``path_node``: the node to append to the path: the leaf, or `simulations` + 1 (no node) if the path has ended earlier.
    """

    parent: Tensor
    action: Tensor
    leaf: Tensor
    path_node: Tensor
    active: Tensor


class TreeSearch:
    """A tree search of many positions at once, with one network and the rules of one size and variant.

    Args:
        network: returns policy logits of squares and values in discs of boards; the search computes in their dtype.
        rules: the game.
        simulations: simulations per search.
        method: ``gumbel`` or ``puct``.
        max_considered_actions: number of actions that Gumbel noise selects at the root.
        exact: solve positions with at most this many empties, on the device of the positions. The host then waits for a GPU in
            every simulation.
        threads: threads of the solver on a CPU.
        max_depth: maximum depth of a simulation in plies.
        compiled: on a GPU run selection, expansion and backup by kernels (`models.mcts.kernels`), or let torch compile the
            selection where triton is missing, and record the whole search as one CUDA graph.

    """

    def __init__(
        self,
        network: PolicyValueFunction,
        rules: Rules,
        simulations: int = 32,
        *,
        method: Method = "gumbel",
        max_considered_actions: int = 16,
        exact: int = 0,
        max_depth: int = MAX_DEPTH,
        threads: int | None = 1,
        compiled: bool = False,
    ) -> None:
        if method not in ("gumbel", "puct"):
            raise ReversiError(f"method={quoted(method)}: expected 'gumbel' or 'puct'")
        self.network, self.rules, self.simulations, self.method = network, rules, simulations, method
        self.max_considered_actions, self.max_depth = max_considered_actions, max_depth
        for name in ("simulations", "max_considered_actions", "max_depth"):
            check_integer(name, getattr(self, name), 1, 1 << 31)
        self.exact, self.threads, self.compiled = exact, threads, compiled
        self._tables: dict[torch.device, Tensor] = {}
        self._implementations: dict[torch.device, tuple[Any, Any]] = {}
        self._select_below_root = self._puct_action if method == "puct" else self._interior_action
        self._graphed: CudaGraphed | None = None

    def noise(self, games: int, generator: torch.Generator) -> Tensor:
        """Return Gumbel noise, or gamma samples for Dirichlet noise, for one search of that many games."""
        shape, device = (games, self.rules.square_count + 1), generator.device
        if self.method == "gumbel":
            return torch.empty(shape, device=device).exponential_(generator=generator).log_().neg_()
        seed = int(torch.randint(2**62, (1,), generator=generator, device=device))
        samples = np.random.default_rng(seed).standard_gamma(DIRICHLET_ALPHA_SUM / (self.rules.square_count / 6), shape)
        return torch.from_numpy(samples).to(device, torch.float32).clamp_(min=MIN_GAMMA)

    def run(self, roots: State, noise: Tensor | None = None) -> SearchOutput:
        """Search from these positions, ``(n,)``; without *noise* the search is deterministic.

        The output for a game that is over has no meaning.
        """
        if (roots.rules.size, roots.rules.variant) != (self.rules.size, self.rules.variant):
            raise ReversiError(f"states of {roots.rules}: expected those of {self.rules}")
        with torch.no_grad():
            if not (self.compiled and roots.own.is_cuda and not self.exact):
                return self._search(roots, noise)
            if self._graphed is None:
                self._check_kernels(roots, noise)
                kind = type(roots)
                self._graphed = CudaGraphed(lambda noise, *fields: self._search(kind(*fields), noise))
            return SearchOutput(*self._graphed(noise, *roots))

    def _check_kernels(self, roots: State, noise: Tensor | None) -> None:
        """Compare the kernels with the torch operations on one search; do not use kernels that differ on this device.

        The installed triton compiles the kernels, perhaps for a GPU on which they have never run, and a wrong tree would look like
        a network that does not learn. Sums are rounded differently, so a few games may differ.
        """
        plain = TreeSearch(
            self.network,
            self.rules,
            self.simulations,
            method=self.method,
            max_considered_actions=self.max_considered_actions,
            max_depth=self.max_depth,
        )
        equal = (self._search(roots, noise).visits == plain._search(roots, noise).visits).all(1).float().mean()
        if equal < MIN_EQUAL_SHARE:
            text = f"the kernels of the tree search are not used: only {equal:.0%} of the games have equal visit counts"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            self._implementations[roots.own.device] = self._select, self._expand_and_backup

    # --- all simulations --------------------------------------------------------------------------

    def _search(self, roots: State, noise: Tensor | None) -> SearchOutput:
        logits, raw_values = self._logits_and_values(roots, self._network_output(roots, roots=True))
        tree = self._init_tree(roots, logits, raw_values)
        games = torch.arange(len(raw_values), device=raw_values.device)
        if self.method == "puct" and noise is not None:
            tree.prior_logits[:, 0] = _add_dirichlet_noise(logits, noise)
        gumbel = torch.zeros_like(logits) if noise is None or self.method == "puct" else noise.to(logits.dtype)
        considered = (logits > ILLEGAL_LOGIT).sum(1).clamp(max=self.max_considered_actions)
        considered_visits = self._considered_visits_table(raw_values.device)[considered].T.contiguous()
        for simulation in range(self.simulations):
            self._simulate(tree, games, simulation + 1, gumbel, considered_visits[simulation])
        return self._output(tree, games, gumbel)

    def _considered_visits_table(self, device: torch.device) -> Tensor:
        """Return the sequences for all numbers of actions, copied to the device once, since a CUDA graph cannot wait."""
        if device not in self._tables:
            counts = range(min(self.max_considered_actions, self.rules.square_count) + 1)
            table = [considered_visits_sequence(count, self.simulations) for count in counts]
            self._tables[device] = torch.tensor(table, device=device)
        return self._tables[device]

    def _operations(self, device: torch.device) -> tuple[Any, Any]:
        """Return `_select` and `_expand_and_backup`, as kernels if there are any for this device."""
        if device not in self._implementations:
            operations: tuple[Any, Any] = self._select, self._expand_and_backup
            if self.compiled and (module := kernels_for(device)):
                kernels = module.Kernels(self.rules, self.max_depth, puct=self.method == "puct")
                pairs = zip((kernels.select, kernels.expand_and_backup), operations, strict=True)
                select, backup = (WithFallback("run a kernel for", *pair, Exception) for pair in pairs)
                operations = select, backup
            self._implementations[device] = operations
        return self._implementations[device]

    def _init_tree(self, roots: State, logits: Tensor, raw_values: Tensor) -> Tree:
        games, nodes = len(raw_values), self.simulations + 1
        state = type(roots)(*(field[:, None].repeat(1, nodes) for field in roots))
        children = torch.full((games, nodes, logits.shape[1]), -1, dtype=torch.int64, device=raw_values.device)
        visits, value_sums = raw_values.new_zeros((2, games, nodes + 1))
        visits[:, 0], value_sums[:, 0] = 1, raw_values
        values = raw_values[:, None].repeat(1, nodes)
        terminal = torch.zeros_like(values, dtype=torch.bool)
        return Tree(state, children, logits[:, None].repeat(1, nodes, 1), values, visits, value_sums, terminal)

    def _simulate(self, tree: Tree, games: Tensor, number: int, gumbel: Tensor, considered_visits: Tensor) -> None:
        """Add node *number* to all trees, and its value to the nodes above."""
        select, expand_and_backup = self._operations(games.device)
        selection = select(tree, games, number, gumbel, considered_visits)
        state = functional.step(selection.parent_state, selection.action)
        expand_and_backup(tree, games, selection, state, self._network_output(state))

    # --- selection --------------------------------------------------------------------------------

    def _select(self, tree: Tree, games: Tensor, number: int, gumbel: Tensor, considered_visits: Tensor) -> Selection:
        """Select the path to node *number*, or to a terminal one."""
        new_node = torch.full_like(games, number)
        descent = self._first_ply(tree, games, new_node, gumbel, considered_visits)
        path = [torch.zeros_like(games), descent.path_node]
        for _ in range(1, min(number, self.max_depth)):
            if not games.is_cuda and not descent.active.any():  # the host does not wait for a GPU
                break
            descent = self._next_ply(tree, games, new_node, descent)
            path.append(descent.path_node)
        parent_state = type(tree.state)(*(field[games, descent.parent] for field in tree.state))
        return Selection(descent.parent, descent.action, descent.leaf, torch.stack(path, 1), parent_state)

    @cached_property
    def _first_ply(self) -> Any:
        return TorchCompiled(self._select_from_root) if self.compiled else self._select_from_root

    @cached_property
    def _next_ply(self) -> Any:
        return TorchCompiled(self._select_further) if self.compiled else self._select_further

    def _select_from_root(
        self, tree: Tree, games: Tensor, new_node: Tensor, gumbel: Tensor, considered_visits: Tensor
    ) -> Descent:
        root = torch.zeros_like(games)
        action = self._root_action(tree, games, root, gumbel, considered_visits)
        active = torch.ones_like(root, dtype=torch.bool)
        return self._descend(tree, games, new_node, Descent(root, action, root, root, active))

    def _select_further(self, tree: Tree, games: Tensor, new_node: Tensor, descent: Descent) -> Descent:
        next_action = self._select_below_root(tree, games, descent.leaf)
        parent = torch.where(descent.active, descent.leaf, descent.parent)
        action = torch.where(descent.active, next_action, descent.action)
        return self._descend(tree, games, new_node, descent._replace(parent=parent, action=action))

    def _descend(self, tree: Tree, games: Tensor, new_node: Tensor, descent: Descent) -> Descent:
        """Go one ply down where the path is active; a child that does not exist yet is *new_node*."""
        child = tree.children[games, descent.parent, descent.action]
        leaf = torch.where(child < 0, new_node, child)
        path_node = torch.where(descent.active, leaf, self.simulations + 1)
        active = descent.active & (child >= 0) & ~tree.terminal[games, leaf]
        return Descent(descent.parent, descent.action, leaf, path_node, active)

    def _root_action(
        self, tree: Tree, games: Tensor, node: Tensor, gumbel: Tensor, considered_visits: Tensor
    ) -> Tensor:
        """Return the best action among those that sequential halving considers: those with *considered_visits*."""
        if self.method == "puct":
            return self._select_below_root(tree, games, node)
        stats = node_of(tree, games, node)
        considered = (stats.visits == considered_visits[:, None]) & (stats.prior_logits > ILLEGAL_LOGIT)
        return torch.where(considered, gumbel + stats.improved_logits, ILLEGAL_LOGIT).argmax(1)

    def _interior_action(self, tree: Tree, games: Tensor, node: Tensor) -> Tensor:
        """Return the action that brings the visits nearest to the improved policy."""
        stats = node_of(tree, games, node)
        visit_share = stats.visits / (1 + stats.visits.sum(1, keepdim=True))
        score = torch.softmax(stats.improved_logits, 1) - visit_share
        return torch.where(stats.prior_logits > ILLEGAL_LOGIT, score, ILLEGAL_LOGIT).argmax(1)

    def _puct_action(self, tree: Tree, games: Tensor, node: Tensor) -> Tensor:
        """Return the action with the highest upper bound.

        Values are scaled to 0 … 1 within the node. The divisor is at least one disc, so that tiny differences stay small.
        """
        stats = node_of(tree, games, node)
        visits, legal = tree.visits[games, node], stats.prior_logits > ILLEGAL_LOGIT
        mean = tree.value_sums[games, node] / visits
        values = torch.where(stats.visited, stats.values, mean[:, None])
        low = values.amin(1, keepdim=True)
        scaled = (values - low) / (values.amax(1, keepdim=True) - low).clamp(min=1 / self.rules.square_count)
        weight = (PB_C_INIT + torch.log((1 + PB_C_BASE + visits) / PB_C_BASE)) * visits.sqrt()
        bound = scaled + weight[:, None] * torch.softmax(stats.prior_logits, 1) / (1 + stats.visits)
        return torch.where(legal, bound, ILLEGAL_LOGIT).argmax(1)

    # --- expansion and backup ---------------------------------------------------------------------

    def _expand_and_backup(
        self, tree: Tree, games: Tensor, selection: Selection, state: State, output: NetworkOutput
    ) -> None:
        """Write the leaves, and add a visit and the value, with the sign of its side, to every node of the path."""
        logits, value = self._logits_and_values(state, output)
        tree.children[games, selection.parent, selection.action] = selection.leaf
        fields = (*tree.state, tree.prior_logits, tree.raw_values, tree.terminal)
        for field, leaf_values in zip(fields, (*state, logits, value, output.terminal), strict=True):
            field[games, selection.leaf] = leaf_values
        inside = selection.path <= self.simulations
        plies_below = inside.sum(1, keepdim=True) - 1 - torch.arange(selection.path.shape[1], device=value.device)
        signed = torch.where(plies_below % 2 == 0, value[:, None], -value[:, None])
        tree.visits.scatter_add_(1, selection.path, inside.to(value.dtype))
        tree.value_sums.scatter_add_(1, selection.path, signed)

    def _network_output(self, state: State, *, roots: bool = False) -> NetworkOutput:
        """Return the network's output and exact scores; logits of terminal positions have no meaning except at *roots*."""
        terminal, exact_scores = functional.is_over(state), functional.score(state)
        if self.exact:
            empties = self.rules.square_count - bit_counts(state.own | state.opp)
            solved = ~terminal & (empties <= self.exact)
            exact_scores[solved] = self._solve(state.own[solved], state.opp[solved])
            terminal = terminal | solved
        logits, values_in_discs = self._evaluate(
            state.own, state.opp, torch.zeros_like(terminal) if roots else terminal
        )
        return NetworkOutput(logits, values_in_discs, exact_scores, terminal)

    def _logits_and_values(self, state: State, output: NetworkOutput) -> tuple[Tensor, Tensor]:
        """Return prior logits of all actions, and values as shares of the board."""
        logits = torch.cat([output.logits, torch.zeros_like(output.logits[:, :1])], 1)
        exact_scores = output.exact_scores.to(output.values_in_discs.dtype)
        values = torch.where(output.terminal, exact_scores, output.values_in_discs)
        return torch.where(functional.legal(state), logits, ILLEGAL_LOGIT), values / self.rules.square_count

    def _evaluate(self, own: Tensor, opp: Tensor, unneeded: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and values of positions; a CPU skips those that are *unneeded*, a GPU always gets the whole batch."""
        if unneeded.is_cuda or not unneeded.any():
            return self.network(own, opp)
        rows = (~unneeded).nonzero().squeeze(1)
        some_logits, some_values = self.network(own[rows], opp[rows])
        logits = some_logits.new_zeros((len(own), self.rules.square_count))
        values_in_discs = some_values.new_zeros(len(own))
        logits[rows], values_in_discs[rows] = some_logits, some_values
        return logits, values_in_discs

    def _solve(self, own: Tensor, opp: Tensor) -> Tensor:
        mine, theirs = (side.cpu().numpy().view(np.uint64) for side in (own, opp))
        if own.is_cuda:
            from search.gpu.solver import solve_batch_cuda

            exact_scores = solve_batch_cuda(mine, theirs, self.rules, threads=self.threads)
        else:
            exact_scores = solve_batch(mine, theirs, self.rules, threads=self.threads)
        return torch.from_numpy(exact_scores).to(own.device)

    def _output(self, tree: Tree, games: Tensor, gumbel: Tensor) -> SearchOutput:
        stats = node_of(tree, games, torch.zeros_like(games))
        visits = stats.visits.long()
        if self.method == "puct":
            policy = stats.visits / stats.visits.sum(1, keepdim=True)
            return SearchOutput(stats.visits.argmax(1), policy, tree.value_sums[:, 0] / tree.visits[:, 0], visits)
        legal = stats.prior_logits > ILLEGAL_LOGIT
        most_visited = legal & (stats.visits == stats.visits.amax(1, keepdim=True))
        action = torch.where(most_visited, gumbel + stats.improved_logits, ILLEGAL_LOGIT).argmax(1)
        policy = torch.softmax(torch.where(legal, stats.improved_logits, ILLEGAL_LOGIT), 1)
        return SearchOutput(action, policy, (policy * stats.values).sum(1), visits)


@cache
def kernels_for(device: torch.device) -> Any:
    """Return the module `models.mcts.kernels` for a GPU; None if triton is missing, as in torch's builds for CPUs."""
    try:
        from models.mcts import kernels
    except ImportError:
        return None
    return kernels if device.type == "cuda" or kernels.INTERPRETED else None


def _add_dirichlet_noise(logits: Tensor, gamma_samples: Tensor) -> Tensor:
    legal = logits > ILLEGAL_LOGIT
    noise = torch.where(legal, gamma_samples.to(logits.dtype), 0.0)
    noise = noise / noise.sum(1, keepdim=True)
    prior_probs = (1 - DIRICHLET_FRACTION) * torch.softmax(logits, 1) + DIRICHLET_FRACTION * noise
    return torch.where(legal, prior_probs.clamp(min=torch.finfo(logits.dtype).tiny).log(), ILLEGAL_LOGIT)


def considered_visits_sequence(count: int, simulations: int) -> list[int]:
    """Return, for every simulation, the visit count of the actions among which sequential halving of *count* actions chooses.

    In a round all remaining actions get equally many visits; then the better half remains, at least two. The rounds share the
    simulations equally.

    >>> considered_visits_sequence(4, 12)
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """
    if count <= 1:
        return list(range(simulations))
    rounds, remaining, visits, sequence = (count - 1).bit_length(), count, 0, list[int]()
    while len(sequence) < simulations:
        for _ in range(max(1, simulations // (rounds * remaining))):
            sequence += [visits] * remaining
            visits += 1
        remaining = max(2, remaining // 2)
    return sequence[:simulations]

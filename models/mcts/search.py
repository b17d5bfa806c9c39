"""`TreeSearch`: AlphaZero's search in thousands of games at once, all of their trees in a few tensors on one device.

Names follow mctx. ``gumbel`` (Danihelka et al., "Policy improvement by planning with Gumbel", 2022): a few actions are sampled at
the root without replacement, and sequential halving shares the simulations among them; interior nodes follow the improved policy
without noise. Unvisited actions get the mixed value (completed Q-values), so the improved policy is better than the prior even
after a few simulations. ``puct`` (Silver et al., 2018): an upper confidence bound decides at every node.

A simulation selects a leaf in all trees at once, expands it with the network's logits and value, and backs the value up. Nothing
waits for the device. Turns alternate, passes are moves, so a value changes its sign with every ply. Values are shares of the
board: discs for the side to move over its squares.

>>> from reversi_env import Rules
>>> def knows_nothing(own, opp):
...     return torch.zeros(len(own), 36), torch.zeros(len(own))
>>> search = TreeSearch(knows_nothing, Rules(6), simulations=8)
>>> found = search.run(functional.init(3, Rules(6), device="cpu"))
>>> found.visits.sum(1).tolist(), found.policy.shape
([8, 8, 8], torch.Size([3, 37]))
"""

from __future__ import annotations

import warnings
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from models.bitboards import bit_counts
from models.mcts.tree import ILLEGAL_LOGIT, PB_C_BASE, PB_C_INIT, NetworkOutput, Selection, Tree, node_of
from models.residual.inference import CudaGraphed, TorchCompiled, WithFallback
from models.residual.net import PolicyValueFunction
from reversi_env import ReversiError, Rules, functional
from reversi_env.errors import extra_libraries, quoted
from reversi_env.functional import State
from search.engine.solver import solve_batch

with extra_libraries():
    import torch
    from torch import Tensor

Method = Literal["gumbel", "puct"]

#: Share of Dirichlet noise in the policy of the root.
DIRICHLET_FRACTION = 0.25
#: Moves that a usual position has, over which Dirichlet's noise with a sum of 10 is spread.
DIRICHLET_ALPHA_SUM, MIN_GAMMA = 10.0, 1e-6
#: Share of games that kernels search as torch's operations do, at least.
MIN_EQUAL_SHARE = 0.9
#: Maximum depth of a simulation in plies.
MAX_DEPTH = 24


class SearchOutput(NamedTuple):
    """The result of a search of each game.

    ``action``: the move to play. ``policy``, ``(n, actions)``: action weights, the target of a policy. ``value``: share
    of the board for the side to move. ``visits``, ``(n, actions)``.
    """

    action: Tensor
    policy: Tensor
    value: Tensor
    visits: Tensor


class Descent(NamedTuple):
    """The state of the selection in each tree: the last *action*, from *parent* to *leaf*, and whether it is still *active*.

    ``path_node``: the leaf as well, but `simulations` + 1 where the path ended before.
    """

    parent: Tensor
    action: Tensor
    leaf: Tensor
    path_node: Tensor
    active: Tensor


class TreeSearch:
    """A search of so many *simulations* with a *network* for one game.

    Args:
        network: logits and values of boards; its results' precision is that of the search.
        rules: the game.
        simulations: simulations per search.
        method: ``gumbel`` or ``puct``.
        max_considered_actions: actions at the root that Gumbel noise selects.
        exact: from so many empty squares on positions are solved instead of asked about, by *threads* of the CPU or by the GPU;
            with it the host has to wait for the device.
        max_depth: maximum depth of a simulation in plies.
        compiled: on a GPU run selection, expansion and backup by kernels (`models.mcts.kernels`), or let torch compile the
            selection where triton is missing, and record all of a search as one CUDA graph.

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
        for name, number in (
            ("simulations", simulations),
            ("max_considered_actions", max_considered_actions),
            ("max_depth", max_depth),
        ):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ReversiError(f"{name}={quoted(number)}: expected a whole number of 1 or more")
        self.network, self.rules, self.simulations, self.method = network, rules, simulations, method
        self.max_considered_actions, self.exact, self.max_depth, self.threads = (
            max_considered_actions,
            exact,
            max_depth,
            threads,
        )
        self.compiled = compiled
        self._plans: dict[torch.device, Tensor] = {}
        self._twins: dict[torch.device, tuple[Any, Any]] = {}
        self._below = self._puct_action if method == "puct" else self._interior_action
        self._graphed: CudaGraphed | None = None

    def noise(self, games: int, generator: torch.Generator) -> Tensor:
        """Gumbel noise, or gamma samples for Dirichlet noise, for one search of so many games, on the generator's device."""
        shape, device = (games, self.rules.square_count + 1), generator.device
        if self.method == "gumbel":
            return torch.empty(shape, device=device).exponential_(generator=generator).log_().neg_()
        usual = self.rules.square_count / 6
        gamma_samples = torch._standard_gamma(
            torch.full(shape, DIRICHLET_ALPHA_SUM / usual, device=device), generator=generator
        )
        return gamma_samples.clamp_(min=MIN_GAMMA)

    def run(self, roots: State, noise: Tensor | None = None) -> SearchOutput:
        """Search from these positions, ``(n,)``; without *noise* nothing is left to chance.

        What it finds of a game that is over means nothing.
        """
        if (roots.rules.size, roots.rules.variant) != (self.rules.size, self.rules.variant):
            raise ReversiError(f"states of {roots.rules}: expected those of {self.rules}")
        with torch.no_grad():
            if not (self.compiled and roots.own.is_cuda and not self.exact):
                return self._search(roots, noise)
            if self._graphed is None:
                self._try_kernels(roots, noise)
                kind = type(roots)
                self._graphed = CudaGraphed(lambda noise, *fields: self._search(kind(*fields), noise))
            return SearchOutput(*self._graphed(noise, *roots))

    def _try_kernels(self, roots: State, noise: Tensor | None) -> None:
        """Search once with kernels and once without; those that find something else on this device are not used.

        They are compiled by what the user has installed, for a GPU that nobody has tried them on, and a tree that is wrong looks
        like a network that does not learn. Sums are rounded otherwise, so that a few games may well differ.
        """
        how: Any = {
            "method": self.method,
            "max_considered_actions": self.max_considered_actions,
            "max_depth": self.max_depth,
        }
        plain = TreeSearch(self.network, self.rules, self.simulations, **how)
        alike = (self._search(roots, noise).visits == plain._search(roots, noise).visits).all(1).float().mean()
        if alike < MIN_EQUAL_SHARE:
            text = f"the kernels of the tree search are not used: only {alike:.0%} of the games are searched as without them"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            self._twins[roots.own.device] = self._select, self._expand_and_backup

    # --- all simulations --------------------------------------------------------------------------

    def _search(self, roots: State, noise: Tensor | None) -> SearchOutput:
        logits, raw_values = self._logits_and_values(roots, self._network_output(roots, roots=True))
        tree = self._initial_trees(roots, logits, raw_values)
        games = torch.arange(len(raw_values), device=raw_values.device)
        if self.method == "puct" and noise is not None:
            tree.prior_logits[:, 0] = _add_dirichlet_noise(logits, noise)
        gumbel = torch.zeros_like(logits) if noise is None or self.method == "puct" else noise.to(logits.dtype)
        most = (logits > ILLEGAL_LOGIT).sum(1).clamp(max=self.max_considered_actions)
        plan = self._considered_visits(raw_values.device)[most].T.contiguous()
        for simulation in range(self.simulations):
            self._simulate(tree, games, simulation + 1, gumbel, plan[simulation])
        return self._search_output(tree, games, gumbel)

    def _considered_visits(self, device: torch.device) -> Tensor:
        """The visits that are considered, for all numbers of actions; copied to the device once, since a graph cannot wait."""
        if device not in self._plans:
            plans = [
                considered_visits_sequence(count, self.simulations) for count in range(self.max_considered_actions + 1)
            ]
            self._plans[device] = torch.tensor(plans, device=device)
        return self._plans[device]

    def _operations(self, device: torch.device) -> tuple[Any, Any]:
        """The operations `select` and `expand_and_backup`: kernels for this device, or torch's operations."""
        if device not in self._twins:
            select: Any = self._select
            expand_and_backup: Any = self._expand_and_backup
            if self.compiled and (made := kernels_for(device)):
                fast = made.Kernels(self.rules, self.max_depth, puct=self.method == "puct")
                select = WithFallback("run a kernel for", fast.select, select, Exception)
                expand_and_backup = WithFallback(
                    "run a kernel for", fast.expand_and_backup, expand_and_backup, Exception
                )
            self._twins[device] = select, expand_and_backup
        return self._twins[device]

    def _initial_trees(self, roots: State, logits: Tensor, raw_values: Tensor) -> Tree:
        """Trees that have only their roots."""
        games, nodes = len(raw_values), self.simulations + 1
        state = type(roots)(*(field[:, None].repeat(1, nodes) for field in roots))
        children = torch.full((games, nodes, logits.shape[1]), -1, dtype=torch.int64, device=raw_values.device)
        below = logits[:, None].repeat(1, nodes, 1)
        visits, total = raw_values.new_zeros((2, games, nodes + 1))
        visits[:, 0], total[:, 0] = 1, raw_values
        values = raw_values[:, None].repeat(1, nodes)
        return Tree(state, children, below, values, visits, total, torch.zeros_like(values, dtype=torch.bool))

    def _simulate(self, tree: Tree, games: Tensor, number: int, gumbel: Tensor, considered_visits: Tensor) -> None:
        """Add node *number* to all trees, and its value to the nodes above."""
        select, expand_and_backup = self._operations(games.device)
        selection = select(tree, games, number, gumbel, considered_visits)
        state = functional.step(selection.parent_state, selection.action)
        expand_and_backup(tree, games, selection, state, self._network_output(state))

    def _select(self, tree: Tree, games: Tensor, number: int, gumbel: Tensor, considered_visits: Tensor) -> Selection:
        """Select the path to node *number*, or to a terminal one."""
        new_node = torch.full_like(games, number)
        descent = self._first(tree, games, new_node, gumbel, considered_visits)
        path = [torch.zeros_like(games), descent.path_node]
        for _ in range(1, min(number, self.max_depth)):
            if not games.is_cuda and not descent.active.any():  # a GPU is not waited for
                break
            descent = self._next(tree, games, new_node, descent)
            path.append(descent.path_node)
        parent_state = type(tree.state)(*(field[games, descent.parent] for field in tree.state))
        return Selection(descent.parent, descent.action, descent.leaf, torch.stack(path, 1), parent_state)

    @cached_property
    def _first(self) -> Any:
        return TorchCompiled(self._descend_from_root) if self.compiled else self._descend_from_root

    @cached_property
    def _next(self) -> Any:
        return TorchCompiled(self._descend) if self.compiled else self._descend

    def _descend_from_root(
        self, tree: Tree, games: Tensor, new_node: Tensor, gumbel: Tensor, considered_visits: Tensor
    ) -> Descent:
        node = torch.zeros_like(games)
        action = self._root_action(tree, games, node, gumbel, considered_visits)
        return self._step_down(
            tree, games, new_node, Descent(node, action, node, node, torch.ones_like(node, dtype=torch.bool))
        )

    def _descend(self, tree: Tree, games: Tensor, new_node: Tensor, descent: Descent) -> Descent:
        chosen = self._below(tree, games, descent.leaf)
        parent, action = (
            torch.where(descent.active, descent.leaf, descent.parent),
            torch.where(descent.active, chosen, descent.action),
        )
        return self._step_down(tree, games, new_node, descent._replace(parent=parent, action=action))

    def _step_down(self, tree: Tree, games: Tensor, new_node: Tensor, descent: Descent) -> Descent:
        """Go one ply down where the path is active; a child that does not exist yet is *new_node*."""
        child = tree.children[games, descent.parent, descent.action]
        leaf = torch.where(child < 0, new_node, child)
        path_node = torch.where(descent.active, leaf, self.simulations + 1)
        active = descent.active & (child >= 0) & ~tree.terminal[games, leaf]
        return Descent(descent.parent, descent.action, leaf, path_node, active)

    def _expand_and_backup(
        self, tree: Tree, games: Tensor, selection: Selection, state: State, output: NetworkOutput
    ) -> None:
        """Write the leaves, and add a visit and the value, with the sign of its side, to every node of the path."""
        logits, value = self._logits_and_values(state, output)
        tree.children[games, selection.parent, selection.action] = selection.leaf
        fields, found = (
            (*tree.state, tree.prior_logits, tree.raw_values, tree.terminal),
            (*state, logits, value, output.terminal),
        )
        for field, one in zip(fields, found, strict=True):
            field[games, selection.leaf] = one
        inside = selection.path <= self.simulations
        below = inside.sum(1, keepdim=True) - 1 - torch.arange(selection.path.shape[1], device=value.device)
        signed = torch.where(below % 2 == 0, value[:, None], -value[:, None])
        tree.visits.scatter_add_(1, selection.path, inside.to(value.dtype))
        tree.value_sums.scatter_add_(1, selection.path, signed)

    def _network_output(self, state: State, *, roots: bool = False) -> NetworkOutput:
        """The output of the network, and the exact scores; the logits of terminal positions mean nothing except at *roots*."""
        terminal, exact_scores = functional.is_over(state), functional.score(state)
        if self.exact:
            empties = self.rules.square_count - bit_counts(state.own | state.opp)
            near = ~terminal & (empties <= self.exact)
            exact_scores[near] = self._exact_scores(state.own[near], state.opp[near])
            terminal = terminal | near
        return NetworkOutput(
            *self._network_values(state.own, state.opp, torch.zeros_like(terminal) if roots else terminal),
            exact_scores,
            terminal,
        )

    def _logits_and_values(self, state: State, output: NetworkOutput) -> tuple[Tensor, Tensor]:
        """Prior logits of legal actions, and values."""
        logits = torch.cat([output.logits, torch.zeros_like(output.logits[:, :1])], 1)
        values = torch.where(
            output.terminal, output.exact_scores.to(output.values_in_discs.dtype), output.values_in_discs
        )
        return torch.where(functional.legal(state), logits, ILLEGAL_LOGIT), values / self.rules.square_count

    def _network_values(self, own: Tensor, opp: Tensor, unneeded: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values of positions; a CPU skips those that are *unneeded*, a GPU always gets the whole batch."""
        if unneeded.is_cuda or not unneeded.any():
            return self.network(own, opp)
        rows = (~unneeded).nonzero().squeeze(1)
        some_logits, some_discs = self.network(own[rows], opp[rows])
        logits = some_logits.new_zeros((len(own), self.rules.square_count))
        discs = some_discs.new_zeros(len(own))
        logits[rows], discs[rows] = some_logits, some_discs
        return logits, discs

    def _exact_scores(self, own: Tensor, opp: Tensor) -> Tensor:
        """Exact scores in discs for the side to move."""
        mine, theirs = (side.cpu().numpy().view(np.uint64) for side in (own, opp))
        if own.is_cuda:
            from search.gpu.solver import solve_batch_cuda

            exact_scores = solve_batch_cuda(mine, theirs, self.rules, threads=self.threads)
        else:
            exact_scores = solve_batch(mine, theirs, self.rules, threads=self.threads)
        return torch.from_numpy(exact_scores).to(own.device)

    # --- which action -----------------------------------------------------------------------------

    def _root_action(
        self, tree: Tree, games: Tensor, node: Tensor, gumbel: Tensor, considered_visits: Tensor
    ) -> Tensor:
        """The best action among those that sequential halving still considers: those with *considered_visits*."""
        if self.method == "puct":
            return self._below(tree, games, node)
        stats = node_of(tree, games, node)
        left = (stats.visits == considered_visits[:, None]) & (stats.prior_logits > ILLEGAL_LOGIT)
        return torch.where(left, gumbel + stats.improved_logits, ILLEGAL_LOGIT).argmax(1)

    def _interior_action(self, tree: Tree, games: Tensor, node: Tensor) -> Tensor:
        """The action that brings the visits nearest to the improved policy."""
        stats = node_of(tree, games, node)
        share = stats.visits / (1 + stats.visits.sum(1, keepdim=True))
        wanted = torch.softmax(stats.improved_logits, 1) - share
        return torch.where(stats.prior_logits > ILLEGAL_LOGIT, wanted, ILLEGAL_LOGIT).argmax(1)

    def _puct_action(self, tree: Tree, games: Tensor, node: Tensor) -> Tensor:
        """The action with the highest upper bound; values are scaled to 0 … 1 within the node, but by a disc at least."""
        stats = node_of(tree, games, node)
        visits, legal = tree.visits[games, node], stats.prior_logits > ILLEGAL_LOGIT
        mean = tree.value_sums[games, node] / visits
        values = torch.where(stats.visited, stats.values, mean[:, None])
        low = values.amin(1, keepdim=True)
        scaled = (values - low) / (values.amax(1, keepdim=True) - low).clamp(min=1 / self.rules.square_count)
        weight = (PB_C_INIT + torch.log((1 + PB_C_BASE + visits) / PB_C_BASE)) * visits.sqrt()
        bound = scaled + weight[:, None] * torch.softmax(stats.prior_logits, 1) / (1 + stats.visits)
        return torch.where(legal, bound, ILLEGAL_LOGIT).argmax(1)

    def _search_output(self, tree: Tree, games: Tensor, gumbel: Tensor) -> SearchOutput:
        stats = node_of(tree, games, torch.zeros_like(games))
        legal, most = stats.prior_logits > ILLEGAL_LOGIT, stats.visits.amax(1, keepdim=True)
        if self.method == "puct":
            policy = stats.visits / stats.visits.sum(1, keepdim=True)
            value = tree.value_sums[:, 0] / tree.visits[:, 0]
            return SearchOutput(stats.visits.argmax(1), policy, value, stats.visits.long())
        best = torch.where(legal & (stats.visits == most), gumbel + stats.improved_logits, ILLEGAL_LOGIT).argmax(1)
        policy = torch.softmax(torch.where(legal, stats.improved_logits, ILLEGAL_LOGIT), 1)
        return SearchOutput(best, policy, (policy * stats.values).sum(1), stats.visits.long())


@cache
def kernels_for(device: torch.device) -> Any:
    """The module `models.mcts.kernels` for a GPU; None where there is no triton, which torch's builds for CPUs lack."""
    try:
        from models.mcts import kernels as tree_kernels
    except ImportError:
        return None
    return tree_kernels if device.type == "cuda" or tree_kernels.INTERPRETED else None


def _add_dirichlet_noise(logits: Tensor, gamma_samples: Tensor) -> Tensor:
    """The logits of the root with Dirichlet noise in its policy."""
    legal = logits > ILLEGAL_LOGIT
    noise = torch.where(legal, gamma_samples.to(logits.dtype), 0.0)
    noise = noise / noise.sum(1, keepdim=True)
    prior_probs = (1 - DIRICHLET_FRACTION) * torch.softmax(logits, 1) + DIRICHLET_FRACTION * noise
    return torch.where(legal, prior_probs.clamp(min=torch.finfo(logits.dtype).tiny).log(), ILLEGAL_LOGIT)


def considered_visits_sequence(count: int, simulations: int) -> list[int]:
    """Sequential halving of *count* actions: how many visits the action has that each simulation visits next.

    All that are left get equally many in a round, then the better half goes on; the rounds share the simulations equally, and two
    are left in the end.

    >>> considered_visits_sequence(4, 12)
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """
    if count <= 1:
        return list(range(simulations))
    rounds, left, visited, plan = (count - 1).bit_length(), count, 0, list[int]()
    while len(plan) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            plan += [visited] * left
            visited += 1
        left = max(2, left // 2)
    return plan[:simulations]

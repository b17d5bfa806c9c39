"""`TreeSearch`: AlphaZero's search in thousands of games at once, all of their trees in a few tensors on one device.

Two ways to search. ``gumbel`` (Danihelka et al., "Policy improvement by planning with Gumbel", 2022): a few actions are drawn at
the root without replacement and halved again and again; below it the visits follow the improved policy, without a lot. Actions
that were not looked at have the value that the others let expect, so that the policy which comes out is better than the network's
even after a few simulations. ``puct`` (Silver et al., 2018): an upper bound of the value decides, everywhere.

A simulation goes down all trees at once, adds a position to each, asks the network about all of them, and adds their values to
those of the positions above. Nothing waits for the device. Turns alternate, passes are moves, so a value changes its sign with
every ply. Values are shares of the board: discs for the side to move over its squares.

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

from models.boards import bit_counts
from models.compiling import Attempted, Compiled, Recorded
from models.residual import Answers
from models.trees import NEVER, PUCT_BASE, PUCT_FIRST, Said, Tree, Walk, family_of
from reversi_env import ReversiError, Rules, functional
from reversi_env.errors import quoted
from reversi_env.extras import extra_libraries
from reversi_env.functional import State
from search.solver import solve_batch

with extra_libraries():
    import torch
    from torch import Tensor

Method = Literal["gumbel", "puct"]

#: The share of the noise in the root's policy.
NOISE_SHARE = 0.25
#: Moves that a usual position has, over which Dirichlet's noise with a sum of 10 is spread.
NOISE_SUM, FEWEST_DRAWN = 10.0, 1e-6
#: Share of games that kernels search as torch's operations do, at least.
FEWEST_ALIKE = 0.9
#: Plies that a simulation goes down at most.
DEEPEST = 24


class Found(NamedTuple):
    """What a search found of each game.

    ``action``: the move to play. ``policy``, ``(n, actions)``: how good all of them are, which a network learns. ``value``: share
    of the board for the side to move. ``visits``, ``(n, actions)``.
    """

    action: Tensor
    policy: Tensor
    value: Tensor
    visits: Tensor


class Way(NamedTuple):
    """How far a simulation has come down each tree: the last *action*, from *parent* to *leaf*, and whether it is *going* on.

    ``there``: the leaf as well, but `simulations` + 1 where the way ended before.
    """

    parent: Tensor
    action: Tensor
    leaf: Tensor
    there: Tensor
    going: Tensor


class TreeSearch:
    """A search of so many *simulations* with a *network* for one game.

    Args:
        network: numbers and values of boards; its results' precision is that of the search.
        rules: the game.
        simulations: positions that are looked at in each game.
        method: ``gumbel`` or ``puct``.
        considered: actions at the root that Gumbel's draw leaves.
        exact: from so many empty squares on positions are solved instead of asked about, by *threads* of the CPU or by the GPU;
            with it the host has to wait for the device.
        deepest: plies that a simulation goes down at most.
        compiled: on a GPU go down the trees by kernels (`models.tree_kernels`), or let torch compile what chooses the ways where
            triton is missing, and record all of a search as one graph.

    """

    def __init__(
        self,
        network: Answers,
        rules: Rules,
        simulations: int = 32,
        *,
        method: Method = "gumbel",
        considered: int = 16,
        exact: int = 0,
        deepest: int = DEEPEST,
        threads: int | None = 1,
        compiled: bool = False,
    ) -> None:
        if method not in ("gumbel", "puct"):
            raise ReversiError(f"method={quoted(method)}: expected 'gumbel' or 'puct'")
        for name, number in (("simulations", simulations), ("considered", considered), ("deepest", deepest)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ReversiError(f"{name}={quoted(number)}: expected a whole number of 1 or more")
        self.network, self.rules, self.simulations, self.method = network, rules, simulations, method
        self.considered, self.exact, self.deepest, self.threads = considered, exact, deepest, threads
        self.compiled = compiled
        self._plans: dict[torch.device, Tensor] = {}
        self._twins: dict[torch.device, tuple[Any, Any]] = {}
        self._below = self._by_puct if method == "puct" else self._by_policy
        self._recorded: Recorded | None = None

    def noise(self, games: int, generator: torch.Generator) -> Tensor:
        """Lots for one search of so many games: Gumbel's, or Dirichlet's, on the generator's device."""
        shape, device = (games, self.rules.square_count + 1), generator.device
        if self.method == "gumbel":
            return torch.empty(shape, device=device).exponential_(generator=generator).log_().neg_()
        usual = self.rules.square_count / 6
        drawn = torch._standard_gamma(torch.full(shape, NOISE_SUM / usual, device=device), generator=generator)
        return drawn.clamp_(min=FEWEST_DRAWN)

    def run(self, roots: State, noise: Tensor | None = None) -> Found:
        """Search from these positions, ``(n,)``; without *noise* nothing is left to chance.

        What it finds of a game that is over means nothing.
        """
        if (roots.rules.size, roots.rules.variant) != (self.rules.size, self.rules.variant):
            raise ReversiError(f"states of {roots.rules}: expected those of {self.rules}")
        with torch.no_grad():
            if not (self.compiled and roots.own.is_cuda and not self.exact):
                return self._search(roots, noise)
            if self._recorded is None:
                self._try_kernels(roots, noise)
                kind = type(roots)
                self._recorded = Recorded(lambda noise, *fields: self._search(kind(*fields), noise))
            return Found(*self._recorded(noise, *roots))

    def _try_kernels(self, roots: State, noise: Tensor | None) -> None:
        """Search once with kernels and once without; those that find something else on this device are not used.

        They are compiled by what the user has installed, for a GPU that nobody has tried them on, and a tree that is wrong looks
        like a network that does not learn. Sums are rounded otherwise, so that a few games may well differ.
        """
        how: Any = {"method": self.method, "considered": self.considered, "deepest": self.deepest}
        plain = TreeSearch(self.network, self.rules, self.simulations, **how)
        alike = (self._search(roots, noise).visits == plain._search(roots, noise).visits).all(1).float().mean()
        if alike < FEWEST_ALIKE:
            text = f"the kernels of the tree search are not used: only {alike:.0%} of the games are searched as without them"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            self._twins[roots.own.device] = self._walked, self._written

    # --- all simulations --------------------------------------------------------------------------

    def _search(self, roots: State, noise: Tensor | None) -> Found:
        numbers, raw = self._of_actions(roots, self._asked(roots, roots=True))
        tree = self._planted(roots, numbers, raw)
        games = torch.arange(len(raw), device=raw.device)
        if self.method == "puct" and noise is not None:
            tree.numbers[:, 0] = _with_noise(numbers, noise)
        lots = torch.zeros_like(numbers) if noise is None or self.method == "puct" else noise.to(numbers.dtype)
        most = (numbers > NEVER).sum(1).clamp(max=self.considered)
        plan = self._planned(raw.device)[most].T.contiguous()
        for simulation in range(self.simulations):
            self._simulate(tree, games, simulation + 1, lots, plan[simulation])
        return self._found(tree, games, lots)

    def _planned(self, device: torch.device) -> Tensor:
        """The plans for all numbers of actions; put on the device once, since a graph cannot wait for that."""
        if device not in self._plans:
            plans = [planned_visits(count, self.simulations) for count in range(self.considered + 1)]
            self._plans[device] = torch.tensor(plans, device=device)
        return self._plans[device]

    def _simulated(self, device: torch.device) -> tuple[Any, Any]:
        """What goes down the trees, and what writes the leaves: kernels for this device, or torch's operations."""
        if device not in self._twins:
            walked: Any = self._walked
            written: Any = self._written
            if self.compiled and (made := kernels_for(device)):
                fast = made.Kernels(self.rules, self.deepest, puct=self.method == "puct")
                walked = Attempted("run a kernel for", fast.walked, walked, Exception)
                written = Attempted("run a kernel for", fast.written, written, Exception)
            self._twins[device] = walked, written
        return self._twins[device]

    def _planted(self, roots: State, numbers: Tensor, raw: Tensor) -> Tree:
        """Trees of nothing but their roots."""
        games, nodes = len(raw), self.simulations + 1
        state = type(roots)(*(field[:, None].repeat(1, nodes) for field in roots))
        children = torch.full((games, nodes, numbers.shape[1]), -1, dtype=torch.int64, device=raw.device)
        below = numbers[:, None].repeat(1, nodes, 1)
        visits, total = raw.new_zeros((2, games, nodes + 1))
        visits[:, 0], total[:, 0] = 1, raw
        values = raw[:, None].repeat(1, nodes)
        return Tree(state, children, below, values, visits, total, torch.zeros_like(values, dtype=torch.bool))

    def _simulate(self, tree: Tree, games: Tensor, number: int, lots: Tensor, planned: Tensor) -> None:
        """Add node *number* to all trees, and its value to the nodes above."""
        walked, written = self._simulated(games.device)
        walk = walked(tree, games, number, lots, planned)
        state = functional.step(walk.before, walk.action)
        written(tree, games, walk, state, self._asked(state))

    def _walked(self, tree: Tree, games: Tensor, number: int, lots: Tensor, planned: Tensor) -> Walk:
        """The ways down to node *number*, or to one where they end."""
        fresh = torch.full_like(games, number)
        way = self._first(tree, games, fresh, lots, planned)
        path = [torch.zeros_like(games), way.there]
        for _ in range(1, min(number, self.deepest)):
            if not games.is_cuda and not way.going.any():  # a GPU is not waited for
                break
            way = self._next(tree, games, fresh, way)
            path.append(way.there)
        before = type(tree.state)(*(field[games, way.parent] for field in tree.state))
        return Walk(way.parent, way.action, way.leaf, torch.stack(path, 1), before)

    @cached_property
    def _first(self) -> Any:
        return Compiled(self._from_root) if self.compiled else self._from_root

    @cached_property
    def _next(self) -> Any:
        return Compiled(self._further) if self.compiled else self._further

    def _from_root(self, tree: Tree, games: Tensor, fresh: Tensor, lots: Tensor, planned: Tensor) -> Way:
        node = torch.zeros_like(games)
        action = self._at_root(tree, games, node, lots, planned)
        return self._down(tree, games, fresh, Way(node, action, node, node, torch.ones_like(node, dtype=torch.bool)))

    def _further(self, tree: Tree, games: Tensor, fresh: Tensor, way: Way) -> Way:
        chosen = self._below(tree, games, way.leaf)
        parent, action = torch.where(way.going, way.leaf, way.parent), torch.where(way.going, chosen, way.action)
        return self._down(tree, games, fresh, way._replace(parent=parent, action=action))

    def _down(self, tree: Tree, games: Tensor, fresh: Tensor, way: Way) -> Way:
        """A ply further down where the way goes on; a node that is not there yet is a *fresh* one."""
        child = tree.children[games, way.parent, way.action]
        leaf = torch.where(child < 0, fresh, child)
        there = torch.where(way.going, leaf, self.simulations + 1)
        going = way.going & (child >= 0) & ~tree.ends[games, leaf]
        return Way(way.parent, way.action, leaf, there, going)

    def _written(self, tree: Tree, games: Tensor, walk: Walk, state: State, said: Said) -> None:
        """Write what came of the ways to their leaves; a visit for all nodes above, and the value with the sign of their sides."""
        numbers, value = self._of_actions(state, said)
        tree.children[games, walk.parent, walk.action] = walk.leaf
        fields, found = (*tree.state, tree.numbers, tree.raw, tree.ends), (*state, numbers, value, said.ends)
        for field, one in zip(fields, found, strict=True):
            field[games, walk.leaf] = one
        inside = walk.path <= self.simulations
        below = inside.sum(1, keepdim=True) - 1 - torch.arange(walk.path.shape[1], device=value.device)
        signed = torch.where(below % 2 == 0, value[:, None], -value[:, None])
        tree.visits.scatter_add_(1, walk.path, inside.to(value.dtype))
        tree.total.scatter_add_(1, walk.path, signed)

    def _asked(self, state: State, *, roots: bool = False) -> Said:
        """What the network says, and which values are exact; there its numbers mean nothing but at *roots*."""
        ends, scores = functional.is_over(state), functional.score(state)
        if self.exact:
            empties = self.rules.square_count - bit_counts(state.own | state.opp)
            near = ~ends & (empties <= self.exact)
            scores[near] = self._solved(state.own[near], state.opp[near])
            ends = ends | near
        return Said(*self._answered(state.own, state.opp, torch.zeros_like(ends) if roots else ends), scores, ends)

    def _of_actions(self, state: State, said: Said) -> tuple[Tensor, Tensor]:
        """Numbers of legal actions, and values."""
        numbers = torch.cat([said.numbers, torch.zeros_like(said.numbers[:, :1])], 1)
        values = torch.where(said.ends, said.scores.to(said.discs.dtype), said.discs)
        return torch.where(functional.legal(state), numbers, NEVER), values / self.rules.square_count

    def _answered(self, own: Tensor, opp: Tensor, needless: Tensor) -> tuple[Tensor, Tensor]:
        """What the network says of positions; a CPU is spared those where that is *needless*, a GPU always has as many."""
        if needless.is_cuda or not needless.any():
            return self.network(own, opp)
        rows = (~needless).nonzero().squeeze(1)
        some_numbers, some_discs = self.network(own[rows], opp[rows])
        numbers = some_numbers.new_zeros((len(own), self.rules.square_count))
        discs = some_discs.new_zeros(len(own))
        numbers[rows], discs[rows] = some_numbers, some_discs
        return numbers, discs

    def _solved(self, own: Tensor, opp: Tensor) -> Tensor:
        """Exact scores in discs for the side to move."""
        mine, theirs = (side.cpu().numpy().view(np.uint64) for side in (own, opp))
        if own.is_cuda:
            from search.gpu.solver import solve_batch_cuda

            scores = solve_batch_cuda(mine, theirs, self.rules, threads=self.threads)
        else:
            scores = solve_batch(mine, theirs, self.rules, threads=self.threads)
        return torch.from_numpy(scores).to(own.device)

    # --- which action -----------------------------------------------------------------------------

    def _at_root(self, tree: Tree, games: Tensor, node: Tensor, lots: Tensor, planned: Tensor) -> Tensor:
        """The best action of those that sequential halving has left: of those with as many visits as the plan says."""
        if self.method == "puct":
            return self._below(tree, games, node)
        family = family_of(tree, games, node)
        left = (family.visits == planned[:, None]) & (family.numbers > NEVER)
        return torch.where(left, lots + family.improved, NEVER).argmax(1)

    def _by_policy(self, tree: Tree, games: Tensor, node: Tensor) -> Tensor:
        """The action that brings the visits nearest to the improved policy."""
        family = family_of(tree, games, node)
        share = family.visits / (1 + family.visits.sum(1, keepdim=True))
        wanted = torch.softmax(family.improved, 1) - share
        return torch.where(family.numbers > NEVER, wanted, NEVER).argmax(1)

    def _by_puct(self, tree: Tree, games: Tensor, node: Tensor) -> Tensor:
        """The action with the highest upper bound; values are scaled to 0 … 1 within the family, but by a disc at least."""
        family = family_of(tree, games, node)
        visits, legal = tree.visits[games, node], family.numbers > NEVER
        mean = tree.total[games, node] / visits
        values = torch.where(family.seen, family.values, mean[:, None])
        low = values.amin(1, keepdim=True)
        scaled = (values - low) / (values.amax(1, keepdim=True) - low).clamp(min=1 / self.rules.square_count)
        weight = (PUCT_FIRST + torch.log((1 + PUCT_BASE + visits) / PUCT_BASE)) * visits.sqrt()
        bound = scaled + weight[:, None] * torch.softmax(family.numbers, 1) / (1 + family.visits)
        return torch.where(legal, bound, NEVER).argmax(1)

    def _found(self, tree: Tree, games: Tensor, lots: Tensor) -> Found:
        family = family_of(tree, games, torch.zeros_like(games))
        legal, most = family.numbers > NEVER, family.visits.amax(1, keepdim=True)
        if self.method == "puct":
            policy = family.visits / family.visits.sum(1, keepdim=True)
            value = tree.total[:, 0] / tree.visits[:, 0]
            return Found(family.visits.argmax(1), policy, value, family.visits.long())
        best = torch.where(legal & (family.visits == most), lots + family.improved, NEVER).argmax(1)
        policy = torch.softmax(torch.where(legal, family.improved, NEVER), 1)
        return Found(best, policy, (policy * family.values).sum(1), family.visits.long())


@cache
def kernels_for(device: torch.device) -> Any:
    """The module `models.tree_kernels` for a GPU; None where there is no triton, which torch's builds for CPUs lack."""
    try:
        from models import tree_kernels
    except ImportError:
        return None
    return tree_kernels if device.type == "cuda" or tree_kernels.INTERPRETED else None


def _with_noise(numbers: Tensor, drawn: Tensor) -> Tensor:
    """The root's numbers with Dirichlet's noise in its policy."""
    legal = numbers > NEVER
    noise = torch.where(legal, drawn.to(numbers.dtype), 0.0)
    noise = noise / noise.sum(1, keepdim=True)
    likely = (1 - NOISE_SHARE) * torch.softmax(numbers, 1) + NOISE_SHARE * noise
    return torch.where(legal, likely.clamp(min=torch.finfo(numbers.dtype).tiny).log(), NEVER)


def planned_visits(count: int, simulations: int) -> list[int]:
    """Sequential halving of *count* actions: how many visits the action has that each simulation visits next.

    All that are left get equally many in a round, then the better half goes on; the rounds share the simulations equally, and two
    are left in the end.

    >>> planned_visits(4, 12)
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

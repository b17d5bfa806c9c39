"""A compiled network that learns from a teacher: positions of its games, and aside of them, with what it says about them.

The teacher's policy plays the games, all in step on one device, with a lot, from random beginnings: one look at a position gives
its value and the move. Positions are shown too that a random move or two lead aside to, since a search meets bad moves far more
often than good play does. Near the end all are solved. Of the others the student learns what the teacher says at one look, or what
a search finds with a network that there is already: on a CPU it sees further than any look.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from models.boards import bit_counts, legal_moves
from models.player import Player
from models.residual import read_residual
from models.trees import NEVER
from reversi_env import Rules, functional
from reversi_env.errors import quoted
from reversi_env.extras import extra_libraries
from search import evaluators
from search.agents import AgentSpec
from search.solver import MOST_SOLVED
from train.alphazero.games import random_children
from train.alphazero.options import Kind
from train.errors import TrainError
from train.fitting.fit import Epoch, FitOptions, checked_device
from train.fitting.training import Trained, train_in_folder
from train.labels import Labels
from train.labels.data import COLUMNS
from train.labels.labellers import (
    Counter,
    check_probcut,
    check_solvable,
    exact_scores,
    labeller_plan,
    searched_scores,
)
from train.progress import Progress, silent
from train.run import LESSONS, load_arrays, save_arrays

with extra_libraries():
    import torch
    from torch import Tensor

#: Commands whose files teach.
MAKERS = "`reversi train --teacher` or `reversi rl zero`"
#: A file of labels, and the digest in it of what they were made from.
LABELS, MADE_FROM = "labels-{:04}.npz", "made_from"
#: Games that are played at once, and positions that are learnt from unless it is said how many.
GAMES = {"cuda": 1 << 16, "cpu": 1 << 9}
POSITIONS = {"cuda": 100_000_000, "cpu": 300_000}
#: Shares of a game's positions from which one random move leads aside, and two. With twice as many, of which none were solved,
#: students were as far from tournament positions with 24 empties, and with 14 as partial to the side to move, by 0.8 to 1 disc; and
#: so they were where two thirds of the games were played with temperatures of 0.5 and 0.2 instead of 1.
ASIDE = (0.25, 0.25)
#: One game in so many goes on, by random moves, into what is left to a solver.
ENDS = 8
#: Share of the games with few random moves at the beginning, and how many those have at most, as a share of the others' most.
SHORT_SHARE, SHORT_MOST = 0.6, 0.3
#: Fewest empties of the games' positions, at most: with fewer, whoever uses a teacher solves them.
FEWEST = 8


def distil(
    teacher: Path,
    out: Path,
    options: FitOptions,
    *,
    positions: int | None = None,
    network: str = "deep",
    start: str | None = None,
    labeller: str | None = None,
    command: str = "",
    device: str = "cpu",
    threads: int | None = None,
    progress: Progress = silent,
    told: Callable[[Epoch], None] = lambda epoch: None,
) -> Trained:
    """Fit a network to what the teacher in a file, or in its folder, says of so many *positions*, in the folder *out*.

    With a *labeller*, an evaluator with its depth, it is fitted to what that finds by search. *start* names weights
    to go on from. Interrupted in any way, the same call goes on; the labels are made once.
    """
    checked_device(device)
    weights = teacher_of(teacher)
    if out.resolve() == weights.parent.resolve():
        raise TrainError(f"{str(out)!r} is the teacher's own folder: expected another one")
    wanted = positions or POSITIONS[device]
    lessons = Lessons(weights, options.seed, device, threads, labeller)
    data = {"positions": wanted, **lessons.about}

    def labels() -> Labels:
        return Labels.concatenate(list(lessons.read(out, wanted, progress)))

    how: dict[str, Any] = {"network": network, "start": start, "command": command, "device": device, "threads": threads}
    return train_in_folder(labels, data, out, options, **how, file=LESSONS, progress=told)


def teacher_of(path: Path) -> Path:
    """The weight file: the path itself, or that of the finished training in a folder."""
    if path.is_file():
        return path
    found = [one for kind in get_args(Kind) for one in path.glob(f"{kind}-*.safetensors")]
    if len(found) != 1:
        raise TrainError(
            f"no finished teacher in {str(path)!r}: expected a folder that {MAKERS} made, or its weight file"
        )
    return found[0]


def _exact_of(record: Mapping[str, Any], path: Path, rules: Rules) -> int:
    """Up to how many empties a teacher's positions were solved, by its file's record."""
    options = record.get("options")
    exact = options.get("exact") if isinstance(options, Mapping) else None
    if isinstance(exact, bool) or not isinstance(exact, int) or not 0 <= exact <= MOST_SOLVED[rules.size]:
        raise TrainError(
            f"{str(path)!r} says that its teacher solved positions of {quoted(exact)} empties: "
            f"expected 0 to {MOST_SOLVED[rules.size]}"
        )
    return exact


class Lessons:
    """The labels that a teacher gives: file after file, each a choice of the seed and its number.

    With a *labeller* the teacher only plays, and that evaluator's search gives the labels.
    """

    def __init__(
        self,
        weights: Path,
        seed: int,
        device: str = "cpu",
        threads: int | None = None,
        labeller: str | None = None,
    ) -> None:
        saved = read_residual(weights)
        self.rules, self._seed, self._threads = saved.rules, seed, threads
        self._device, self._games = checked_device(device), GAMES[device]
        if saved.record.get("training") not in get_args(Kind):
            raise TrainError(f"{str(weights)!r} is no teacher's: expected a file that {MAKERS} made")
        self._exact = self._solved = _exact_of(saved.record, weights, self.rules)
        self._fewest = max(1, min(FEWEST, self._exact - 4))
        about: dict[str, Any] = {"teacher": weights.name, "games": self._games, "exact": self._exact}
        about["teacher_sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
        self.about = {**about, "aside": list(ASIDE), **self._labelled_by(labeller)}
        self._player = Player(saved.net.to(self._device))

    def _labelled_by(self, labeller: str | None) -> dict[str, str]:
        """Which evaluator's search gives the labels: a name such as network may mean other weights one day."""
        self._plan = None if labeller is None else labeller_plan(labeller)
        if labeller is None or self._plan is None:
            return {}
        if self._plan.evaluator is None:
            raise TrainError(
                f"labeller {quoted(labeller)}: expected an evaluator to search with, as network:depth=4,mean=2"
            )
        check_probcut(self._plan, self.rules)
        if "exact" in AgentSpec.parse(labeller).options:
            check_solvable(self._plan.exact, self.rules, labeller, device=self._device.type)
            self._solved = max(self._exact, self._plan.exact)
        return {"labeller": labeller, "labeller_sha256": evaluators.get(self._plan.evaluator).sha256(self.rules)}

    def read(self, folder: Path, positions: int, progress: Progress = silent) -> Iterator[Labels]:
        """So many positions in pieces: those that the folder has, and what has to be made for the rest."""
        number, left = 0, positions
        while left > 0:
            progress("labelling, positions", positions - left, positions)
            found = self._file(folder / LABELS.format(number), number)
            yield found.select(np.arange(min(left, len(found))))
            number, left = number + 1, left - len(found)
        progress("labelling, positions", positions, positions)

    def _file(self, path: Path, number: int) -> Labels:
        known = {name: value for name, value in self.about.items() if name != "teacher"}  # by its content, not its name
        text = json.dumps([known, self._seed, number], sort_keys=True)
        digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
        if not path.exists():
            made = self._made(number)
            save_arrays(path, {name: getattr(made, name) for name in COLUMNS} | {MADE_FROM: digest})
        *columns, there = load_arrays(path, (*COLUMNS, MADE_FROM))
        if not np.array_equal(there, digest):
            raise TrainError(
                f"{str(path)!r} was made from another teacher, labeller or seed: expected the same, or another folder"
            )
        return Labels(self.rules, *columns)

    # --- one file ---------------------------------------------------------------------------------

    def _made(self, number: int) -> Labels:
        """The positions of some games, and those aside of them, in no order."""
        seed = int(np.random.SeedSequence((self._seed, number)).generate_state(1)[0])
        generator = torch.Generator(self._device).manual_seed(seed)
        own, opp, said = (torch.cat(columns) for columns in zip(*self._played(generator), strict=True))
        parts = [self._labels(own, opp, said), *self._ends(own, opp, generator)]
        for moves, share in enumerate(ASIDE, 1):
            drawn = torch.rand(len(own), generator=generator, device=self._device) < share
            boards = own[drawn], opp[drawn]
            for _ in range(moves):
                boards = self._going_on(*random_children(*boards, self.rules, generator))
            parts.append(self._labels(*boards, self._player.values(*boards)))
        found = Labels.concatenate(parts)
        self._put_scores(found)
        return found.select(np.random.default_rng(seed).permutation(len(found)))

    def _put_scores(self, labels: Labels) -> None:
        """Solve what is near the end, and search the rest if that is wanted: on a GPU and on the CPU's cores at the same time."""
        near, stopped = labels.empties <= self._solved, threading.Event()

        def go_on(done: int) -> None:
            if stopped.is_set():
                raise TrainError("stopped")

        jobs = [partial(self._solve, labels, near, go_on)]
        if self._plan is not None:
            jobs.append(partial(self._search, labels, ~near, go_on))
        with ThreadPoolExecutor(len(jobs)) as pool:
            try:
                for job in as_completed([pool.submit(job) for job in jobs]):
                    job.result()
            except BaseException:  # Ctrl-C too does not wait for either
                stopped.set()
                raise

    def _solve(self, labels: Labels, rows: np.ndarray, progress: Counter) -> None:
        boards, device = (labels.own[rows], labels.opp[rows]), self._device.type
        labels.score[rows] = exact_scores(*boards, self.rules, device=device, threads=self._threads, progress=progress)
        labels.exact[rows], labels.depth[rows] = True, labels.empties[rows]

    def _search(self, labels: Labels, rows: np.ndarray, progress: Counter) -> None:
        assert self._plan is not None
        boards = labels.own[rows], labels.opp[rows]
        labels.score[rows] = searched_scores(*boards, self.rules, self._plan, threads=self._threads, progress=progress)
        labels.depth[rows] = self._plan.depth

    def _played(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Games of the policy, ply by ply: boards, and what the network says that they are worth, in discs."""
        rules, count = self.rules, self._games
        state = functional.init(count, rules, device=self._device)
        first = self._random_moves(generator)
        for number in range(2 * rules.square_count):
            empties = rules.square_count - bit_counts(state.own | state.opp)
            going_on = ~functional.is_over(state) & (empties >= self._fewest)
            if not going_on.any():
                return
            policy, value = self._player.answers(state.own, state.opp)
            policy = torch.where((first > number)[:, None], 0.0, policy)
            policy = torch.cat([policy, torch.zeros_like(policy[:, :1])], 1)
            lots = torch.empty_like(policy).exponential_(generator=generator).log_()  # Gumbel's, with the other sign
            action = torch.where(functional.legal(state), policy - lots, NEVER).argmax(1)
            kept = going_on & (first <= number)
            yield state.own[kept], state.opp[kept], value[kept]
            state = functional.where(going_on, functional.step(state, action), state)

    def _random_moves(self, generator: torch.Generator) -> Tensor:
        """How many random moves each game begins with: few in most, so that good play of all phases is seen."""
        share = torch.rand(2, self._games, generator=generator, device=self._device)
        most = self.rules.square_count - 8 - self._exact
        return (share[1] * torch.where(share[0] < SHORT_SHARE, SHORT_MOST * most, float(most))).long()

    def _ends(self, own: Tensor, opp: Tensor, generator: torch.Generator) -> Iterator[Labels]:
        """Positions with fewer empties than the games are played to, after random moves: a student has to know them too."""
        nearest = (self.rules.square_count - bit_counts(own | opp) == self._fewest).nonzero().squeeze(1)
        own, opp = own[nearest[::ENDS]], opp[nearest[::ENDS]]
        for _ in range(self._fewest - 1):
            own, opp = random_children(own, opp, self.rules, generator)
            yield self._labels(own, opp, torch.zeros(len(own)))

    def _going_on(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Positions where a side can move, and that are not left to the solver."""
        moves = legal_moves(own, opp, self.rules.playable) | legal_moves(opp, own, self.rules.playable)
        wanted = (moves != 0) & (self.rules.square_count - bit_counts(own | opp) >= self._fewest)
        return own[wanted], opp[wanted]

    def _labels(self, own: Tensor, opp: Tensor, said: Tensor) -> Labels:
        """Positions with what the teacher said of them."""
        most = self.rules.square_count
        mine, theirs = (side.cpu().numpy().view(np.uint64) for side in (own, opp))
        empties = (most - np.bitwise_count(mine | theirs)).astype(np.uint8)
        nothing = np.zeros(len(mine), np.uint8)
        score = said.clamp(-most, most).cpu().numpy().astype(np.float32)
        return Labels(self.rules, mine, theirs, score, empties, nothing.astype(np.bool_), nothing)

"""Games between networks on the GPU, many at a time, the boards never leaving it: matches for the arena, positions for labels.

A player chooses an action for every game it is to move in (`Player`): a policy network (`PolicyPlayer`), a network that values
positions (`ValuePlayer`), or a baseline by name, ``"random"`` or ``"greedy"``. Every opening is played twice, with the colours
exchanged, as in `train.games.playing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from models.boards import board_planes
from reversi_env import ReversiError, Rules
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.errors import shown
from reversi_env.extras import extra_libraries
from train.games.results import Results

with extra_libraries():
    import torch


@dataclass(frozen=True)
class Turn:
    """The games in which a player is to move, one row each, on the device; boards from its side."""

    planes: torch.Tensor  #: uint8 (N, 2, S, S)
    masks: torch.Tensor  #: bool (N, S*S+1)
    boards: torch.Tensor  #: int64 (N, 2)
    children: Callable[[], tuple[torch.Tensor, torch.Tensor]]  #: boards int64 (2, N, S*S) after each move, discs turned
    generator: torch.Generator
    rules: Rules


class Player(Protocol):
    """Chooses moves in many games at once."""

    def choose(self, turn: Turn) -> torch.Tensor:
        """A legal action for every game of the turn: int64 (N,)."""


def sample(logits: torch.Tensor, masks: torch.Tensor, temperature: float, generator: torch.Generator) -> torch.Tensor:
    """An action for every row: the best legal one at temperature 0, else a draw from the softmax of ``logits / temperature``.

    Ties at temperature 0 go to the lowest action.
    """
    legal = logits.float().masked_fill(~masks, -torch.inf)
    if temperature > 0:
        noise = torch.empty_like(legal).exponential_(generator=generator)
        legal = legal / temperature - noise.log()  # Gumbel: the largest is a sample of the softmax
    return legal.argmax(-1)


class PolicyPlayer:
    """Plays by the logits, (N, S*S+1), that *network* gives for planes of its own precision; the last one is the pass's."""

    def __init__(self, network: Callable[[torch.Tensor], torch.Tensor], temperature: float = 0.0) -> None:
        self.network, self.temperature = network, _checked_temperature(temperature)

    def choose(self, turn: Turn) -> torch.Tensor:
        """The actions."""
        logits = self.network(_network_input(self.network, turn.planes))
        return sample(logits, turn.masks, self.temperature, turn.generator)


class ValuePlayer:
    """Plays to the position that *network* values lowest for its opponent.

    *network* takes planes (N, 2, S, S) from the side to move and gives one number each, higher for better. At a temperature,
    moves are drawn from the softmax of the values.
    """

    def __init__(self, network: Callable[[torch.Tensor], torch.Tensor], temperature: float = 0.0) -> None:
        self.network, self.temperature = network, _checked_temperature(temperature)

    def choose(self, turn: Turn) -> torch.Tensor:
        """The actions."""
        boards, _ = turn.children()
        legal = turn.masks[:, :-1]
        planes = board_planes(boards.movedim(0, -1)[legal], turn.rules.size)
        values = torch.zeros(turn.masks.shape, device=legal.device)
        if len(planes):
            values[:, :-1][legal] = -self.network(_network_input(self.network, planes)).float().reshape(-1)
        return sample(values, turn.masks, self.temperature, turn.generator)


class RandomPlayer:
    """Every legal action is as likely."""

    def choose(self, turn: Turn) -> torch.Tensor:
        """The actions."""
        return sample(torch.zeros(turn.masks.shape, device=turn.masks.device), turn.masks, 1.0, turn.generator)


class GreedyPlayer:
    """The move that turns the most discs (in the reversed game: the fewest), ties drawn by lot."""

    def choose(self, turn: Turn) -> torch.Tensor:
        """The actions."""
        _, turned = turn.children()
        gains = torch.zeros(turn.masks.shape, device=turned.device)
        gains[:, :-1] = turn.rules.sign * turned.float()
        return sample(gains * 1000, turn.masks, 1.0, turn.generator)


BASELINES: Mapping[str, Player] = {"random": RandomPlayer(), "greedy": GreedyPlayer()}


@dataclass(frozen=True, eq=False)
class SelfPlayResults(Results):
    """Results from player A's side (A is black in the even games), and the positions that games passed through, if kept."""

    positions: torch.Tensor | None = None  #: int64 (K, 2): boards from the side to move, on the device
    games_of: torch.Tensor | None = None  #: int64 (K,): the game that each position is from
    scores: torch.Tensor | None = None  #: int64 (K,): that game's result in discs for the side to move in the position


@torch.inference_mode()
def play_games(
    a: Player | str,
    b: Player | str,
    games: int,
    rules: Rules | None = None,
    *,
    opening_plies: int = 6,
    seed: int = 0,
    device: str = "auto",
    keep_positions: bool = False,
) -> SelfPlayResults:
    """Play *games* games (an even number) at once and wait for the end of the last.

    Each pair has an opening of *opening_plies* random moves of its own. The same seed gives the same games, as far as the
    networks give the same numbers. With ``keep_positions`` all positions after the opening come back too.
    """
    if games < 2 or games % 2:
        raise ReversiError(f"{games} games: expected an even number, since every opening is played from both sides")
    players = (_player(a), _player(b))
    rules = rules or Rules()
    envs = TorchVectorEnv(
        games, device=device, size=rules.size, variant=rules.variant, start=rules.start, opening_plies=opening_plies
    )
    # neighbouring numbers would give two matches with neighbouring seeds nearly the same openings
    openings = np.random.SeedSequence(seed).generate_state(games // 2, np.uint64)
    envs.reset(seed=np.repeat(openings, 2).tolist())
    return _Match(envs, players, seed, keep_positions).play()


class _Match:
    """The games under way."""

    def __init__(self, envs: TorchVectorEnv, players: tuple[Player, Player], seed: int, keep: bool) -> None:
        self.envs, self.players, self.keep = envs, players, keep
        self.device = envs.boards.device
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.a_colour = torch.arange(envs.num_envs, device=self.device) % 2  # A is black in the even games
        self.running = torch.ones(envs.num_envs, dtype=torch.bool, device=self.device)
        self.discs = torch.zeros(envs.num_envs, dtype=torch.int64, device=self.device)
        self.kept: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def play(self) -> SelfPlayResults:
        """All games to the end."""
        while bool(self.running.any()):
            a_moves = self.envs.infos["to_move"] == self.a_colour
            if self.keep:
                rows = self.running.nonzero().flatten()
                self.kept.append((self.envs.boards[rows], rows, a_moves[rows]))
            # A game that is over goes on as another one, unseen: action 0 is as good as any.
            actions = torch.zeros(self.envs.num_envs, dtype=torch.int64, device=self.device)
            for player, turns in zip(self.players, (a_moves, ~a_moves), strict=True):
                rows = (turns & self.running).nonzero().flatten()
                if len(rows):
                    actions[rows] = player.choose(self._turn(rows))
            _, _, terminated, _, infos = self.envs.step(actions)
            ended = terminated & self.running
            score = infos["final_score"].long()  # of the player that has just moved
            self.discs = torch.where(ended, torch.where(a_moves, score, -score), self.discs)
            self.running &= ~ended
        return self._result()

    def _turn(self, rows: torch.Tensor) -> Turn:
        def children() -> tuple[torch.Tensor, torch.Tensor]:
            boards, turned = self.envs.children()
            return boards[:, rows], turned[rows]

        masks = self.envs.infos["action_mask"][rows]
        planes, boards = self.envs.observations[rows], self.envs.boards[rows]
        return Turn(planes, masks, boards, children, self.generator, self.envs.rules)

    def _result(self) -> SelfPlayResults:
        discs = self.discs.cpu().numpy()
        if not self.keep:
            return SelfPlayResults(discs)
        boards, rows, a_moves = (torch.cat(parts) for parts in zip(*self.kept, strict=True))
        scores = torch.where(a_moves, self.discs[rows], -self.discs[rows])
        return SelfPlayResults(discs, positions=boards, games_of=rows, scores=scores)


def _network_input(network: Any, planes: torch.Tensor) -> torch.Tensor:
    """The planes as numbers of the network's own precision."""
    parameters = network.parameters() if isinstance(network, torch.nn.Module) else iter(())
    first = next(parameters, None)
    return planes.to(torch.float32 if first is None else first.dtype)


def _player(player: Player | str) -> Player:
    if isinstance(player, str):
        if player not in BASELINES:
            raise ReversiError(f"player {shown(player)}: expected a Player or one of {', '.join(map(repr, BASELINES))}")
        return BASELINES[player]
    return player


def _checked_temperature(temperature: float) -> float:
    if (
        isinstance(temperature, bool)
        or not isinstance(temperature, (int, float))
        or not 0 <= temperature < float("inf")
    ):
        raise ReversiError(f"temperature={shown(temperature)}: expected a number of 0 or more")
    return float(temperature)

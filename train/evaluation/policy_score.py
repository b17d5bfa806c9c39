"""`score_policy`: the strength of any policy, in points and Elo on the ladder, and its regret in solved endgames or whole games.

A policy is a function from observations and masks to actions, whatever library trained it. The ladder is the one of
`reversi train ppo`, so that results can be compared.
"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from inspect import isroutine
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from models.mcts.search import TreeSearch
from models.policy import PolicyAgent
from models.residual.net import read_residual, symmetrised
from models.zero import ZeroAgent
from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.envs.opponents import Opponent, OpponentTurns
from reversi_env.envs.settings import Settings
from reversi_env.errors import TrainError, quoted
from reversi_env.kernels import episodes, observations
from reversi_env.options import derive_seed
from search.agents.base import Agent
from search.agents.spec import AgentSpec
from train.arena.batch import AgentPlayer, BatchPlayer, Boards, EvaluatorPlayer, Indices, RngStates, compiled_player
from train.arena.network_players import ValueSearchPlayer, ZeroPlayer
from train.arena.ratings import rating_text
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exact_set import ExactSet, Judgement
from train.evaluation.exam import packaged_endgames
from train.evaluation.ladder import Ladder, PolicyStanding
from train.evaluation.options import EndgameOptions, WholeGameOptions
from train.evaluation.whole_games import WholeGames, play_whole_games
from train.jobs.logs import Progress, no_progress

#: Options of an environment that define the observations of a policy.
OBSERVATION_OPTIONS = ("observation", "extra_planes", "dtype", "channels_last")
#: Maximum positions in one call of a policy.
BATCH = 4096
ON_8X8 = Rules()


@dataclass(frozen=True)
class PolicyScore:
    """A policy's ``standing`` on the ladder, and its ``regret`` in solved endgames; as text, a table."""

    rules: Rules
    standing: PolicyStanding
    regret: Judgement

    @property
    def elo(self) -> float:
        """Elo above ``random``, or, without it among the opponents, above the mean of all players (`PolicyStanding.elo_origin`)."""
        return self.standing.elo

    def as_dict(self) -> dict[str, Any]:
        return {**self.standing.as_dict(), "regret": self.regret.as_dict()}

    def __str__(self) -> str:
        baselines, overall = self.standing.scores, self.regret.overall
        low, high = overall.regret_interval
        width = max(map(len, baselines))
        lines = [f"{'against':{width}}  points  95 % interval  discs  games"]
        for name, results in baselines.items():
            interval = "{:.1%}–{:.1%}".format(*results.interval())
            figures = f"{results.score:6.1%} {interval:>14} {results.discs_per_game:+6.1f} {results.games:6}"
            lines.append(f"{name:{width}}  {figures}")
        standing = self.standing
        lines.append(f"Elo above {standing.elo_origin}: {rating_text(standing.elo, standing.low, standing.high)}")
        lines.append(
            f"regret: {overall.regret:.2f} discs per move (95 % interval {low:.2f}–{high:.2f}), "
            f"best moves {overall.optimal:.1%} ({overall.positions} endgames)"
        )
        return "\n".join(lines)


class ObservingPlayer:
    """A policy of the environments as a player of many games at once; it gets the observations of an environment.

    *policy*: as the ``opponent`` of an environment, a callable from boards and masks to actions or an object with ``predict``;
    *batched*: whether it takes many positions at once, with a leading axis. *form*: the environment's options ``observation``,
    ``extra_planes``, ``dtype`` and ``channels_last``. The last move is unknown here, so its plane is empty.
    """

    def __init__(self, policy: Any, rules: Rules, *, batched: bool = True, **form: Any) -> None:
        if unknown := set(form) - set(OBSERVATION_OPTIONS):
            raise TrainError(
                f"option {quoted(min(unknown))} of a policy's observations: expected some of {OBSERVATION_OPTIONS}"
            )
        self.rules, self._batched = rules, batched
        self._settings = Settings.of({"size": rules.size, "variant": rules.variant, **form})
        self._squares = self._settings.squares()
        self._player = Opponent(policy)
        if self._player.kind != episodes.EXTERNAL_OPPONENT:
            raise TrainError(f"policy {quoted(policy)}: expected a callable, a model, or the spec of another agent")

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        """Return the squares that the policy chooses."""
        size = BATCH if self._batched else 1
        parts = [slice(start, start + size) for start in range(0, own.size, size)]
        actions = [self._player.actions(self._turn(own[part], opp[part]), batched=self._batched) for part in parts]
        return self._squares.astype(np.int64)[np.concatenate(actions)]

    def _turn(self, own: Boards, opp: Boards) -> OpponentTurns:
        records = np.zeros(own.size, episodes.STATE)
        records["own"], records["opp"], records["last_square"] = own, opp, -1
        records["legal"] = batch.legal_moves(own, opp, self.rules)
        flat, count = self._settings.observation == "flat", self._squares.size
        boards = np.empty((own.size, count if flat else 2 * count), np.int8)
        masks, to_move = np.empty((own.size, count + 1), np.int8), np.empty(own.size, np.int8)
        observe = observations.observe_flat if flat else observations.observe_planes
        observe(own.size, records, self._squares, boards, masks, to_move)
        positions = [(int(mine), int(theirs)) for mine, theirs in zip(own, opp, strict=True)]
        return OpponentTurns(
            lambda: [Position(self.rules, *boards) for boards in positions],
            self._settings.boards(boards, masks, records),
            masks,
            self._settings.observation == "dict",
        )


class ObservingAgent(Agent):
    """A policy of the environments as an agent; see `ObservingPlayer`."""

    def __init__(self, player: ObservingPlayer) -> None:
        self._player = player

    def choose(self, position: Position) -> int:
        own, opp = batch.from_positions([position])
        (square,) = self._player.choose(own, opp, np.zeros(1, np.int64), np.zeros(1, np.uint64))
        return position.rules.action_of(int(square))


@overload
def score_policy(
    policy: Any,
    rules: Rules = ON_8X8,
    *,
    whole_games: Literal[False] = False,
    games: int | None = None,
    opponents: Sequence[Any] | None = None,
    endgames: ExactSet | None = None,
    batched: bool = True,
    seed: int = 0,
    **form: Any,
) -> PolicyScore: ...
@overload
def score_policy(
    policy: Any,
    rules: Rules,
    *,
    whole_games: Literal[True],
    games: int | None = None,
    batched: bool = True,
    seed: int = 0,
    **form: Any,
) -> WholeGames: ...
def score_policy(
    policy: Any,
    rules: Rules = ON_8X8,
    *,
    whole_games: bool = False,
    games: int | None = None,
    opponents: Sequence[Any] | None = None,
    endgames: ExactSet | None = None,
    batched: bool = True,
    seed: int = 0,
    **form: Any,
) -> PolicyScore | WholeGames:
    """Return the strength of a policy: points against a ladder of opponents, Elo above ``random``, exact regret near the end.

    Args:
        policy: a callable from observations and masks of legal actions to legal actions, whatever library made it; or a
            model with ``predict``, or anything else that an environment takes as its ``opponent``.
        rules: the game.
        whole_games: on 4x4 and 6x6, play whole games against perfect play and judge every move by exact values
            (`train.evaluation.whole_games`). The policy may then also be the spec of any agent.
        games: games against each opponent, from paired random openings (a few plies), half of them with each colour (default:
            400); or whole games (default: 202, from the start and 100 openings).
        opponents: specs of any agents, or callables and models, which get the same observations as the policy; by default the
            ladder of `train.evaluation.ladder`, the weakest first. They play each other, too. Compiled agents, and ``rl`` and
            ``zero`` with no other options than ``simulations``, play all games at once; other agents choose one move after
            another. Without ``random`` among them Elo is relative to the mean of all players.
        endgames: positions with exact values of all moves; by default the package's, on the 4x4 board those of noisy games.
        batched: whether the policy takes many positions at once, with a leading axis, as in a vector environment; otherwise it is
            called for each position, as in a single environment, which takes longer.
        seed: seed of the openings and of the opponents' random choices.
        form: form of the observations: ``observation``, ``extra_planes``, ``dtype``, ``channels_last`` as in `ReversiEnv`.

    An illegal move raises an error that lists the legal ones. The policy is never called where it must pass.

    >>> import numpy as np
    >>> def first_legal(boards, masks):
    ...     return masks.argmax(axis=1)
    >>> score = score_policy(first_legal, Rules(4), games=20, opponents=("random", "greedy"))
    >>> score.standing.scores["random"].games, score.regret.overall.regret > 0
    (20, True)

    """
    if whole_games:
        if opponents is not None or endgames is not None:
            raise TrainError("whole_games with opponents or endgames: expected neither; the opponent is perfect play")
        options = WholeGameOptions(
            agents=("policy",), size=rules.size, variant=rules.variant, games=202 if games is None else games, seed=seed
        )
        if isinstance(policy, (str, AgentSpec)):
            return play_whole_games(replace(options, agents=(str(policy),)))[0]
        return play_whole_games(
            options, policy=ObservingAgent(ObservingPlayer(policy, rules, batched=batched, **form))
        )[0]
    player = ObservingPlayer(policy, rules, batched=batched, **form)
    games = 400 if games is None else games
    if games < 2 or games % 2:
        raise TrainError(f"games={quoted(games)}: expected an even number, two games per opening")
    if endgames is None:
        endgames = noisy_endgames(EndgameOptions(4, rules.variant)) if rules.size == 4 else packaged_endgames(rules)
    with ExitStack() as agents:
        baselines = None
        if opponents is not None:
            baselines = _players(opponents, rules, seed, agents, batched=batched, **form)
        standing = Ladder(rules, games, seed, baselines).measure(player)
    return PolicyScore(rules, standing, endgames.batch_regret(player))


def _players(
    opponents: Sequence[Any], rules: Rules, seed: int, agents: ExitStack, **form: Any
) -> dict[str, BatchPlayer]:
    """Return the opponents by name; agents are closed with *agents*."""
    players: dict[str, BatchPlayer] = {}
    for number, opponent in enumerate(opponents):
        is_spec = isinstance(opponent, str)
        named = opponent if isroutine(opponent) else type(opponent)
        name = opponent if is_spec else named.__name__
        if name in players:
            raise TrainError(f"two opponents named {quoted(name)}: expected different names")
        players[name] = (
            _player_of_spec(AgentSpec.parse(opponent), rules, derive_seed(seed, number), agents)
            if is_spec
            else ObservingPlayer(opponent, rules, **form)
        )
    return players


def _player_of_spec(spec: AgentSpec, rules: Rules, seed: int, agents: ExitStack) -> BatchPlayer:
    """Return the player of an agent, of many games at once where its options allow that, and then without exact endgames."""
    compiled = None if spec.is_program else compiled_player(spec, rules)
    if compiled is not None:
        return compiled
    agent = agents.enter_context(spec.make() if "seed" in spec.options else spec.make(seed=seed))
    agent.prepare(rules)
    if not isinstance(agent, (PolicyAgent, ZeroAgent)) or not set(spec.options) <= {"weights", "simulations"}:
        return AgentPlayer(agent, rules)
    network = agent.load(rules).net
    if isinstance(agent, PolicyAgent) or agent.limits.nodes is None:
        return ZeroPlayer(symmetrised(network, rules), rules)
    return ZeroPlayer(network, rules, search=TreeSearch(network, rules, agent.limits.nodes))


#: Solved positions for each number of empty squares.
REGRET_POSITIONS = 100


def examine(
    path: Path,
    *,
    games: int = 200,
    depth: int = 2,
    exact: int = 10,
    seed: int = 1,
    threads: int | None = None,
    cache: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Return the results of a policy, its value, and searches over its value, against the ladder and in solved endgames.

    The evaluator ``network`` plays too, to the same depths, if the package has weights for the game.
    """
    saved = read_residual(path)
    net, rules = saved.net, saved.rules
    endgames = noisy_endgames(EndgameOptions(rules.size, rules.variant, REGRET_POSITIONS), cache, threads=threads)
    players: dict[str, BatchPlayer] = {
        "policy alone": ZeroPlayer(net, rules),
        "policy, 8 symmetries": ZeroPlayer(symmetrised(net, rules), rules),  # as the agent `rl` plays
    }
    searches = {_search_name(plies, solved): (plies, solved) for plies, solved in ((1, 0), (depth, 0), (depth, exact))}
    players |= {f"value, {words}": ValueSearchPlayer(net, rules, *search) for words, search in searches.items()}
    with suppress(ReversiError):  # no weights for the game
        for words, (plies, solved) in searches.items():
            players[f"network, {words}"] = EvaluatorPlayer("network", rules, plies, exact=solved, threads=threads)
    results, ladder = {}, Ladder(rules, games, seed)
    for number, (name, player) in enumerate(players.items()):
        progress(name, number, len(players))
        overall = endgames.batch_regret(player).overall
        results[name] = {**ladder.measure(player).as_dict(), "regret": overall.regret, "optimal": overall.optimal}
    setting = {"policy": str(path), "size": rules.size, "variant": rules.variant, "games": games}
    return setting | {"positions": len(endgames), "players": results}


def _search_name(plies: int, solved: int) -> str:
    words = f"{plies} {'ply' if plies == 1 else 'plies'}"
    return f"{words}, solver {solved}" if solved else words

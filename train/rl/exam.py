"""The exam of a policy: its own moves, its value and searches over its value, against the ladder and in solved endgames."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from reversi_env import ReversiError
from train.games.batch import BatchPlayer, EvaluatorPlayer
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.progress import Progress, silent
from train.rl.files import read_policy
from train.rl.ladder import Ladder
from train.rl.players import BatchPolicyPlayer, ValueSearchPlayer

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
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return the results of a policy, its value, and searches over its value, against the ladder and in solved endgames.

    The evaluator ``network`` plays too, to the same depths, if the package has weights for the game.
    """
    saved = read_policy(path)
    net, rules = saved.net, saved.rules
    truth = noisy_endgames(EndgameOptions(rules.size, rules.variant, REGRET_POSITIONS), cache, threads=threads)
    players: dict[str, BatchPlayer] = {
        "policy alone": BatchPolicyPlayer(net),
        "policy, 8 symmetries": BatchPolicyPlayer(net, symmetric=True),  # as the agent `rl` plays
    }
    searches = {_search_name(plies, solved): (plies, solved) for plies, solved in ((1, 0), (depth, 0), (depth, exact))}
    players |= {f"value, {words}": ValueSearchPlayer(net, rules, *search) for words, search in searches.items()}
    with suppress(ReversiError):  # no weights for the game
        for words, (plies, solved) in searches.items():
            players[f"network, {words}"] = EvaluatorPlayer("network", rules, plies, exact=solved, threads=threads)
    results, ladder = {}, Ladder(rules, games, seed)
    for number, (name, player) in enumerate(players.items()):
        progress(name, number, len(players))
        figures = truth.batch_regret(player).overall
        results[name] = {**ladder.measure(player).as_dict(), "regret": figures.regret, "optimal": figures.optimal}
    setting = {"policy": str(path), "size": rules.size, "variant": rules.variant, "games": games}
    return setting | {"positions": len(truth), "players": results}


def _search_name(plies: int, solved: int) -> str:
    """Return the name of a search in the table."""
    words = f"{plies} {'ply' if plies == 1 else 'plies'}"
    return f"{words}, solver {solved}" if solved else words

"""The bridge between AlphaZero and alpha-beta: what each way of using a network makes of a move's time on one core.

One network that AlphaZero has trained plays by its policy alone, with its tree search, and by its value inside alpha-beta; beside
it alpha-beta over a network that is compiled for it, and a policy that was taught by alpha-beta's choices. All are judged in
solved positions, by processor time; then, for each time, the longest search of every way within it plays the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import process_time
from typing import Any

import numpy as np

from models.evaluator import strongest_evaluator
from models.torch_evaluator import single_torch_thread
from models.zero import ZeroAgent
from reversi_env import Position
from search import agents
from search.agents.base import Agent
from studies.options import BridgeOptions
from studies.sections import Block, Results, Table, game_name, report, with_interval
from train import charts
from train.arena.options import TournamentOptions
from train.arena.ratings import standings
from train.arena.tournament import Tournament, missing_games
from train.charts import Figure
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exact_set import ExactSet
from train.evaluation.options import EndgameOptions
from train.jobs.logs import Progress, no_progress

#: Empty squares from which on all ways but the policies solve: those that are judged have more.
SOLVED = 8


def ways(options: BridgeOptions) -> dict[str, list[str]]:
    """The settings of every way as specs, the fastest first."""
    path, exact = ZeroAgent(options.weights).path(options.rules), f"exact={SOLVED}"
    searches = [8 * 4**power for power in range(20) if 8 * 4**power <= options.simulations]
    specs_by_kind = {
        "policy alone": [f"zero:{path}"],
        "tree search": [f"zero:{path},simulations={count},{exact}" for count in searches],
        "its value in alpha-beta": [f"zero:{path},depth={depth},{exact}" for depth in range(1, options.depth + 1)],
    }
    evaluator = strongest_evaluator(options.rules)
    depths = range(1, options.compiled_depth + 1, 3)
    specs_by_kind[f"alpha-beta over {evaluator}"] = [f"{evaluator}:depth={depth},{exact}" for depth in depths]
    return specs_by_kind


def measure(options: BridgeOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Regret and processor time of all settings, and games of the strongest at equal time."""
    where = EndgameOptions(options.size, options.variant, options.positions, options.empties, options.seed)
    truth = noisy_endgames(where, threads=1, progress=progress)
    players = [
        {"way": way, "agent": spec, **_judged(agents.make_agent(spec), truth, progress)}
        for way, specs in ways(options).items()
        for spec in specs
    ]
    times = [10.0**power for power in range(-3, 1)]
    equal = [_equal_time(time, players, options, progress) for time in times]
    return options.measured(
        players=players, equal=[one for one in equal if one], positions=len(truth), set=truth.digest
    )


def _judged(agent: Agent, truth: ExactSet, progress: Progress) -> dict[str, Any]:
    """What an agent gives away, and the processor seconds that it takes for a move, on one thread."""
    with single_torch_thread():
        agent.prepare(truth.rules)
        agent.choose(Position(truth.rules, int(truth.own[0]), int(truth.opp[0])))  # compiles
        began = process_time()
        judged = truth.regret(agent, lambda done, total: progress(type(agent).__name__, done, total))
        seconds = (process_time() - began) / len(truth)
    agent.close()
    figures = judged.overall
    return {"seconds": seconds} | {name: getattr(figures, name) for name in ("regret", "regret_interval", "optimal")}


def _equal_time(
    seconds: float, measured: Sequence[Mapping[str, Any]], options: BridgeOptions, progress: Progress
) -> dict[str, Any] | None:
    """The longest search of every way that takes no more, and how they do against each other; None with one way."""
    within = [one for one in measured if one["seconds"] <= seconds]
    longest = {one["way"]: one for one in sorted(within, key=lambda one: one["seconds"])}
    if len(longest) < 2:
        return None
    players = [{"way": way, "agent": one["agent"], "regret": one["regret"]} for way, one in longest.items()]
    if options.games:
        specs = tuple(one["agent"] for one in players)
        tournament_options = TournamentOptions(specs, options.games, options.size, options.variant, seed=options.seed)
        tournament = Tournament(tournament_options)
        with single_torch_thread():
            for number, record in enumerate(missing_games(tournament)):
                progress(f"games at {1000 * seconds:g} ms", number, tournament_options.total)
                tournament.add(record)
        ratings = {one.name: one.rating.elo for one in standings(tournament).players}
        for one, name in zip(players, tournament_options.names, strict=True):
            one["elo"] = ratings[name]
    return {"seconds": seconds, "players": players}


@report("bridge")
def section(results: Results) -> Iterator[Block]:
    """AlphaZero and alpha-beta at equal time."""
    for one in results:
        rows = []
        for player in one["players"]:
            regret = with_interval(player["regret"], player["regret_interval"], 2)
            milliseconds, optimal = f"{1000 * player['seconds']:.2f}", f"{100 * player['optimal']:.1f}"
            rows.append([player["way"], _setting(player["agent"]), milliseconds, regret, optimal])
        title = f"{game_name(one)}: {one['positions']} solved positions (set {one['set']})"
        columns = ["way", "setting", "ms a move", "discs given away (95 % interval)", "best moves, %"]
        yield Table(title, columns, rows)
        rows = []
        for equal in one["equal"]:
            for player in sorted(equal["players"], key=lambda player: player["regret"]):
                elo = f"{player['elo']:+.0f}" if "elo" in player else ""
                where = [f"{1000 * equal['seconds']:g}", player["way"], _setting(player["agent"])]
                rows.append([*where, f"{player['regret']:.2f}", elo])
        games = one["options"]["games"]
        title = f"at equal time: the longest search of every way within it, and Elo of {games} games a pairing"
        yield Table(title, ["ms a move, at most", "way", "setting", "discs given away", "Elo"], rows)
        yield _figure(one)


def _setting(spec: str) -> str:
    """Return the part of a spec that differs within a way."""
    return next((part for part in spec.replace(":", ",").split(",") if part.startswith(("simulations", "depth"))), "")


def _figure(one: Mapping[str, Any]) -> Figure:
    def draw(figure: Any) -> None:
        [axis] = charts.panels(figure, 1)
        by_way: dict[str, list[Any]] = {}
        for player in one["players"]:
            by_way.setdefault(player["way"], []).append(player)
        for (way, players), colour in zip(by_way.items(), charts.COLOURS, strict=False):
            xs, ys = [1000 * player["seconds"] for player in players], [player["regret"] for player in players]
            errors = np.abs(np.array([player["regret_interval"] for player in players]).T - ys)
            axis.errorbar(xs, ys, yerr=errors, color=colour, marker="o", elinewidth=0.8, label=way)
        axis.set(xscale="log", xlabel="processor time of a move, ms", ylabel="discs given away", ylim=(0, None))
        axis.legend()

    return Figure(
        "bridge",
        f"{game_name(one)}: discs given away a move, with 95 % intervals, by the time of a move, on one core.",
        draw,
    )

"""`reversi analyse`: a search of positions, or their static evaluation."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

from play.cli.options import AgentOption, Json, SearchThreads, flag, integer, number
from play.cli.output import attributes, exit_on_interrupt, output_after_interrupt, print_json
from play.cli.positions import DEFAULT, PositionChoice, PositionText, read_problems
from play.interrupt import interruptible

if TYPE_CHECKING:
    from reversi_env import Position
    from search.agents.searching import SearchAgent
    from search.engine.limits import SearchResult


def analyse(
    position: PositionText = "-",
    /,
    *,
    agent: AgentOption = None,
    time: Annotated[float | None, number("Search time in seconds (default: 1 if no limit is given).")] = None,
    depth: Annotated[
        int | None, integer("Search depth in plies; 0 prints the static evaluation.", "--depth", high=60)
    ] = None,
    nodes: Annotated[int | None, integer("Node limit per thread.", low=1)] = None,
    multi_pv: Annotated[int, integer("Number of best moves to show with their values.", "--multi-pv", "-m", low=1)] = 1,
    threads: SearchThreads = 1,
    where: PositionChoice = DEFAULT,
    as_json: Json = False,
    jsonl: Annotated[
        bool, flag("Answer requests on standard input, one JSON object per line, for bots and sites.")
    ] = False,
    workers: Annotated[
        int | None,
        integer("With --jsonl: number of searches at once (default: one per core).", "--workers", low=1, high=1024),
    ] = None,
) -> None:
    """Search a position and print the best move, its value and the principal variation.

    Examples: reversi analyse start --depth 8 --multi-pv 4

              reversi analyse f5d6c3

              reversi analyse saved-game.ggf --after 30

              reversi analyse positions.obf --agent six-factor --depth 0

              reversi analyse --jsonl --depth 12 < requests.jsonl

    Values are in discs for the side to move. Near the end of a game the output
    says whether the value is exact, or its confidence in per cent. A file of OBF
    lines is analysed line by line. Ctrl-C ends the search early and shows the
    best result so far. Without --agent 4x4 is solved, and positions of the
    packaged solved book (6x6) have their exact values at once.

    With --jsonl every line of standard input is a request, such as
    {"id": 1, "position": "f5d6", "multi_pv": 3}, and {"cancel": 1} stops it. The
    options are defaults of the requests (docs/reference/protocols.md).
    """
    from play.thinker import default_agent
    from reversi_env.errors import ReversiError, quoted
    from search.agents.book import solved_result

    limits = {"time": time, "depth": depth, "nodes": nodes}
    if jsonl:
        if position != "-":
            raise ReversiError(
                f"--jsonl with position {quoted(position)}: expected positions in requests on standard input"
            )
        where.refuse("--jsonl, whose requests have positions", "game", "after", "side")
        defaults = limits | {"agent": agent, "multi_pv": multi_pv, "size": where.size, "variant": where.variant}
        _serve({name: value for name, value in defaults.items() if value is not None}, workers, threads)
        return
    if workers is not None:
        raise ReversiError(
            f"--workers {workers}: expected --jsonl with it; --threads N searches one position with N threads"
        )
    players: dict[str, SearchAgent] = {}
    for line, problem in read_problems(position, where, as_json=as_json):
        spec, numbered = agent or default_agent(problem.position.rules), {} if line is None else {"line": line}
        if depth == 0:
            value = _static_value(problem.position, spec)
            if as_json:
                print_json(numbered | {"value": value})
            else:
                print(f"{'' if line is None else f'line {line}: '}{value:+.2f}")
            continue
        result, interrupted = None if agent else solved_result(problem.position, multi_pv), False
        if result is None:
            if spec not in players:
                players[spec] = _searcher(spec, limits, threads)
            result, interrupted = _search(players[spec], problem.position, multi_pv, solves=agent is None)
        with output_after_interrupt(interrupted, "interrupted, this is the best so far"):
            if as_json:
                print_json(numbered | _as_dict(result, multi_pv))
            else:
                _print(line, problem.position, result)


def _serve(defaults: dict[str, Any], workers: int | None, threads: int) -> None:
    """Answer requests in JSON lines until standard input ends, or Ctrl-C."""
    from play.cli.analysis.jsonl import AnalysisService

    service = AnalysisService(defaults, workers or max(1, (os.cpu_count() or 1) // threads), threads, print_json)
    with exit_on_interrupt("reversi: interrupted"):
        service.run(io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="replace"))


def _static_value(position: Position, agent: str) -> float:
    from reversi_env.errors import ReversiError, quoted
    from search.agents.spec import AgentSpec

    spec = AgentSpec.parse(agent)
    for option in spec.options.keys() - {"weights"}:
        raise ReversiError(f"option {quoted(option)} of {quoted(agent)} with --depth 0: expected none but weights")
    player = _checked(spec.make(), agent)
    return float(position.score()) if position.is_over() else player.evaluator.static_value(position)


def _as_dict(result: SearchResult, multi_pv: int) -> dict[str, Any]:
    moves = {"moves": [attributes(entry, "move", "value") for entry in result.moves]} if multi_pv > 1 else {}
    return attributes(result, "move", "value", "depth", "exact", "confidence", "pv", "nodes", "seconds") | moves


def _searcher(agent: str, limits: dict[str, float | None], threads: int) -> SearchAgent:
    """Return the agent with the limits of its spec and of the options, by default one second."""
    from search.agents.spec import AgentSpec

    spec = AgentSpec.parse(agent)
    spec.check_not_program()
    if all(limit is None for limit in limits.values()) and not spec.options.keys() & limits.keys():
        limits = limits | {"time": 1.0}
    return _checked(spec.make(**limits, threads=threads), agent)


def _checked(player: object, agent: str) -> SearchAgent:
    from reversi_env import ReversiError
    from search.agents.searching import SearchAgent

    if not isinstance(player, SearchAgent):
        raise ReversiError(f"agent {agent!r} does not search: expected an evaluator such as six-factor")
    return player


def _search(player: SearchAgent, position: Position, multi_pv: int, solves: bool) -> tuple[SearchResult, bool]:
    """Return the result of the search, and whether Ctrl-C ended it. With *solves*, 4x4 has no depth limit."""
    from time import perf_counter

    from play.first_start import compile_ahead, parts_of
    from search.agents.simple import SMALL_SIZE
    from search.engine.limits import Limits

    compile_ahead(parts_of([player]), lambda: player.prepare(position.rules))  # where Ctrl-C can end a compilation
    began, limits = perf_counter(), Limits() if solves and position.rules.size == SMALL_SIZE else None
    return interruptible(
        lambda: player.search(position, limits, multi_pv=multi_pv),
        player.stop,
        lambda: f"searching, {perf_counter() - began:.0f} s (Ctrl-C shows the best so far)",
    )


def _print(line: int | None, position: Position, result: SearchResult) -> None:
    from reversi_env.errors import count_noun
    from search.engine.limits import certainty

    print(position if line is None else f"line {line}")
    kind, nodes = certainty(result.confidence, result.depth), count_noun(result.nodes, "node")
    print(f"{result.move or 'game over'}  {result.value:+.2f} discs ({kind})  {nodes}  {result.seconds:.2f} s")
    if result.pv:
        print(" ".join(result.pv))
    for entry in result.moves:
        print(f"    {entry.move}  {entry.value:+.2f}")

"""The commands of `reversi bench`: how fast the parts are on this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from benchmarks.report import Report, millions
from play.cli.options import Json, Threads, flag, integer, number, text

bench = App(name="bench", help="Run the speed benchmarks on this machine.")


@bench.command(name="rules")
def rules(*, as_json: Json = False) -> None:
    """Perft leaves, random plies (one thread and all), and the cost of the first and the second start."""
    from benchmarks import rules as speed

    report = Report("Rules core", "numpy", "numba", "llvmlite")
    perft, plies = speed.perft_leaves_per_second, speed.random_plies_per_second
    every = partial(plies, parallel=True)
    report.figure("perft_leaves_per_second", "perft 8x8 depth 10, one thread", millions("leaves", 0), perft)
    report.figure("random_plies_per_second", "random play, one thread", millions("plies"), plies)
    report.figure("random_plies_per_second_all_cores", "random play, all threads", millions("plies"), every)
    cold, warm = report.measure("starting with an empty and a full kernel cache", speed.start_up_seconds)
    report.row("start to first result, cold kernel cache", f"{cold:.2f} s", compile_seconds_cold=cold)
    report.row("start to first result, warm kernel cache", f"{warm:.2f} s", compile_seconds_warm=warm)
    report.show(as_json)


@bench.command(name="start")
def start(*, as_json: Json = False) -> None:
    """What a first and a second start cost, the second beside importing numba and gymnasium alone."""
    from benchmarks import rules as speed

    report = Report("Starts", "numpy", "numba", "gymnasium", "cyclopts")
    seconds, ratios = report.measure("second starts, in turn", speed.second_starts)
    report.result |= {"seconds": seconds, "ratios": ratios}
    report.row("import numba, gymnasium", f"{seconds['libraries']:.2f} s")
    for name, label in (
        ("analyse", "reversi analyse start --depth 6"),
        ("gtp", "reversi gtp, to its first move"),
    ):
        report.row(label, f"{seconds[name]:.2f} s, {ratios[name]:.2f} times that")
    shown = "{:.1f} s".format
    report.figure("first_start_seconds", "the first start of that analysis", shown, speed.first_start)
    report.show(as_json)


@bench.command(name="env")
def env(*, as_json: Json = False) -> None:
    r"""Plies a second of the environments, with observations and masks produced at every step.

    Pgx, OpenSpiel and EnvPool are measured beside them where they are
    installed (the extra bench). How much all threads are faster than one
    is measured twice: as the machine is, and beside a process that wants a
    core for itself.
    """
    from benchmarks import env as speed
    from benchmarks import timing

    report = Report("Environments", "numpy", "numba", "gymnasium", "pettingzoo", "pgx", "open-spiel", "envpool")
    plies, steps, times = "{:,.0f} plies/s".format, "{:,.0f} steps/s".format, "{:.2f}x".format
    two_players, agent = partial(speed.single_rate, None, 20_000, 5), partial(speed.single_rate, "random", 20_000, 5)
    aec, speedup = partial(speed.aec_rate, 20_000, 5), partial(speed.vector_speedup, 100, 25)
    single = report.figure("single_plies_per_second", "single environment, two-player mode", plies, two_players)
    report.figure("agent_steps_per_second", "single environment, steps against random", steps, agent)
    report.figure("aec_plies_per_second", "PettingZoo env()", plies, aec)
    one, every = report.measure("vector environment, batch 4096", partial(speed.vector_rates, 100, 12))
    for name, label, value in (
        ("vector_plies_per_second", "one thread", one),
        ("vector_plies_per_second_all_cores", "all threads", every),
    ):
        report.row(f"vector environment, batch 4096, {label}", millions("plies")(value), **{name: value})
    report.figure("vector_thread_speedup", "… all threads against one, medians", times, speedup)
    with timing.busy_process():
        name, label = "vector_thread_speedup_beside_busy_process", "… the same beside a busy process"
        report.figure(name, label, times, speedup)
    peers = report.measure("Pgx, OpenSpiel and EnvPool, where installed", speed.peer_rates)
    report.result |= {f"{peer}_plies_per_second": rate for peer, rate in peers.items()}
    for peer, title, ours, rate, digits in (
        ("pgx", "Pgx", "vector", one, 0),
        ("openspiel", "OpenSpiel", "single", single, 1),
        ("envpool", "EnvPool", "vector", one, 0),
    ):
        ratio = rate / peers[peer] if peers[peer] else None
        text = f"{peers[peer]:,.0f} plies/s; {ours} is {ratio:.{digits}f}x" if ratio else "not installed"
        report.row(f"{title} on one core", text, **{f"{peer}_ratio": ratio})
    report.show(as_json)


@bench.command(name="search")
def search(
    *,
    as_json: Json = False,
    threads: Threads = None,
    rounds: Annotated[
        int, integer("--rounds", help="Times that one thread and all search the same in turns.", low=1)
    ] = 3,
    against: Annotated[
        Path | None,
        text("--against", help="Only compare with another checkout of the project, in turns, on one thread."),
    ] = None,
) -> None:
    """Node signature, nodes a second, FFO 40-44 and the midgame on one thread and on several, exact labels a second.

    FFO 40-44 are solved, and midgame positions searched to a depth, on one
    thread and on --threads in turns: the speed-up in time, and the nodes it
    takes; FFO once more beside a process that wants a core for itself. Some
    minutes.
    """
    from benchmarks import search as speed
    from benchmarks import timing
    from reversi_env.kernels.parallel import core_count

    if against is not None:
        _search_against(against, rounds, as_json)
        return

    def total(problems: list[dict[str, Any]], what: str) -> Any:
        return sum(problem[what] for problem in problems)

    report, threads = Report("Search", "numpy", "numba", "llvmlite"), threads or core_count()
    label, rate = "midgame, {} to depth 8, one thread", millions("nodes", 2)
    report.figure("signature", "signature", "{:,} nodes".format, speed.signature)
    report.figure("midgame_nodes_per_second", label.format("six-factor"), rate, speed.midgame_rate)
    network = partial(speed.midgame_rate, "network")
    report.figure("midgame_network_nodes_per_second", label.format("network"), rate, network)
    turns, label = f"one thread and {threads} in turns", f"midgame, network to depth {speed.THREADS_DEPTH}"
    midgame = report.measure(f"{label}, {turns}", partial(speed.in_turns, speed.midgame_to_depth, threads, rounds))
    _speedup_row(report, f"{label}, on {threads} threads", midgame, "midgame_")
    in_turns = partial(speed.in_turns, speed.ffo, threads, rounds)
    ffo = report.measure(f"FFO 40-44, {turns}", in_turns)
    with timing.busy_process():
        beside = report.measure(f"FFO 40-44, {turns}, beside a busy process", in_turns)
    one = ffo["one"]
    nodes, seconds = total(one, "nodes"), total(one, "seconds")
    report.row("endgame, one thread", millions("nodes")(nodes / seconds), endgame_nodes_per_second=nodes / seconds)
    for problem in one:
        text = f"{problem['nodes'] / 1e6:.1f} million nodes, {problem['seconds']:.2f} s"
        report.row(f"FFO {problem['problem']}: {problem['score']:+d}", text)
    text = f"{nodes / 1e6:.0f} million nodes, {seconds:.1f} s"
    report.row("FFO 40-44 together", text, ffo=one, ffo_nodes=nodes, ffo_seconds=seconds)
    label = "FFO 40-44, moves ordered by the network"
    learned = report.measure(label, partial(speed.ffo, order="network"))
    figures = {"ffo_network_nodes": total(learned, "nodes"), "ffo_network_seconds": total(learned, "seconds")}
    nodes, took = figures.values()
    text = f"{nodes / 1e6:.0f} million nodes, {took:.1f} s, {millions('nodes')(nodes / took)}"
    report.row(label, text, ffo_network=learned, **figures)
    report.result |= {"threads": threads, "ffo_all_threads": ffo["every"]}
    _speedup_row(report, f"FFO 40-44 on {threads} threads", ffo, "")
    figures = {"thread_speedup_beside_busy_process": beside["speedup"]}
    report.row("… the same beside a busy process", f"{beside['speedup']:.2f}x as fast as one", **figures)
    labels = report.result["labels_per_second"] = {}
    for empties, count in {10: 20_000, 12: 4_000, 14: 800, 16: 128}.items():
        label = f"exact labels at {empties} empties, all cores"
        labels[str(empties)] = report.measure(label, partial(speed.labels_per_second, empties, count))
        report.row(label, f"{labels[str(empties)]:,.0f} a second")
    report.show(as_json)


def _speedup_row(report: Report, label: str, timings: dict[str, Any], prefix: str) -> None:
    seconds = sum(each["seconds"] for each in timings["every"])
    text = f"{seconds:.1f} s, {timings['speedup']:.2f}x as fast as one, {timings['nodes_ratio']:.2f}x the nodes"
    figures = {"thread_speedup": timings["speedup"], "thread_nodes_ratio": timings["nodes_ratio"]}
    report.row(label, text, **{prefix + name: value for name, value in figures.items()})


def _search_against(other: Path, rounds: int, as_json: bool) -> None:
    from benchmarks import versus

    report = Report(f"Search, beside that of {other}", "numpy", "numba", "llvmlite")
    with versus.two_checkouts(other) as checkouts:
        for name, requests in versus.subjects().items():
            ratios = report.measure(name, partial(versus.compared, checkouts, requests, rounds))
            names = {"time": "seconds_ratio", "nodes/s": "speed_ratio", "nodes": "nodes_ratio"}
            text = ", ".join(f"{label} x {ratios[key]:.3f}" for label, key in names.items())
            report.row(name, text + ("" if ratios["same_values"] else ", OTHER VALUES"), **{name: ratios})
    report.show(as_json)


@bench.command(name="labels")
def labels(
    *,
    as_json: Json = False,
    gpu: Annotated[bool, flag("--gpu", help="Measure a GPU too, and compare its scores with the CPU's.")] = False,
    compared: Annotated[int, integer("--compare", help="Positions of each variant to compare.")] = 1_000_000,
    scale: Annotated[float, number("--scale", help="Share of the usual number of positions to time.")] = 1.0,
) -> None:
    """Exact labels a second by number of empty squares, on all cores and on one GPU."""
    from benchmarks import labels as speed
    from search.engine.solver import solve_batch

    report = Report("", "numpy", "numba", "numba-cuda")
    solvers: dict[str, Any] = {"cpu": (solve_batch, speed.CPU_POSITIONS)}
    if gpu:
        from benchmarks.gpu import device_name
        from search.gpu.solver import solve_batch_cuda

        solvers["gpu"] = (solve_batch_cuda, speed.GPU_POSITIONS)
        report.result["gpu"] = device_name("cuda")
    rates = {}
    for where, (solve, positions) in solvers.items():
        rates[where] = report.measure(where, partial(speed.labels_per_second, solve, positions, scale))
        for empties, rate in rates[where].items():
            report.row(f"{empties} empties, {where}", f"{rate:,.0f} labels/s")
    if gpu:
        comparison = report.measure("equality", partial(speed.compare, solve_batch_cuda, compared))
        report.result["compared"] = comparison
        for variant, differing in comparison["differing"].items():
            report.row(f"{comparison['positions']:,} {variant} positions", f"{differing} differ")
    report.result["labels_per_second"] = rates
    report.title = f"Exact labels on {report.result.get('gpu', report.result['cpu'])}"
    report.show(as_json)


@bench.command(name="rl")
def rl(
    *,
    updates: Annotated[int, integer("--updates", help="Updates of 16,384 steps that are timed.", low=1)] = 2,
    as_json: Json = False,
) -> None:
    """Steps a second of MaskablePPO, as stable-baselines3 reports them, one core for torch.

    On our vector environment, and on DummyVecEnv and SubprocVecEnv of the
    single one: with the network, the updates and past selves of reversi train ppo,
    and with a small network of stable-baselines3's own against random. Some
    minutes: the wrappers ask a past self about one position at a time.
    """
    from benchmarks import rl as speed
    from reversi_env.errors import require

    require("sb3_contrib", "stable_baselines3", "torch")
    report = Report("Training with stable-baselines3, 6x6", "torch", "stable-baselines3", "sb3-contrib", "numba")
    for kind, title in (("selfplay", "reversi train ppo, against past selves"), ("small", "MlpPolicy against random")):
        rates_by_vector = {
            vector: report.measure(f"{title}: {vector}", partial(speed.measured, kind, vector, updates))
            for vector in speed.VECTORS
        }
        ours, dummy, subproc = (rates_by_vector[vector]["steps_per_second"] for vector in speed.VECTORS)
        ratio, opponents = ours / max(dummy, subproc), rates_by_vector["ours"]["opponents"]
        games = rates_by_vector["ours"]["step"] - opponents
        rates = {
            f"{vector}_steps_per_second": figures["steps_per_second"] for vector, figures in rates_by_vector.items()
        }
        shares = {"ratio": ratio, "environment_share": games, "opponents_share": opponents}
        report.row(f"{title}: our vector environment", f"{ours:,.0f} steps/s", **{kind: rates | shares})
        report.row("… DummyVecEnv / SubprocVecEnv", f"{dummy:,.0f} / {subproc:,.0f} steps/s")
        report.row("… ours beside the better of them", f"{ratio:.1f} times as fast")
        report.row("… share of the time: environment / opponents' networks", f"{games:.1%} / {opponents:.1%}")
    report.show(as_json)


#: The parts of `reversi bench gpu`, each a function of the report and what was asked.
GPU_PARTS = ("speed", "policy", "states", "cpu")


@bench.command(name="gpu")
def gpu(
    *,
    as_json: Json = False,
    cpu: Annotated[bool, flag("--cpu", help="Measure the same class on the CPU kernels instead.")] = False,
    plies: Annotated[
        int, integer("--plies", help="Plies to compare with the CPU core, for every size and variant.")
    ] = 10_000_000,
    batches: Annotated[str, text("--batches", help="Batch sizes, with commas; default by device.")] = "",
    parts: Annotated[
        str, text("--parts", help="What to do, with commas: speed (Pgx too), policy, states, cpu (equality with it).")
    ] = ",".join(GPU_PARTS),
) -> None:
    """`TorchVectorEnv` on one GPU: plies a second against the memory's bandwidth, Pgx, equality with the CPU, a network's share."""
    from benchmarks import gpu as speed
    from reversi_env.errors import ReversiError, quoted

    wanted = [part.strip() for part in parts.split(",")]
    if unknown := [part for part in wanted if part not in GPU_PARTS]:
        raise ReversiError(f"--parts {quoted(unknown[0])}: expected some of {', '.join(GPU_PARTS)}")
    device = "cpu" if cpu else "cuda"
    report = Report("", "torch", "numba", "numba-cuda", "numpy", "jax", "pgx")
    report.result = {"device": speed.device_name(device)} | report.result
    report.title = f"Environments on {report.result['device']}"
    if "speed" in wanted:
        sizes = [int(text) for text in batches.split(",") if text]
        _gpu_speed(report, device, sizes or list(speed.CPU_BATCHES if cpu else speed.GPU_BATCHES))
    if "policy" in wanted:
        measurement = partial(speed.environment_share, device, 256 if cpu else 65_536)
        policy = report.measure("a policy network plays", measurement)
        text = f"{millions('plies', 2)(policy['plies_per_second'])}, {policy['share']:.1%} in the environment"
        report.row(f"small CNN policy, batch {policy['batch']:,.0f}", text, policy=policy)
    equal = True
    if "states" in wanted:
        equal &= _gpu_states(report, device, plies)
    if "cpu" in wanted:
        equal &= _gpu_beside_cpu(report, device, plies)
    report.result["equal"] = equal
    report.show(as_json, failed=not equal)


def _gpu_speed(report: Report, device: str, sizes: list[int]) -> None:
    from benchmarks import gpu as speed

    rates = report.result["plies_per_second"] = {}
    for size in sizes:
        label = f"random play, batch {size:,}"
        rates[str(size)] = report.measure(label, partial(speed.plies_per_second, device, size))
        report.row(label, millions("plies")(rates[str(size)]))
    given, label = (
        partial(speed.plies_per_second, device, sizes[-1], given_actions=True),
        f"given actions, batch {sizes[-1]:,}",
    )
    report.figure("given_actions_plies_per_second", label, millions("plies"), given)
    best, each = max(rates.values()), speed.bytes_per_ply()
    report.result["bytes_per_ply"] = each
    copied, label = partial(speed.copy_bandwidth, device), "copy bandwidth (torch)"
    bandwidth = report.figure("copy_bandwidth", label, lambda value: f"{value / 1e9:,.0f} GB/s", copied)
    used = best * each / bandwidth
    label, text = f"{each} bytes a ply x best rate", f"{best * each / 1e9:,.0f} GB/s, {used:.0%} of it"
    report.row(label, text, bandwidth_share=used)
    pgx = report.measure("Pgx, where installed", partial(speed.pgx_rate, device))
    pgx_best = pgx["plies_per_second"] if isinstance(pgx, dict) else None
    ratio = best / pgx_best if pgx_best else None
    text = f"{millions('plies', 2)(pgx_best)}; {ratio:,.0f}x" if pgx_best else str(pgx)
    report.row("Pgx on the same device", text, pgx=pgx, pgx_ratio=ratio)


def _gpu_states(report: Report, device: str, plies: int) -> bool:
    from benchmarks import gpu as speed

    states = report.measure("pure states", partial(speed.states_rates, device, 4096 if device == "cpu" else 1_000_000))
    text = f"{millions('steps')(states['steps_per_second'])}; a branch of all {1000 * states['branch_seconds']:.3f} ms"
    report.row(f"pure states, {states['count']:,} at once", text, states=states)
    pure = report.measure("pure states beside environments", partial(speed.states_equal_to_environments, device, plies))
    wrong = [
        f"{game['size']}x{game['size']} {game['variant']} {' '.join(game['differ'])}" for game in pure if game["differ"]
    ]
    text = f"{sum(game['plies'] for game in pure):,} plies {'DIFFER: ' + ', '.join(wrong) if wrong else 'equal'}"
    report.row("pure states beside TorchVectorEnv", text, states_compared=pure)
    return not wrong


def _gpu_beside_cpu(report: Report, device: str, plies: int) -> bool:
    from benchmarks import gpu as speed

    compared = report.measure("equality with the CPU core", lambda: list(speed.equal_to_cpu(device, plies)))
    report.result["compared"] = compared
    for side in (8, 6, 4):
        report.row(f"random play on {side}x{side}", _equality([game for game in compared if game["size"] == side]))
    return all(game["equal"] for game in compared)


def _equality(compared: list[dict[str, Any]]) -> str:
    plies = sum(game["plies"] for game in compared)
    wrong = [f"{game['variant']} {game['opponent'] or 'two players'}" for game in compared if not game["equal"]]
    return f"{plies:,} plies {'DIFFER: ' + ', '.join(wrong) if wrong else 'equal to the CPU core'}"


@bench.command(name="server")
def server(
    *,
    games: Annotated[int, integer("--games", help="Games at the same time.", low=1, high=256)] = 200,
    agent: Annotated[str, text("--agent", help="The server's agent.")] = "six-factor:depth=2",
    pause: Annotated[float, number("--pause", help="Mean seconds before each move of a client; 0 for none.")] = 0.0,
    workers: Annotated[int, integer("--workers", help="The server's search processes; by default one a core.")] = 0,
    hostile: Annotated[
        int,
        integer(
            "--hostile", help="Clients with a game against each of two agents while one address attacks.", high=128
        ),
    ] = 0,
    as_json: Json = False,
) -> None:
    r"""`reversi serve` on this machine under many games at once: times of the answers, errors, lag of its event loop.

    Needs the extra web. The clients share the machine with the server.
    """
    import os

    from reversi_env.errors import require

    require("starlette", "uvicorn", "h11", "websockets", "msgspec")
    from benchmarks import server as speed

    report = Report("Server", "starlette", "uvicorn", "websockets", "msgspec", "uvloop")
    arguments = ("--workers", str(workers or os.cpu_count() or 1))
    if hostile:
        _under_attack(report, arguments, hostile, pause, as_json)
        return
    with speed.running_server(*arguments) as (url, pid):
        figures = report.measure(f"{games} games", lambda: speed.load(url, games, agent, pause))
        memory = speed.memory_mib(pid)
    p95, p99, longest = (figures[f"answer_{quantile}_ms"] for quantile in ("p95", "p99", "max"))
    report.row("games at once", f"{games} against {agent}, {pause:g} s between moves", **figures)
    report.row("moves answered", f"{figures['moves']:,}, {figures['moves_per_second']:,.0f} a second")
    report.row("errors", str(figures["errors"]))
    report.row("answer, median", f"{figures['answer_median_ms']:.0f} ms")
    report.row("answer, 95 % / 99 % / longest", f"{p95:.0f} / {p99:.0f} / {longest:.0f} ms")
    report.row("event loop late, median / 99 %", f"{figures['lag_median_ms']:.1f} / {figures['lag_p99_ms']:.1f} ms")
    report.row("memory of the server process", f"{memory:.0f} MiB" if memory else "unknown", server_mib=memory)
    report.show(as_json, failed=bool(figures["errors"]))


def _under_attack(report: Report, arguments: tuple[str, ...], clients: int, pause: float, as_json: bool) -> None:
    from benchmarks import server as speed

    with speed.running_server(*arguments, "--proxy", "127.0.0.1") as (url, _):
        figures = report.measure(f"{clients} clients", lambda: speed.load_under_attack(url, clients, pause))
    report.row("clients", f"{clients}, {pause:g} s between moves, while one address attacks", **figures)
    for agent, times in figures["agents"].items():
        median, p99 = times["answer_median_ms"], times["answer_p99_ms"]
        report.row(f"answer of {agent}, median / 99 %", f"{median:.0f} / {p99:.0f} ms, {times['moves']:,} moves")
    report.row("errors", str(figures["errors"]))
    report.row("event loop late, median / 99 %", f"{figures['lag_median_ms']:.1f} / {figures['lag_p99_ms']:.1f} ms")
    for kind, count in sorted(figures["attack"].items()):
        report.row(f"attack: {kind}", f"{count:,}")
    report.show(as_json, failed=bool(figures["errors"]))

"""The commands of `reversi bench`: speed of the parts on this machine."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from benchmarks.report import Report, millions
from play.cli.options import Json, Threads, flag, integer, integers, number, text

bench = App(name="bench", help="Run the speed benchmarks on this machine.")
PLIES = "{:,.0f} plies/s".format


@bench.command(name="rules")
def rules(*, as_json: Json = False) -> None:
    """Measure perft leaves and random plies per second, on one thread and on all threads."""
    from benchmarks import rules as speed

    report = Report("Rules core", "numpy", "numba", "llvmlite")
    perft, plies = speed.perft_leaves_per_second, speed.random_plies_per_second
    every = partial(plies, parallel=True)
    report.figure("perft_leaves_per_second", "perft 8x8 depth 10, one thread", millions("leaves", 0), perft)
    report.figure("random_plies_per_second", "random play, one thread", millions("plies"), plies)
    report.figure("random_plies_per_second_all_cores", "random play, all threads", millions("plies"), every)
    report.show(as_json)


@bench.command(name="start")
def start(*, as_json: Json = False) -> None:
    """Measure the first start, with an empty kernel cache, and later starts, compared with the imports alone."""
    from benchmarks import rules as speed

    report = Report("Starts", "numpy", "numba", "gymnasium", "cyclopts")
    seconds, ratios = report.measure("later starts, in turn", speed.second_starts)
    report.result |= {"seconds": seconds, "ratios": ratios}
    report.row("import numba, gymnasium", f"{seconds['libraries']:.2f} s")
    for name, label in (("analyse", "reversi analyse start --depth 6"), ("gtp", "reversi gtp, to its first move")):
        report.row(label, f"{seconds[name]:.2f} s, {ratios[name]:.2f} times that")
    report.figure("first_start_seconds", "the first start of that analysis", "{:.1f} s".format, speed.first_start)
    report.show(as_json)


@bench.command(name="env")
def env(*, as_json: Json = False) -> None:
    r"""Measure plies per second of the environments, with observations and masks at every step.

    Pgx, OpenSpiel and EnvPool are measured too where they are installed (the
    extra bench).
    """
    from benchmarks import env as speed

    report = Report("Environments", "numpy", "numba", "gymnasium", "pettingzoo", "pgx", "open-spiel", "envpool")
    two_players, agent = partial(speed.single_rate, None, 20_000, 5), partial(speed.single_rate, "random", 20_000, 5)
    single = report.figure("single_plies_per_second", "single environment, two-player mode", PLIES, two_players)
    report.figure("agent_steps_per_second", "single environment, against random", "{:,.0f} steps/s".format, agent)
    report.figure("aec_plies_per_second", "PettingZoo env()", PLIES, partial(speed.aec_rate, 20_000, 5))
    one, every = report.measure("vector environment, batch 4096", partial(speed.vector_rates, 100, 12))
    shown = millions("plies")
    report.row("vector environment, batch 4096, one thread", shown(one), vector_plies_per_second=one)
    report.row("… all threads", shown(every), vector_plies_per_second_all_cores=every)
    report.row("… all threads, compared with one", f"{every / one:.2f}x", vector_thread_speedup=every / one)
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
    rounds: Annotated[int, integer("Number of repetitions; medians are shown.", low=1)] = 3,
    against: Annotated[
        Path | None, text("Compare only with another checkout of the project, in turn, on one thread.")
    ] = None,
    long: Annotated[bool, flag("Solve only tournament positions with 24 and more empty squares.")] = False,
) -> None:
    """Measure the node signature, nodes per second, and the speed-up of several threads.

    The node signature is the node count of fixed searches; it differs after
    any change of the search. FFO 40-44 are solved and midgame positions are
    searched to a depth, on one thread and on --threads in turn. Prints the
    ratios of time and of nodes. Takes some minutes. With --long each position
    is solved on one thread, or --threads, with moves ordered by the network.
    """
    from benchmarks import search as speed
    from reversi_env.kernels.parallel import core_count

    if against is not None:
        _search_against(against, rounds, as_json, long)
        return
    report = Report("Search", "numpy", "numba", "llvmlite")
    if long:
        solved = report.measure("long endgames", partial(speed.long_endgames, threads or 1))
        report.result |= {"long_endgames": solved}
        _problem_rows(report, "long endgame", solved)
        report.show(as_json, failed=not all(problem["correct"] for problem in solved))
        return
    threads = threads or core_count()
    label, rate = "midgame, {} to depth 8, one thread", millions("nodes", 2)
    report.figure("signature", "signature", "{:,} nodes".format, speed.signature)
    report.figure("midgame_nodes_per_second", label.format("six-factor"), rate, speed.midgame_rate)
    network = partial(speed.midgame_rate, "network")
    report.figure("midgame_network_nodes_per_second", label.format("network"), rate, network)
    turns, label = f"one thread and {threads} in turn", f"midgame, network to depth {speed.THREADS_DEPTH}"
    midgame = report.measure(f"{label}, {turns}", partial(speed.in_turns, speed.midgame_to_depth, threads, rounds))
    _speedup_row(report, f"{label}, on {threads} threads", midgame, "midgame_")
    ffo = report.measure(f"FFO 40-44, {turns}", partial(speed.in_turns, speed.ffo, threads, rounds))
    _problem_rows(report, "FFO", ffo["one"])
    learned = report.measure("FFO 40-44, moves ordered by the network", partial(speed.ffo, order="network"))
    for name, problems in (("ffo", ffo["one"]), ("ffo_network", learned)):
        nodes, seconds = (sum(problem[key] for problem in problems) for key in ("nodes", "seconds"))
        text = f"{nodes / 1e6:.0f} million nodes, {seconds:.1f} s, {millions('nodes')(nodes / seconds)}"
        label = "FFO 40-44, one thread" + ", moves ordered by the network" * (name == "ffo_network")
        report.row(label, text, **{name: problems, f"{name}_nodes": nodes, f"{name}_seconds": seconds})
    report.result |= {"threads": threads, "ffo_all_threads": ffo["every"]}
    _speedup_row(report, f"FFO 40-44 on {threads} threads", ffo, "")
    report.show(as_json)


def _problem_rows(report: Report, name: str, problems: list[dict[str, Any]]) -> None:
    for problem in problems:
        text = f"{problem['nodes'] / 1e6:.1f} million nodes, {problem['seconds']:.2f} s"
        report.row(f"{name} {problem['problem']}: {problem['score']:+d}", text)


def _speedup_row(report: Report, label: str, timings: dict[str, Any], prefix: str) -> None:
    seconds = sum(each["seconds"] for each in timings["every"])
    text = f"{seconds:.1f} s, {timings['speedup']:.2f}x as fast as one, {timings['nodes_ratio']:.2f}x the nodes"
    ratios = {"thread_speedup": timings["speedup"], "thread_nodes_ratio": timings["nodes_ratio"]}
    report.row(label, text, **{prefix + name: value for name, value in ratios.items()})


def _search_against(other: Path, rounds: int, as_json: bool, long: bool) -> None:
    from benchmarks import versus

    report = Report(f"Search, compared with {other}", "numpy", "numba", "llvmlite")
    with versus.two_checkouts(other) as checkouts:
        subjects, warm_up = versus.long_subjects() if long else (versus.subjects(), None)
        for name, requests in subjects.items():
            ratios = report.measure(name, partial(versus.compared, checkouts, requests, rounds, warm_up))
            names = {"time": "seconds_ratio", "nodes/s": "speed_ratio", "nodes": "nodes_ratio"}
            text = f"{ratios['nodes'] / 1e6:.1f} million nodes, {ratios['seconds']:.1f} s, " if long else ""
            text += ", ".join(f"{label} x {ratios[key]:.3f}" for label, key in names.items())
            report.row(name, text + ("" if ratios["same_values"] else ", OTHER VALUES"), **{name: ratios})
    report.show(as_json)


@bench.command(name="labels")
def labels(
    *,
    as_json: Json = False,
    gpu: Annotated[bool, flag("Measure a GPU too, and compare its scores with the CPU's.")] = False,
    compared: Annotated[int, integer("Positions of each variant to compare.", "--compare")] = 1_000_000,
) -> None:
    """Measure exact labels per second by number of empty squares, on all cores and on one GPU."""
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
        rates[where] = report.measure(where, partial(speed.labels_per_second, solve, positions))
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
    updates: Annotated[int, integer("Number of timed updates of 16,384 steps.", low=1)] = 2,
    as_json: Json = False,
) -> None:
    """Measure steps per second of MaskablePPO against random, with one thread for torch.

    Compares our vector environment with DummyVecEnv and SubprocVecEnv over
    the single environment.
    """
    from benchmarks import rl as speed
    from reversi_env.errors import require

    require("sb3_contrib", "stable_baselines3", "torch")
    report = Report("MaskablePPO of stable-baselines3, 6x6", "torch", "stable-baselines3", "sb3-contrib", "numba")
    rates = {name: report.measure(name, partial(speed.steps_per_second, name, updates)) for name in speed.VECTORS}
    ratio = rates["ours"] / max(rates["dummy"], rates["subproc"])
    report.row("our vector environment", f"{rates['ours']:,.0f} steps/s", steps_per_second=rates)
    report.row("DummyVecEnv / SubprocVecEnv", f"{rates['dummy']:,.0f} / {rates['subproc']:,.0f} steps/s")
    report.row("ours compared with the faster of them", f"{ratio:.1f}x", ratio=ratio)
    report.show(as_json)


#: The measurements of `reversi bench gpu`.
GPU_PARTS = ("speed", "policy", "states", "cpu")


@bench.command(name="gpu")
def gpu(
    *,
    as_json: Json = False,
    cpu: Annotated[bool, flag("Measure the CPU kernels of the same class instead.")] = False,
    plies: Annotated[
        int, integer("Plies to compare with the CPU environment, for every size and variant.", "--plies")
    ] = 10_000_000,
    batches: Annotated[tuple[int, ...] | None, integers("Batch sizes (default: by device).", low=1)] = None,
    parts: Annotated[
        str, text("Measurements, with commas: speed (Pgx too), policy, states, cpu (equality).")
    ] = ",".join(GPU_PARTS),
) -> None:
    """Measure `TorchVectorEnv` on one GPU: plies per second, memory bandwidth, Pgx, moves by a network, equality with the CPU."""
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
        _gpu_speed(report, device, batches or (speed.CPU_BATCHES if cpu else speed.GPU_BATCHES))
    if "policy" in wanted:
        measurement = partial(speed.policy_play, device, 256 if cpu else 65_536)
        policy = report.measure("a policy network plays", measurement)
        text = f"{millions('plies', 2)(policy['plies_per_second'])}, {policy['share']:.1%} in the environment"
        report.row(f"small CNN policy, batch {policy['batch']:,.0f}", text, policy=policy)
    equal = True
    if "states" in wanted:
        states = report.measure("pure states", partial(speed.states_rates, device, 4096 if cpu else 1_000_000))
        branch = f"a branch of all {1000 * states['branch_seconds']:.3f} ms"
        text = f"{millions('steps')(states['steps_per_second'])}; {branch}"
        report.row(f"pure states, {states['count']:,} at once", text, states=states)
        label, compare = "pure states and TorchVectorEnv", speed.states_equal_to_environments
        compared = report.result["states_compared"] = report.measure(label, partial(compare, device, plies))
        equal &= _equality_row(report, label, compared)
    if "cpu" in wanted:
        label = "random play, compared with the CPU"
        compared = report.result["compared"] = report.measure(label, lambda: [*speed.equal_to_cpu(device, plies)])
        equal &= _equality_row(report, label, compared)
    report.result["equal"] = equal
    report.show(as_json, failed=not equal)


def _gpu_speed(report: Report, device: str, sizes: tuple[int, ...]) -> None:
    from benchmarks import gpu as speed

    rates = report.result["plies_per_second"] = {}
    for size in sizes:
        label = f"random play, batch {size:,}"
        rates[str(size)] = report.measure(label, partial(speed.plies_per_second, device, size))
        report.row(label, millions("plies")(rates[str(size)]))
    given = partial(speed.plies_per_second, device, sizes[-1], given_actions=True)
    label = f"given actions, batch {sizes[-1]:,}"
    report.figure("given_actions_plies_per_second", label, millions("plies"), given)
    best, each = max(rates.values()), speed.bytes_per_ply()
    report.result["bytes_per_ply"] = each
    copied, label = partial(speed.copy_bandwidth, device), "copy bandwidth (torch)"
    bandwidth = report.figure("copy_bandwidth", label, lambda value: f"{value / 1e9:,.0f} GB/s", copied)
    used = best * each / bandwidth
    label, text = f"{each} bytes per ply x best rate", f"{best * each / 1e9:,.0f} GB/s, {used:.0%} of that"
    report.row(label, text, bandwidth_share=used)
    pgx = report.measure("Pgx, where installed", partial(speed.pgx_rate, device))
    pgx_best = pgx["plies_per_second"] if isinstance(pgx, dict) else None
    ratio = best / pgx_best if pgx_best else None
    text = f"{millions('plies', 2)(pgx_best)}; {ratio:,.0f}x" if pgx_best else str(pgx)
    report.row("Pgx on the same device", text, pgx=pgx, pgx_ratio=ratio)


def _equality_row(report: Report, label: str, compared: list[dict[str, Any]]) -> bool:
    wrong = [
        f"{game['size']}x{game['size']} {game['variant']} {game['opponent'] or 'two players'}: {' '.join(game['differ'])}"
        for game in compared
        if game["differ"]
    ]
    plies = sum(game["plies"] for game in compared)
    report.row(label, f"{plies:,} plies {'DIFFER: ' + ', '.join(wrong) if wrong else 'equal'}")
    return not wrong


@bench.command(name="tokens")
def tokens(*, as_json: Json = False) -> None:
    """Measure tokens per second of random games, without labels and with board and legal moves, on the CPU and on a GPU."""
    import torch

    from benchmarks import gpu as speed

    report = Report("Token streams", "torch", "numba", "numba-cuda", "numpy")
    report.result["device"] = speed.device_name("cuda") if torch.cuda.is_available() else None
    runs = {"one_core": ("cpu", 1), "all_cores": ("cpu", None), "gpu": ("cuda", None)}
    for name, (device, threads) in runs.items():
        for labels in ((), ("board", "legal")) if device == "cpu" or torch.cuda.is_available() else ():
            label = f"{name.replace('_', ' ')}, {' and '.join(labels) or 'no labels'}"
            work = partial(speed.tokens_per_second, device, *labels, threads=threads)
            report.figure("_".join((name, *labels, "tokens_per_second")), label, millions("tokens"), work)
    report.show(as_json)


@bench.command(name="server")
def server(
    *,
    games: Annotated[int, integer("Number of simultaneous games.", "--games", low=1, high=256)] = 200,
    agent: Annotated[str, text("The server's agent.", "--agent")] = "six-factor:depth=2",
    pause: Annotated[float, number("Mean seconds that a client waits before each move.")] = 0.0,
    workers: Annotated[int, integer("Search processes of the server; 0: one per core.", "--workers")] = 0,
    hostile: Annotated[
        int, integer("Number of clients that play while one address attacks; 0: no attack.", high=128)
    ] = 0,
    as_json: Json = False,
) -> None:
    r"""Measure `reversi serve` with many games at once: response times, errors, lag of the event loop.

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
    with speed.running_server(*arguments, "--proxy", "127.0.0.1") as (url, pid):
        figures = report.measure(f"{games} games", lambda: speed.load(url, games, agent, pause))
        memory = speed.memory_mib(pid)
    p95, p99, longest = (figures[f"answer_{quantile}_ms"] for quantile in ("p95", "p99", "max"))
    report.row("games at once", f"{games} against {agent}, {pause:g} s between moves", **figures)
    report.row("moves answered", f"{figures['moves']:,}, {figures['moves_per_second']:,.0f} per second")
    report.row("answer, median", f"{figures['answer_median_ms']:.0f} ms")
    report.row("answer, 95 % / 99 % / longest", f"{p95:.0f} / {p99:.0f} / {longest:.0f} ms")
    report.row("memory of the server process", f"{memory:.0f} MiB" if memory else "unknown", server_mib=memory)
    report.row("event loop late, median / 99 %", f"{figures['lag_median_ms']:.1f} / {figures['lag_p99_ms']:.1f} ms")
    report.row("errors", str(figures["errors"]))
    report.show(as_json, failed=bool(figures["errors"]))


def _under_attack(report: Report, arguments: tuple[str, ...], clients: int, pause: float, as_json: bool) -> None:
    import os

    from benchmarks import server as speed

    cores: list[int | None] = [None]
    if hasattr(os, "sched_setaffinity"):  # the event loop has the first core, the attacker the last one, then the same
        available = sorted(os.sched_getaffinity(0))
        cores = [available[-1], available[0]]
    runs: list[dict[str, Any]] = []
    with speed.running_server(*arguments, "--proxy", "127.0.0.1") as (url, pid):
        speed.warm(url)
        if cores[-1] is not None:
            os.sched_setaffinity(pid, {cores[-1]})
        for kind, core in [("", None), *((kind, core) for kind in speed.KINDS for core in cores)]:
            name = f"{kind}, {'same' if core == cores[-1] else 'another'} core" if kind else "no attack"
            stolen = speed.stolen_seconds()
            runs.append(report.measure(name, partial(speed.load_under_attack, url, clients, pause, kind, core)))
            stolen = (speed.stolen_seconds() - stolen) / (runs[-1]["seconds"] * (os.cpu_count() or 1))
            failed = speed.exceeded(runs[-1], runs[0]) if kind else []
            times = ", ".join(
                f"{agent} {each['answer_median_ms']:.0f} / {each['answer_p99_ms']:.0f} ms"
                for agent, each in runs[-1]["agents"].items()
            )
            noise = f"; {stolen:.0%} of the processor time taken by the host" if stolen >= 0.01 else ""
            report.row(name, f"{times}{noise}{''.join(f'; TOO SLOW: {each}' for each in failed)}")
            runs[-1] |= {"too_slow": failed, "server_mib": speed.memory_mib(pid), "stolen": stolen}
    report.row("clients", f"{clients}, {pause:g} s between moves, while one address attacks; median / 99 %", runs=runs)
    report.row("memory of the server process", f"{runs[-1]['server_mib'] or 0:.0f} MiB")
    errors = sum(run["errors"] for run in runs)
    report.row("errors", str(errors))
    report.show(as_json, failed=bool(errors or any(run["too_slow"] for run in runs)))

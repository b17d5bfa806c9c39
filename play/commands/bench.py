"""`reversi bench`: how fast the parts are on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from play.commands.options import Json, print_json
from play.commands.usage import Application

app = Application(help="Measure the speed of the parts on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure the speed of the parts on this machine."""


def report(title: str, result: dict[str, Any], rows: list[tuple[str, str]], as_json: bool) -> None:
    """Print a benchmark's result: JSON, or a table for people with the machine below it."""
    if as_json:
        print_json(result)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    known = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version)
    Console().print(f"{result['cpu']}; {known}", highlight=False, soft_wrap=True)


def measure(label: str, work: Callable[[], Any]) -> Any:
    """Run one measurement, saying on standard error what is under way."""
    from rich.console import Console

    with Console(file=sys.stderr).status(label):
        return work()


@app.command("rules")
def rules(as_json: Json = False) -> None:
    """Perft leaves, random plies (one thread and all), and the cost of the first and the second start."""
    from play.bench import machine
    from play.bench import rules as speed

    perft = measure("perft 8x8 to depth 10", speed.perft_leaves_per_second)
    plies = measure("random games, one thread", speed.random_plies_per_second)
    plies_all = measure("random games, all threads", lambda: speed.random_plies_per_second(parallel=True))
    cold, warm = measure("starting with an empty and a full kernel cache", speed.start_up_seconds)
    result = {
        "cpu": machine.cpu_name(),
        "versions": machine.versions("numpy", "numba", "llvmlite"),
        "perft_leaves_per_second": perft,
        "random_plies_per_second": plies,
        "random_plies_per_second_all_cores": plies_all,
        "compile_seconds_cold": cold,
        "compile_seconds_warm": warm,
    }
    rows = [
        ("perft 8x8 depth 10, one thread", f"{perft / 1e6:.0f} million leaves/s"),
        ("random play, one thread", f"{plies / 1e6:.1f} million plies/s"),
        ("random play, all threads", f"{plies_all / 1e6:.1f} million plies/s"),
        ("start to first result, cold kernel cache", f"{cold:.2f} s"),
        ("start to first result, warm kernel cache", f"{warm:.2f} s"),
    ]
    report("Rules core", result, rows, as_json)


@app.command("start")
def start(as_json: Json = False) -> None:
    """What a first and a second start cost, the second beside importing numba and gymnasium alone."""
    from statistics import median

    from play.bench import machine
    from play.bench import start as speed

    taken = measure("second starts, in turn", speed.second_starts)
    ratios = speed.ratios(taken)
    cold = measure("a first start, with an empty kernel cache", speed.first_start)
    result = {
        "cpu": machine.cpu_name(),
        "versions": machine.versions("numpy", "numba", "gymnasium", "typer"),
        "seconds": {name: median(seconds) for name, seconds in taken.items()},
        "ratios": ratios,
        "first_start_seconds": cold,
    }
    rows = [
        ("import numba, gymnasium", f"{median(taken['libraries']):.2f} s"),
        ("reversi analyse start --depth 6", f"{median(taken['analyse']):.2f} s, {ratios['analyse']:.2f} times that"),
        ("reversi gtp, to its first move", f"{median(taken['gtp']):.2f} s, {ratios['gtp']:.2f} times that"),
        ("the first start of that analysis", f"{cold:.1f} s"),
    ]
    report("Starts", result, rows, as_json)


@app.command("env")
def env(as_json: Json = False) -> None:
    r"""Plies a second of the environments, with observations and masks produced at every step.

    Pgx and OpenSpiel are measured beside them where they are installed
    (the extra bench). How much all threads are faster than one is measured
    twice: as the machine is, and beside a process that wants a core for itself.
    """
    from play.bench import env as speed
    from play.bench import machine, timing

    single = measure("single environment, two-player mode", lambda: speed.single_rate(None, 20_000, 5))
    agent = measure("single environment against random", lambda: speed.single_rate("random", 20_000, 5))
    aec = measure("PettingZoo environment", lambda: speed.aec_rate(20_000, 5))
    one, every = measure("vector environment, batch 4096", lambda: speed.vector_rates(100, 12))
    alone = measure("all threads against one", lambda: speed.vector_speedup(100, 25))
    with timing.busy_process():
        beside = measure("all threads against one, beside a busy process", lambda: speed.vector_speedup(100, 25))
    peers = measure("Pgx and OpenSpiel, where installed", speed.peer_rates)
    pgx, openspiel = peers["pgx"], peers["openspiel"]
    result = {
        "cpu": machine.cpu_name(),
        "versions": machine.versions("numpy", "numba", "gymnasium", "pettingzoo", "pgx", "open-spiel"),
        "single_plies_per_second": single,
        "agent_steps_per_second": agent,
        "aec_plies_per_second": aec,
        "vector_plies_per_second": one,
        "vector_plies_per_second_all_cores": every,
        "vector_thread_speedup": alone,
        "vector_thread_speedup_beside_busy_process": beside,
        "pgx_plies_per_second": pgx,
        "openspiel_plies_per_second": openspiel,
        "pgx_ratio": one / pgx if pgx else None,
        "openspiel_ratio": single / openspiel if openspiel else None,
    }
    rows = [
        ("single environment, two-player mode", f"{single:,.0f} plies/s"),
        ("single environment, steps against random", f"{agent:,.0f} steps/s"),
        ("PettingZoo env()", f"{aec:,.0f} plies/s"),
        ("vector environment, batch 4096, one thread", f"{one / 1e6:.1f} million plies/s"),
        ("vector environment, batch 4096, all threads", f"{every / 1e6:.1f} million plies/s"),
        ("… all threads against one, medians", f"{alone:.2f}x"),
        ("… the same beside a busy process", f"{beside:.2f}x"),
        ("Pgx on one core", f"{pgx:,.0f} plies/s; vector is {one / pgx:.0f}x" if pgx else "not installed"),
        (
            "OpenSpiel on one core",
            f"{openspiel:,.0f} plies/s; single is {single / openspiel:.1f}x" if openspiel else "not installed",
        ),
    ]
    report("Environments", result, rows, as_json)


@app.command("search")
def search(
    as_json: Json = False,
    rounds: Annotated[int, typer.Option(help="Times that FFO 40-44 are solved on one thread and on all.", min=1)] = 3,
) -> None:
    """Node signature, midgame and endgame nodes a second, FFO 40-44 on one thread and on all, exact labels a second.

    FFO 40-44 are solved on one thread and on all in turns, and once more
    beside a process that wants a core for itself. Some minutes.
    """
    from play.bench import machine, timing
    from play.bench import search as speed
    from reversi_env.core.threads import core_count

    threads = core_count()
    in_turns = f"FFO 40-44, one thread and {threads} in turns"
    signature = measure("node signature", speed.signature)
    midgame = measure("midgame search", speed.midgame_rate)
    midgame_network = measure("midgame search, network", lambda: speed.midgame_rate("network"))
    one, every = measure(in_turns, lambda: speed.ffo_in_turns(threads, rounds))
    with timing.busy_process():
        beside = measure(f"{in_turns}, beside a busy process", lambda: speed.ffo_in_turns(threads, rounds))
    learned = measure("FFO 40-44, moves ordered by the network", lambda: speed.ffo(order="network"))
    counts = {10: 20_000, 12: 4_000, 14: 800, 16: 128}
    labels = {
        empties: measure(f"exact labels, {empties} empties", partial(speed.labels_per_second, empties, count))
        for empties, count in counts.items()
    }
    nodes, seconds = sum(p["nodes"] for p in one), sum(p["seconds"] for p in one)
    learned_nodes, learned_seconds = sum(p["nodes"] for p in learned), sum(p["seconds"] for p in learned)
    seconds_every = sum(p["seconds"] for p in every)
    seconds_beside, seconds_every_beside = (sum(p["seconds"] for p in found) for found in beside)
    result = {
        "cpu": machine.cpu_name(),
        "versions": machine.versions("numpy", "numba", "llvmlite"),
        "signature": signature,
        "midgame_nodes_per_second": midgame,
        "midgame_network_nodes_per_second": midgame_network,
        "endgame_nodes_per_second": nodes / seconds,
        "ffo": one,
        "ffo_nodes": nodes,
        "ffo_seconds": seconds,
        "ffo_network": learned,
        "ffo_network_nodes": learned_nodes,
        "ffo_network_seconds": learned_seconds,
        "ffo_all_threads": every,
        "threads": threads,
        "thread_speedup": seconds / seconds_every,
        "thread_speedup_beside_busy_process": seconds_beside / seconds_every_beside,
        "labels_per_second": {str(empties): rate for empties, rate in labels.items()},
    }
    rows = [
        ("signature", f"{signature:,} nodes"),
        ("midgame, six-factor to depth 8, one thread", f"{midgame / 1e6:.2f} million nodes/s"),
        ("midgame, network to depth 8, one thread", f"{midgame_network / 1e6:.2f} million nodes/s"),
        ("endgame, one thread", f"{nodes / seconds / 1e6:.1f} million nodes/s"),
        *(
            (f"FFO {p['problem']}: {p['score']:+d}", f"{p['nodes'] / 1e6:.1f} million nodes, {p['seconds']:.2f} s")
            for p in one
        ),
        ("FFO 40-44 together", f"{nodes / 1e6:.0f} million nodes, {seconds:.1f} s"),
        (
            "FFO 40-44, moves ordered by the network",
            f"{learned_nodes / 1e6:.0f} million nodes, {learned_seconds:.1f} s, "
            f"{learned_nodes / learned_seconds / 1e6:.1f} million nodes/s",
        ),
        (f"FFO 40-44 on {threads} threads", f"{seconds_every:.1f} s ({seconds / seconds_every:.2f}x)"),
        (
            "… the same beside a busy process",
            f"{seconds_beside:.1f} s and {seconds_every_beside:.1f} s ({seconds_beside / seconds_every_beside:.2f}x)",
        ),
        *(
            (f"exact labels at {empties} empties, all cores", f"{rate:,.0f} a second")
            for empties, rate in labels.items()
        ),
    ]
    report("Search", result, rows, as_json)


def _equality(compared: list[dict[str, Any]]) -> str:
    """What came of comparing games with the CPU core."""
    plies = sum(game["plies"] for game in compared)
    wrong = [f"{game['variant']} {game['opponent'] or 'two players'}" for game in compared if not game["equal"]]
    return f"{plies:,} plies {'DIFFER: ' + ', '.join(wrong) if wrong else 'equal to the CPU core'}"


@app.command("labels")
def labels(
    as_json: Json = False,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Measure a GPU too, and compare its scores with the CPU's.")
    ] = False,
    compared: Annotated[int, typer.Option("--compare", help="Positions of each variant to compare.")] = 1_000_000,
    scale: Annotated[float, typer.Option(help="Share of the usual number of positions to time.")] = 1.0,
) -> None:
    """Exact labels a second by number of empty squares, on all cores and on one GPU."""
    from play.bench import labels as speed
    from play.bench import machine
    from search.solver import solve_batch

    rates = {
        "cpu": measure("CPU, all cores", partial(speed.labels_per_second, solve_batch, speed.CPU_POSITIONS, scale))
    }
    result: dict[str, Any] = {"cpu": machine.cpu_name(), "versions": machine.versions("numpy", "numba", "numba-cuda")}
    if gpu:
        from play.bench.gpu import device_name
        from search.gpu.solver import solve_batch_cuda

        rates["gpu"] = measure("GPU", partial(speed.labels_per_second, solve_batch_cuda, speed.GPU_POSITIONS, scale))
        result |= {"gpu": device_name("cuda")}
        result["compared"] = measure("equality", partial(speed.compare, solve_batch_cuda, compared))
    result["labels_per_second"] = rates
    rows = [
        (f"{empties} empties, {where}", f"{rate:,.0f} labels/s")
        for where, by_empties in rates.items()
        for empties, rate in by_empties.items()
    ]
    if gpu:
        found = result["compared"]
        rows += [(f"{found['positions']:,} {v} positions", f"{n} differ") for v, n in found["differing"].items()]
    report(f"Exact labels on {result.get('gpu', result['cpu'])}", result, rows, as_json)


@app.command("rl")
def rl(
    updates: Annotated[int, typer.Option("--updates", help="Updates of 16,384 steps that are timed.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """Steps a second of MaskablePPO, as stable-baselines3 reports them, one core for torch.

    On our vector environment, and on DummyVecEnv and SubprocVecEnv of the
    single one: with the network, the updates and past selves of reversi rl,
    and with a small network of stable-baselines3's own against random. Some
    minutes: the wrappers ask a past self about one position at a time.
    """
    from play.bench import machine
    from play.bench import rl as speed
    from reversi_env.extras import require

    require("sb3_contrib", "stable_baselines3", "torch")
    result: dict[str, Any] = {
        "cpu": machine.cpu_name(),
        "versions": machine.versions("torch", "stable-baselines3", "sb3-contrib", "numba"),
    }
    rows = []
    for kind, title in (("selfplay", "reversi rl, against past selves"), ("small", "MlpPolicy against random")):
        found = {
            vector: measure(f"{title}: {vector}", partial(speed.measured, kind, vector, updates))
            for vector in speed.VECTORS
        }
        rates = {vector: figures["steps_per_second"] for vector, figures in found.items()}
        ratio = rates["ours"] / max(rates["dummy"], rates["subproc"])
        games = found["ours"]["step"] - found["ours"]["opponents"]
        result[kind] = {
            **{f"{vector}_steps_per_second": rate for vector, rate in rates.items()},
            "ratio": ratio,
            "environment_share": games,
            "opponents_share": found["ours"]["opponents"],
        }
        rows += [
            (f"{title}: our vector environment", f"{rates['ours']:,.0f} steps/s"),
            ("… DummyVecEnv / SubprocVecEnv", f"{rates['dummy']:,.0f} / {rates['subproc']:,.0f} steps/s"),
            ("… ours beside the better of them", f"{ratio:.1f} times as fast"),
            (
                "… share of the time: environment / opponents' networks",
                f"{games:.1%} / {found['ours']['opponents']:.1%}",
            ),
        ]
    report("Training with stable-baselines3, 6x6", result, rows, as_json)


@app.command("gpu")
def gpu(
    as_json: Json = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="Measure the same class on the CPU kernels instead.")] = False,
    plies: Annotated[
        int, typer.Option(help="Plies to compare with the CPU core, for every size and variant.")
    ] = 10_000_000,
    batches: Annotated[str, typer.Option(help="Batch sizes, with commas; default by device.")] = "",
) -> None:
    """`TorchVectorEnv` on one GPU: plies a second against the memory's bandwidth, Pgx, equality with the CPU, a network's share."""
    from play.bench import gpu as speed
    from play.bench import machine

    device = "cpu" if cpu else "cuda"
    sizes = [int(text) for text in batches.split(",") if text] or list(speed.CPU_BATCHES if cpu else speed.GPU_BATCHES)
    rates = {n: measure(f"random play, batch {n}", partial(speed.plies_per_second, device, n)) for n in sizes}
    given = measure("given actions", partial(speed.plies_per_second, device, sizes[-1], given=True))
    bandwidth = measure("copy bandwidth", partial(speed.copy_bandwidth, device))
    policy = measure("a policy network plays", partial(speed.environment_share, device, 256 if cpu else 65_536))
    pgx = measure("Pgx, where installed", partial(speed.pgx_rate, device))
    compared = measure("equality with the CPU core", lambda: list(speed.equal_to_cpu(device, plies)))
    best, each = max(rates.values()), speed.bytes_per_ply()
    pgx_best = pgx["plies_per_second"] if isinstance(pgx, dict) else None
    result = {
        "device": speed.device_name(device),
        "cpu": machine.cpu_name(),
        "versions": machine.versions("torch", "numba", "numba-cuda", "numpy", "jax", "pgx"),
        "plies_per_second": {str(n): rate for n, rate in rates.items()},
        "given_actions_plies_per_second": given,
        "bytes_per_ply": each,
        "copy_bandwidth": bandwidth,
        "bandwidth_share": best * each / bandwidth,
        "pgx": pgx,
        "pgx_ratio": best / pgx_best if pgx_best else None,
        "policy": policy,
        "equal": all(game["equal"] for game in compared),
        "compared": compared,
    }
    rows = [
        *((f"random play, batch {n:,}", f"{rate / 1e6:,.1f} million plies/s") for n, rate in rates.items()),
        (f"given actions, batch {sizes[-1]:,}", f"{given / 1e6:,.1f} million plies/s"),
        ("copy bandwidth (torch)", f"{bandwidth / 1e9:,.0f} GB/s"),
        (f"{each} bytes a ply x best rate", f"{best * each / 1e9:,.0f} GB/s, {best * each / bandwidth:.0%} of it"),
        (
            "Pgx on the same device",
            f"{pgx_best / 1e6:,.2f} million plies/s; {best / pgx_best:,.0f}x" if pgx_best else str(pgx),
        ),
        (
            f"small CNN policy, batch {policy['batch']:,.0f}",
            f"{policy['plies_per_second'] / 1e6:,.2f} million plies/s, {policy['share']:.1%} in the environment",
        ),
        *(
            (f"random play on {side}x{side}", _equality([game for game in compared if game["size"] == side]))
            for side in (8, 6, 4)
        ),
    ]
    report(f"Environments on {result['device']}", result, rows, as_json)
    if not result["equal"]:
        raise typer.Exit(1)


@app.command("server")
def server(
    games: Annotated[int, typer.Option("--games", "-g", help="Games at the same time.", min=1, max=256)] = 200,
    agent: Annotated[str, typer.Option("--agent", "-a", help="The server's agent.")] = "six-factor:depth=2",
    pause: Annotated[float, typer.Option(help="Mean seconds before each move of a client; 0 for none.", min=0)] = 0.0,
    workers: Annotated[int, typer.Option(help="The server's search processes; by default one a core.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    r"""`reversi serve` on this machine under many games at once: times of the answers, errors, lag of its event loop.

    Needs the extra web. The clients share the machine with the server.
    """
    import os

    from play.bench import machine
    from play.bench import server as speed
    from reversi_env.extras import require

    require("starlette", "uvicorn", "h11", "websockets", "msgspec")
    with speed.running_server("--workers", str(workers or os.cpu_count() or 1)) as (url, pid):
        found = measure(f"{games} games", lambda: speed.load(url, games, agent, pause))
        memory = speed.memory_mib(pid)
    result = {
        "cpu": machine.cpu_name(),
        "versions": machine.versions("starlette", "uvicorn", "websockets", "msgspec", "uvloop"),
        **found,
        "server_mib": memory,
    }
    rows = [
        ("games at once", f"{games} against {agent}, {pause:g} s between moves"),
        ("moves answered", f"{found['moves']:,}, {found['moves_per_second']:,.0f} a second"),
        ("errors", str(found["errors"])),
        ("answer, median", f"{found['answer_median_ms']:.0f} ms"),
        (
            "answer, 95 % / 99 % / longest",
            " / ".join(f"{found[f'answer_{q}_ms']:.0f}" for q in ("p95", "p99", "max")) + " ms",
        ),
        ("event loop late, median / 99 %", f"{found['lag_median_ms']:.1f} / {found['lag_p99_ms']:.1f} ms"),
        ("memory of the server process", f"{memory:.0f} MiB" if memory else "unknown"),
    ]
    report("Server", result, rows, as_json)
    if found["errors"]:
        raise typer.Exit(1)

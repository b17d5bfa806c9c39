"""`reversi rl`, with `zero` and `exam`: agents that learn by playing, in folders that an interruption cannot spoil."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.cli.job_options import SWITCHES, given, options_from
from play.cli.options import Json, Seed, Threads, checked_even, made_folder, torch_threads
from play.cli.output import ends_at_ctrl_c, print_json, print_table, progress_bar
from play.cli.usage import Application

if TYPE_CHECKING:
    from reversi_env.options import Options
    from train.alphazero.run import SelfPlayRun
    from train.rl.options import RlOptions
    from train.rl.tensor_ppo import TensorPPO
    from train.rl.training import Training

#: Columns that the table of an exam needs.
EXAM_WIDTH = 96
app = Application(invoke_without_command=True, rich_markup_mode="rich")

Out = Annotated[str | None, typer.Option("--out", "-o", help="Folder for policies, logs and checkpoints.")]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder where solved positions are kept.")]


def _going_on(command: str, out: str | None, threads: int | None, more: str = "") -> str:
    """What to say when it was stopped: the folder knows the options, but not the threads, on which sums depend."""
    count = "" if threads is None else f" --threads {threads}"
    return f"stopped; go on with: reversi {command} --out {shlex.quote(str(out))}{count}{more}"


def _run(out: str | None, kind: type[Options], preset: Callable[..., Options], changes: dict[str, Any]) -> Any:
    """What a training is made with: its folder, and the options that this was begun with, or a preset, with *changes*."""
    from reversi_env.errors import ReversiError
    from train.run import remembered

    if out is None:
        raise ReversiError("--out is missing: expected a folder for policies and logs")
    begun = remembered(Path(out), kind)
    options = replace(begun, **changes) if begun else preset(**changes)
    made_folder("--out", Path(out))
    return {"folder": Path(out), "options": options, "command": shlex.join(["reversi", *sys.argv[1:]])}


# --- reinforcement learning -----------------------------------------------------------------------


@app.callback()
@options_from("train.rl.options:RlOptions", presets=True, named={"opponents": "opponent"})
def rl(
    context: typer.Context,
    out: Out = None,
    regret: Annotated[
        bool, typer.Option(help="Judge the policy in solved endgames too.", rich_help_panel=SWITCHES)
    ] = True,
    threads: Annotated[int, typer.Option("--threads", "-t", help="Cores that torch uses.", min=1, max=1024)] = 1,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Train an agent by reinforcement learning, from nothing.

    Example: reversi rl --out runs/first --size 6

    The agent plays past selves and baselines and learns by MaskablePPO
    (with --device cuda by tensor-ppo, which plays itself in thousands of
    games on the GPU); now and then it is measured against a ladder of
    players, and in solved endgames. Options that are not given are those
    that did well for the game. The folder gets policy.safetensors, for the
    agents [b]rl:FILE[/b] and [b]rl-search:FILE[/b], curve.svg and regret.svg, log.csv,
    evaluations.csv, and logs for TensorBoard.

    Run the same command again to go on after Ctrl-C, or after a crash; --out
    alone is enough. With more --steps a finished training goes on.
    """
    if context.invoked_subcommand is not None:
        return
    from play.first_start import prepare_parts
    from reversi_env.extras import require
    from train.rl.options import RlOptions, faster_precision, preset
    from train.run import remembered

    begun = remembered(Path(out), RlOptions) if out else None
    usual: dict[str, Any] = {"algorithm": "tensor-ppo" if device == "cuda" else "ppo"}
    algorithm = given(context).get("algorithm", begun.algorithm if begun else usual["algorithm"])
    by_tensors = algorithm == "tensor-ppo"
    require(
        *([] if by_tensors else ["sb3_contrib", "stable_baselines3"]), "torch"
    )  # all at once, not one after the other
    from train.fitting.fit import checked_device

    checked_device(device)
    usual["precision"] = faster_precision(device)
    run = _run(out, RlOptions, partial(preset, **usual), given(context))
    prepare_parts(["environment", "endgames"])
    began = perf_counter()
    where = "" if device == "cpu" else f" --device {device}"
    with ends_at_ctrl_c(_going_on("rl", out, threads, where)), progress_bar() as show:
        training = _training(run["options"])(**run, threads=threads, device=device, regret=regret, progress=show)
        training.run()
    show_training(training, perf_counter() - began, as_json)


def _training(options: RlOptions) -> type[Training] | type[TensorPPO]:
    """What learns so."""
    if options.algorithm == "tensor-ppo":
        from train.rl.tensor_ppo import TensorPPO

        return TensorPPO
    from train.rl.training import Training

    return Training


def show_training(training: Training | TensorPPO, seconds: float, as_json: bool) -> None:
    """How strong the agent is, and how to use it."""
    from train.games.ratings import rating_text

    path, standing = training.policy, training.evaluations[-1]
    if as_json:
        print_json({"policy": str(path), **standing, "seconds": seconds})
        return
    rows = (
        (
            *(name, rung["wins"], rung["draws"], rung["losses"], f"{rung['points']:.1%}"),
            "–".join(f"{end:.1%}" for end in rung.get("interval", ())),  # files of version 0.2 have none
            f"{rung['discs']:+.1f}",
        )
        for name, rung in standing["rungs"].items()
    )
    print_table(("against", "won", "drawn", "lost", "score", "95 % interval", "discs"), rows, gap=2)
    elo = rating_text(*(standing[key] for key in ("elo", "elo_low", "elo_high")))
    asked, done = training.options.steps, standing["steps"]
    rounded = (
        f" ({asked:,} asked for, and to the end of an update)" if asked < done == training.options.whole_steps else ""
    )
    print(f"Elo above random: {elo} after {done:,} steps{rounded}")
    before = training.seconds
    print(f"{seconds:.1f} s" + (f", and {before:,.1f} s in the runs before" if before else ""))
    if "steps_per_second" in standing:
        print(f"{standing['steps_per_second']:,} environment steps/s, without the evaluations")
    print(f"policy: {path}")
    game = f"--size {training.rules.size} --variant {training.rules.variant}"
    print(f"play it: reversi play --agent rl:{shlex.quote(str(path))} {game}")


# --- AlphaZero ------------------------------------------------------------------------------------


@app.command("zero")
@options_from("train.alphazero.options:SelfPlayOptions", presets=True)
def zero(
    context: typer.Context,
    out: Out = None,
    exam: Annotated[bool, typer.Option(help="A last table, with and without search.")] = True,
    cache: Cache = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """AlphaZero: the network plays itself, a tree search chooses every move.

    Example: reversi rl zero --out runs/zero --size 6

    Thousands of games are searched at once, by Gumbel AlphaZero or PUCT; the
    network learns what the searches found and how the games ended. Now and
    then its policy alone is measured against a ladder of players, and in
    solved endgames. Options that are not given are those that did well for
    the board and the device: a CPU will do for 4x4 and 6x6.

    Run the same command again to go on after Ctrl-C, or after a crash; --out
    alone is enough. The folder has zero-....safetensors for the agent
    [b]zero:FILE[/b], log.csv, curve.svg and errors.svg.
    """
    from reversi_env.extras import require

    require("torch")
    from train.alphazero.options import SelfPlayOptions, preset
    from train.alphazero.run import SelfPlayRun

    run, began = _run(out, SelfPlayOptions, preset, given(context)), perf_counter()
    with ends_at_ctrl_c(_going_on("rl zero", out, threads)), progress_bar() as show:
        training = SelfPlayRun(**run, threads=torch_threads(threads), cache=cache, progress=show)
        taught = training.run()
        table = training.examined() if exam and training.options.ladder else None
    _show_zero(training, taught.weights, table, perf_counter() - began, as_json)


def _show_zero(
    training: SelfPlayRun, weights: Path, table: dict[str, dict[str, Any]] | None, seconds: float, as_json: bool
) -> None:
    """Where the network is, how good it is, and how to use it."""
    if as_json:
        print_json({"weights": str(weights), "figures": training.figures, "exam": table, "seconds": seconds})
        return
    if table is not None:
        names = list(next(iter(table.values()))["points"])
        rows = [
            (player, *(f"{100 * of['points'][name]:.1f}" for name in names), *_elo_cells(of), f"{of['regret']:.2f}")
            for player, of in table.items()
        ]
        headings = [name.replace("-", "-\n").replace(":", ":\n") for name in names]
        print_table(
            ["points, %", *headings, "Elo", "95 %\ninterval", "discs\ngiven\naway"],
            rows,
            width=EXAM_WIDTH,
            gap=1,
            show_edge=False,
        )
    from reversi_env.errors import count_noun

    print(f"{count_noun(training.options.generations, 'generation')}, {seconds:.1f} s")
    print(f"weights: {weights}")
    game = f"--size {training.rules.size} --variant {training.rules.variant}"
    print(f"play it: reversi play --agent zero:{shlex.quote(str(weights))},simulations=64 {game}")


# --- a policy with and without search -------------------------------------------------------------


@app.command("exam")
def exam(
    policy: Annotated[str, typer.Argument(metavar="FILE", help="A policy: policy.safetensors of a training.")],
    games: Annotated[int, typer.Option("--games", "-g", help="Against each rung; even.", min=2)] = 400,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Plies of the search.", min=1, max=4)] = 2,
    cache: Cache = None,
    threads: Threads = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """A policy with and without search, beside the network evaluator.

    Example: reversi rl exam runs/first/policy.safetensors

    Points against every rung of the ladder, Elo above random, and what is
    given away in solved endgames: the policy's best moves, the moves after
    which its value is best, alpha-beta over that value, and the same searches
    with the evaluator [b]network[/b].
    """
    from reversi_env.extras import require

    require("torch")
    checked_even("--games", games)
    from train.rl.exam import examine

    how: dict[str, Any] = {"depth": depth, "seed": seed, "cache": cache, "threads": torch_threads(threads)}
    with progress_bar() as show:
        table = examine(Path(policy), games=games, progress=lambda *at: show("examining", at[1], at[2], at[0]), **how)
    if as_json:
        print_json(table)
    else:
        _show_exam(table)


def _elo_cells(entry: dict[str, Any]) -> tuple[str, str]:
    """Elo and its interval; the interval alone if Elo is not determined."""
    from train.games.ratings import interval_text

    interval = interval_text(entry["elo_low"], entry["elo_high"])
    return f"{entry['elo']:.0f}" if "…" in interval else "", interval


def _show_exam(table: dict[str, Any]) -> None:
    """The table for people; where it is wider than the terminal, that may break lines, but nothing is cut off."""
    names = list(next(iter(table["players"].values()))["rungs"])
    headings = [name.replace("-", "-\n").replace(":", ":\n") for name in names]
    rows = []
    for player, entry in table["players"].items():
        points = (f"{100 * entry['rungs'][name]['points']:.1f}" for name in names)
        rows.append((player, *points, *_elo_cells(entry), f"{entry['regret']:.2f}", f"{100 * entry['optimal']:.1f}"))
    headings = ["points, %", *headings, "Elo", "95 %\ninterval", "discs\ngiven\naway", "best\nmoves,\n%"]
    print_table(headings, rows, width=EXAM_WIDTH, gap=1, show_edge=False)
    where = f"{table['size']}x{table['size']} {table['variant']}, {table['policy']}"
    print(f"{where}: {table['games']} games against each, {table['positions']} solved endgames")

"""`reversi rl expert`: a policy and a value learnt from the searcher, in a folder that an interruption cannot spoil."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, VariantOption, made_folder, print_json

if TYPE_CHECKING:
    from train.rl.expert import Expert, Progress


def expert(
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder for labels, policies and logs.")] = None,
    size: Annotated[int | None, typer.Option("--size", "-n", help="Board size: 4, 6 or 8; 6 by default.")] = None,
    variant: Annotated[
        VariantOption | None, typer.Option("--variant", "-v", help="Most discs win, or fewest do.")
    ] = None,
    labeller: Annotated[
        str | None,
        typer.Option("--labeller", help="network:depth=4,exact=12; six-factor:depth=4; self:depth=2; exact."),
    ] = None,
    iterations: Annotated[int | None, typer.Option("--iterations", "-i", help="Rounds.")] = None,
    positions: Annotated[int | None, typer.Option("--positions", "-p", help="New positions a round.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Positions learnt a round.")] = None,
    heat: Annotated[
        float | None, typer.Option("--heat", help="Discs; how sharply searched moves are told apart.")
    ] = None,
    channels: Annotated[int | None, typer.Option("--channels", help="Of the network.")] = None,
    blocks: Annotated[int | None, typer.Option("--blocks", help="Of the network, two convolutions each.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Positions a step.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Adam's rate at the beginning.")] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="single, or bfloat16 while learning.")] = None,
    games: Annotated[int | None, typer.Option("--games", "-g", help="Against each baseline after a round.")] = None,
    exam: Annotated[int, typer.Option("--exam", help="Games of the last table, each; 0: no table.", min=0)] = 200,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder where solved positions are kept.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="Default: one a core.", min=1, max=1024)
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of everything.", min=0)] = None,
    as_json: Json = False,
) -> None:
    """Expert iteration: the network plays, a searcher corrects it, it learns.

    Example: reversi rl expert --out runs/expert --size 6

    Every round the network plays itself, with noise; the searcher says what
    each move of the new positions is worth, exactly near the end of the game;
    the network learns best moves and values from all rounds. Options that are
    not given are those that did well for the game.

    Run the same command again to go on after Ctrl-C, or after a crash; --out
    alone is enough. The folder has policy.safetensors for the agents rl and
    rl-search, log.csv, learning.svg, and regret.svg: how many discs it gives
    away in solved endgames, round by round.
    """
    from play.commands.interruptible import INTERRUPTED
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require

    require("torch")
    if out is None:
        raise ReversiError("--out is missing: expected a folder for labels, policies and logs")
    if exam % 2:
        raise ReversiError(f"--exam {exam}: expected an even number, since every opening is played from both sides")
    folder = Path(out)
    made_folder("--out", folder)
    given = {
        "size": size,
        "variant": variant.value if variant else None,
        "labeller": labeller,
        "iterations": iterations,
        "positions": positions,
        "samples": samples,
        "heat": heat,
        "channels": channels,
        "blocks": blocks,
        "batch": batch,
        "rate": rate,
        "precision": precision,
        "games": games,
        "seed": seed,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    began = perf_counter()
    try:
        found, table = _run(folder, changes, threads, cache, exam)
    except KeyboardInterrupt:
        print(f"stopped; go on with: reversi rl expert --out {shlex.quote(out)}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    _show(found, table, perf_counter() - began, as_json)


def _run(
    out: Path, changes: dict[str, Any], threads: int | None, cache: Path | None, exam: int
) -> tuple[Expert, dict[str, Any] | None]:
    """All rounds and, if it is asked for, the policy with and without search."""
    import torch

    from play.commands.train import _meters
    from train.rl.expert import ExpertIteration, examine, remembered
    from train.rl.expert_options import ExpertOptions, preset

    begun = remembered(out)
    options = preset(**changes) if begun is None else ExpertOptions(**(begun.as_dict() | changes))
    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    with _meters() as meter:

        def show(step: Progress) -> None:
            where = f"round {step.iteration}/{step.iterations}: " if step.iteration else ""
            meter(f"{where}{step.doing}", step.done, step.total, "")

        command = shlex.join(["reversi", *sys.argv[1:]])
        run = ExpertIteration(out, options, threads=count, command=command, cache=cache, progress=show)
        found = run.run()
        if not exam:
            return found, None

        def show_exam(player: str, done: int, total: int) -> None:
            meter("with and without search", done, total, player)

        return found, examine(found.policy, games=exam, threads=count, cache=cache, progress=show_exam)


def _show(found: Expert, table: dict[str, Any] | None, seconds: float, as_json: bool) -> None:
    """Where the policy is, how good it is, and how to use it."""
    if as_json:
        print_json({"policy": str(found.policy), "figures": found.figures, "exam": table, "seconds": seconds})
        return
    if table is not None:
        from play.commands.rl_exam import show_exam

        show_exam(table)
    last = found.figures[-1]
    print(f"{len(found.figures)} rounds, {last['positions']:,} positions, {seconds:.1f} s")
    print(f"policy: {found.policy}")
    game = f"--size {found.rules.size} --variant {found.rules.variant}"
    print(f"use it: reversi match rl:{found.policy} six-factor:depth=2 {game} --games 20")
    print(f"        reversi match rl-search:{found.policy},depth=2 six-factor:depth=2 {game} --games 20")

"""`reversi rl`: an agent that learns by playing, in a folder that an interruption cannot spoil."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, VariantOption, made_folder, print_json
from play.commands.specs import complete_spec
from play.commands.usage import Application

if TYPE_CHECKING:
    from train.rl.options import RlOptions
    from train.rl.training import Progress, Training

#: Options of the command that are those of `train.rl.options.RlOptions`, as they are.
OPTIONS = frozenset(
    {
        *("size", "algorithm", "steps", "seed", "envs", "rollout", "batch", "epochs", "rate", "entropy", "trace"),
        "precision",
        *("channels", "blocks", "baseline_share", "snapshot", "pool", "plies", "evaluate", "games"),
    }
)
app = Application(invoke_without_command=True, rich_markup_mode="rich")


@app.callback()
def rl(
    context: typer.Context,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder for the policy, logs and checkpoints.")] = None,
    size: Annotated[int | None, typer.Option("--size", "-n", help="Board size: 4, 6 or 8; 6 by default.")] = None,
    variant: Annotated[
        VariantOption | None, typer.Option("--variant", "-v", help="Most discs win, or fewest do.")
    ] = None,
    algorithm: Annotated[str | None, typer.Option("--algorithm", help="ppo (MaskablePPO) or dqn.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", "-s", help="Moves of the agent, in all games.")] = None,
    envs: Annotated[int | None, typer.Option("--envs", help="Games in step.")] = None,
    rollout: Annotated[int | None, typer.Option("--rollout", help="Moves in each between two updates.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Positions a gradient.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Times every position is seen.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Adam's rate; it falls to a tenth.")] = None,
    entropy: Annotated[float | None, typer.Option("--entropy", help="Weight of the entropy bonus.")] = None,
    trace: Annotated[float | None, typer.Option("--trace", help="Lambda of the advantage estimates.")] = None,
    channels: Annotated[int | None, typer.Option("--channels", help="Of the network.")] = None,
    blocks: Annotated[int | None, typer.Option("--blocks", help="Of the network, two convolutions each.")] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="single or bfloat16; by default the faster one here.")
    ] = None,
    opponent: Annotated[
        list[str] | None,
        typer.Option("--opponent", help="A baseline by spec; repeat for more.", autocompletion=complete_spec),
    ] = None,
    baseline_share: Annotated[
        float | None, typer.Option("--baseline-share", help="Of the games; the others are against past selves.")
    ] = None,
    snapshot: Annotated[int | None, typer.Option("--snapshot", help="Steps until another self joins.")] = None,
    pool: Annotated[int | None, typer.Option("--pool", help="Past selves that are drawn from.")] = None,
    plies: Annotated[int | None, typer.Option("--plies", help="Random plies before a game, at most.")] = None,
    evaluate: Annotated[int | None, typer.Option("--evaluate", help="Steps between two evaluations.")] = None,
    games: Annotated[int | None, typer.Option("--games", "-g", help="Against each rung of the ladder.")] = None,
    regret: Annotated[bool, typer.Option(help="Judge the policy in solved endgames too.")] = True,
    seed: Annotated[int | None, typer.Option("--seed", help="Of everything.", min=0)] = None,
    threads: Annotated[int, typer.Option("--threads", "-t", help="Cores that torch uses.", min=1, max=1024)] = 1,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Train an agent by reinforcement learning, from nothing.

    Example: reversi rl --out runs/first --size 6

    The agent plays past selves and baselines and learns by MaskablePPO (or
    DQN); now and then it is measured against a ladder of players, and in
    solved endgames. Options that are not given are those that did well for
    the game. The folder gets policy.zip, for the agents [b]rl:FOLDER/policy.zip[/b]
    and [b]rl-search:FOLDER/policy.zip[/b], curve.svg and regret.svg, log.csv,
    evaluations.csv, and logs for TensorBoard.

    Run the same command again to go on after Ctrl-C, or after a crash; --out
    alone is enough. With more --steps a finished training goes on.
    """
    if context.invoked_subcommand is not None:
        return
    given = {name: value for name, value in context.params.items() if name in OPTIONS and value is not None}
    changes = (
        given | ({"variant": variant.value} if variant else {}) | ({"opponents": tuple(opponent)} if opponent else {})
    )
    _train(out, changes, {"threads": threads, "device": device, "regret": regret}, as_json)


def _train(out: str | None, changes: dict[str, Any], how: dict[str, Any], as_json: bool) -> None:
    from play.commands.interruptible import INTERRUPTED
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require

    require("sb3_contrib", "stable_baselines3", "torch")
    if out is None:
        raise ReversiError("--out is missing: expected a folder for the policy and logs")
    folder = Path(out)
    _checked_device(how["device"])
    options = _options(folder, changes, how["device"])
    made_folder("--out", folder)
    from play.first_start import prepare_parts
    from train.rl.training import Training

    prepare_parts(["environment", "endgames"])
    command, began = shlex.join(["reversi", *sys.argv[1:]]), perf_counter()
    try:
        with _meter() as show:
            training = Training(folder, options, **how, command=command, progress=show)
            training.run()
    except KeyboardInterrupt:
        print(f"stopped; go on with: reversi rl --out {shlex.quote(out)}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    _show(training, folder, perf_counter() - began, as_json)


def _options(folder: Path, changes: dict[str, Any], device: str) -> RlOptions:
    """Those that the folder remembers, or a preset, with *changes*."""
    from train.rl.options import RlOptions, fastest_precision, preset
    from train.rl.training import RUN, remembered

    if (folder / RUN).exists():
        return RlOptions.from_dict(remembered(folder).as_dict() | changes)
    return preset(**{"precision": fastest_precision(device), **changes})


def _checked_device(device: str) -> None:
    import torch

    from reversi_env.errors import ReversiError

    if device not in ("cpu", "cuda"):
        raise ReversiError(f"--device {device!r}: expected cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise ReversiError("--device 'cuda': no GPU that torch can use was found, expected cpu")


@contextmanager
def _meter() -> Iterator[Callable[[Progress], None]]:
    """A bar on standard error: steps, steps a second, and how strong the agent is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    console = Console(file=sys.stderr)
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None, note="")

        def show(step: Progress) -> None:
            note = f"{step.rate:,.0f} steps/s" if step.rate > 0 else ""
            if step.standing is not None:
                note += f", {step.standing['elo']:+.0f} Elo"
            bar.update(task, description=step.doing, completed=step.steps, total=step.total, note=note)

        yield show


def _show(training: Training, folder: Path, seconds: float, as_json: bool) -> None:
    """How strong the agent is, and how to use it."""
    from train.rl.training import POLICY

    path, standing = folder / POLICY, training.evaluations[-1]
    if as_json:
        print_json({"policy": str(path), **standing, "seconds": seconds})
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("against")
    for heading in ("won", "drawn", "lost", "score", "discs"):
        table.add_column(heading, justify="right")
    for name, rung in standing["rungs"].items():
        figures = (f"{rung['points']:.1%}", f"{rung['discs']:+.1f}")
        table.add_row(name, *(str(rung[key]) for key in ("wins", "draws", "losses")), *figures)
    Console().print(table)
    interval = f"{standing['elo_low']:+.0f}…{standing['elo_high']:+.0f}"
    print(f"{standing['elo']:+.0f} Elo above random ({interval}) after {standing['steps']:,} steps")
    print(f"{seconds:.1f} s; the whole training took {standing['seconds']:,.0f} s")
    print(f"policy: {path}")
    game = f"--size {training.rules.size} --variant {training.rules.variant}"
    print(f"play it: reversi play --agent rl:{shlex.quote(str(path))} {game}")

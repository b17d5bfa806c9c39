"""`reversi tokens`, `reversi train gpt` and `reversi probe`: games as sequences, a model of them, and what it knows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Device, Json, Out, Threads, options_of, torch_threads
from play.cli.output import RESUME, exit_on_interrupt, print_json, print_table, progress_bar
from play.cli.training.ppo import resume_text, started_run
from train.sequences.options import GPTOptions, ProbeOptions, TokenOptions

TokenChoice: Any = options_of(TokenOptions)
GPTChoice: Any = options_of(GPTOptions)
ProbeChoice: Any = options_of(ProbeOptions)


def tokens(
    out: Annotated[Path, Parameter(help="Output folder; created if missing.")],
    /,
    *,
    chosen: TokenChoice = NOTHING,
    device: Device = "cpu",
) -> None:
    """Write games as sequences of tokens to Parquet files.

    Example: reversi tokens games --games 20000000 --device cuda

    Token 0 is padding, and 1 to 60 are the squares of 8x8 row by row, without the
    centre, as in Othello-GPT. In games of agents, --prefix random moves come first,
    and each side draws one of the agents, whose moves are sampled at the temperature
    in discs that follows @. Run the same command again to resume.
    """
    from train.sequences.streams import write_tokens

    options = TokenOptions(**chosen)
    with exit_on_interrupt(f"stopped; {RESUME}"), progress_bar() as show:
        write_tokens(options, out, device, show)
    print(f"{options.games:,} games in {out}")


def gpt(*, out: Out, chosen: GPTChoice = NOTHING, threads: Threads = None) -> None:
    """Train a GPT to predict the moves of games (Othello-GPT).

    Example: reversi train gpt --out runs/gpt --size 6

    Held-out games show how often the most probable token is illegal, the
    probability of illegal tokens, and the loss beside that of uniform legal play.

    Run the same command again to resume after Ctrl-C or a crash; --out alone is
    enough. The folder has gpt-….safetensors for the agent gpt:FILE (its header has
    the last evaluation by ply), log.csv, and logs for TensorBoard.
    """
    from models.gpt import read_gpt
    from train.sequences.fit import METRICS, train_gpt

    run = started_run(out, GPTOptions, GPTOptions, dict(chosen))
    torch_threads(threads)
    with exit_on_interrupt(resume_text("gpt", out, threads)), progress_bar(lines=True) as show:
        weights = train_gpt(**run, progress=show)
    last = read_gpt(weights).record["metrics"][-1]
    title = f"{last['predictions']:,} held-out predictions after {last['step']:,} steps"
    print_table((title, ""), [(name, f"{last[name]:.5f}") for name in METRICS], gap=2)
    print(f"probe it: reversi probe {shlex.quote(str(weights))}")


def probe(
    file: Annotated[Path, Parameter(help="Weight file of reversi train gpt.")],
    /,
    *,
    chosen: ProbeChoice = NOTHING,
    as_json: Json = False,
) -> None:
    """Probe what a GPT knows of the board, and change it.

    Example: reversi probe runs/gpt/gpt-6x6-normal-0123456789ab.safetensors

    Linear and two-layer probes read labels from the residual stream after each
    layer, on held-out games. Beside them are probes of an untrained model, of the
    moves so far (tokens), and of the true board. Interventions change one disc
    along the direction of the linear probe of relative, and compare the model's
    most probable tokens with the legal moves of the changed board.
    """
    from models.gpt import read_gpt
    from train.sequences.probes import probe_model

    with exit_on_interrupt("reversi: stopped"), progress_bar(lines=True) as show:
        result = probe_model(read_gpt(file), ProbeOptions(**chosen), progress=show)
    if as_json:
        print_json(result)
        return
    rows = [[p["label"], p["metric"], p["probe"], *(f"{x:.4f}" for x in p["layers"])] for p in result["probes"]]
    layers = [f"layer {layer}" for layer in range(max(map(len, rows)) - 3)]
    print(f"{result['positions']:,} positions of held-out games")
    print_table(["label", "metric", "probe", *layers], rows, words=3, gap=1)
    print_table(("interventions", ""), [*result.get("interventions", {}).items()], gap=1)

"""`reversi train gpt` and `reversi probe`: a sequence model of games, and what it knows of the board."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, Out, Threads, make_folder, options_of, text, torch_threads
from play.cli.output import exit_on_interrupt, print_json, print_table, progress_bar
from play.cli.training.ppo import resume_text, started_run
from train.sequences.options import GPTOptions, ProbeOptions, preset

GPTChoice: Any = options_of(GPTOptions, preset=preset)
ProbeChoice: Any = options_of(ProbeOptions)


def gpt(*, out: Out, chosen: GPTChoice = NOTHING, threads: Threads = None, as_json: Json = False) -> None:
    """Train a GPT to predict the moves of games (Othello-GPT).

    Example: reversi train gpt --out runs/gpt --size 6

    The model reads the moves of a game, never a board, and predicts the next move.
    Games are uniformly random unless --source names agents or files of games.
    Defaults of the form 1/2/3 are for 4x4, 6x6 and 8x8.

    On held-out games it reports the loss beside the entropy of uniform legal play,
    how often the most probable token is illegal, and the probability of illegal
    tokens. Run the same command again to resume after Ctrl-C or a crash; --out
    alone is enough. The folder has gpt-….safetensors for the agent gpt:FILE,
    log.csv, plies.csv (the last evaluation by ply), curve.svg, and logs for
    TensorBoard.
    """
    from reversi_env.errors import require

    require("torch")
    from train.sequences.fit import GPTRun

    run, began = started_run(out, GPTOptions, preset, dict(chosen)), perf_counter()
    torch_threads(threads)

    def log(step: int, metrics: Any) -> None:
        if not sys.stderr.isatty():  # a terminal has the progress bar
            print(", ".join(f"{name} {value:g}" for name, value in metrics.items()), file=sys.stderr, flush=True)

    with exit_on_interrupt(resume_text("gpt", out, threads)), progress_bar() as show:
        result = GPTRun(**run, progress=show, on_metrics=log).run()
    seconds = perf_counter() - began
    if as_json:
        print_json(
            {"weights": str(result.weights), "metrics": result.metrics, "plies": result.plies, "seconds": seconds}
        )
        return
    last = result.metrics[-1]
    rows = [("loss, nats", f"{last['loss']:.4f}"), ("entropy of uniform legal play, nats", f"{last['entropy']:.4f}")]
    rows += [("most probable token illegal", f"{last['illegal_top1']:.3%}")]
    rows += [("probability of illegal tokens", f"{last['illegal_mass']:.3%}")]
    print_table((f"{last['predictions']:,} held-out predictions", ""), rows, gap=2)
    print(f"{last['step']:,} steps, {last['games']:,} games, {seconds:.1f} s")
    print(f"weights: {result.weights}")
    print(f"probe it: reversi probe {shlex.quote(str(result.weights))}")


def probe(
    file: Annotated[Path, Parameter(help="Weight file of reversi train gpt.")],
    /,
    *,
    chosen: ProbeChoice = NOTHING,
    out: Annotated[Path | None, text("Folder for probes.json and plots.", "--out", metavar="DIR")] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Probe what a GPT knows of the board, and change it.

    Example: reversi probe runs/gpt/gpt-6x6-normal-0123456789ab.safetensors

    Linear and two-layer probes read labels from the residual stream after each
    layer, on held-out games of the model's training. Beside them are probes of an
    untrained model (its layer with the best value), of the moves so far (tokens)
    and of nothing (constant). With --labels values, also of the mobility and of
    the board, and --empties says which positions are solved.

    With relative among the labels, interventions change one disc along the linear
    probe's direction; then the legal moves of the changed board are compared with
    the model's most probable tokens.
    """
    from reversi_env.errors import require

    require("torch")
    from models.gpt.files import read_gpt
    from train.sequences.probe_run import probe_model, tables

    make_folder("--out", out)
    torch_threads(threads)
    with exit_on_interrupt("reversi: stopped"), progress_bar(lines=True) as show:
        result = probe_model(read_gpt(file), ProbeOptions(**chosen), out, progress=show)
    if as_json:
        print_json(result)
        return
    for title, headings, rows in tables(result):
        print_table(headings, rows, title=title, gap=2)

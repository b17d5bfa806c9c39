"""`reversi tokens`, `reversi train gpt` and `reversi probe`: games as sequences, a model of them, and what it knows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Device, Out, Threads, make_folder, options_of, text, torch_threads
from play.cli.output import RESUME, exit_on_interrupt, print_table, progress_bar
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

    The tokens are those of Othello-GPT: 0 is padding, and 1 to 60 are the
    squares of 8x8 row by row, without the four of the centre. Agents begin with
    --prefix random moves. Each side of a game draws one of them, and evaluators
    sample their moves at the temperature in discs that follows @.
    Run the same command again to resume.
    """
    from train.sequences.files import write_tokens

    options = TokenOptions(**chosen)
    with exit_on_interrupt(f"stopped; {RESUME}"), progress_bar() as show:
        write_tokens(options, out, device=device, progress=lambda done: show("games", done, options.games))
    print(f"{options.games:,} games in {out}")


def gpt(*, out: Out, chosen: GPTChoice = NOTHING, threads: Threads = None) -> None:
    """Train a GPT to predict the moves of games (Othello-GPT).

    Example: reversi train gpt --out runs/gpt --size 6

    The model reads the moves of a game, never a board, and predicts the next move.
    Games are uniformly random unless --source names agents or a file of games.

    On held-out games it reports the loss beside the entropy of uniform legal play,
    how often the most probable token is illegal, and the probability of illegal
    tokens. Run the same command again to resume after Ctrl-C or a crash; --out
    alone is enough. The folder has gpt-….safetensors for the agent gpt:FILE (its
    header has the last evaluation by ply), log.csv, and logs for TensorBoard.
    """
    from reversi_env.errors import require

    require("torch")
    from train.sequences.fit import METRICS, GPTRun

    run = GPTRun(**started_run(out, GPTOptions, GPTOptions, dict(chosen)))
    torch_threads(threads)
    with exit_on_interrupt(resume_text("gpt", out, threads)), progress_bar(lines=True) as run.progress:
        weights = run.run()
    last = run.metrics[-1]
    title = f"{last['predictions']:,} held-out predictions after {last['step']:,} steps"
    print_table((title, ""), [(name, f"{last[name]:.5f}") for name in METRICS], gap=2)
    print(f"probe it: reversi probe {shlex.quote(str(weights))}")


def probe(
    file: Annotated[Path, Parameter(help="Weight file of reversi train gpt.")],
    /,
    *,
    chosen: ProbeChoice = NOTHING,
    out: Annotated[Path | None, text("Folder for probes.json.", "--out", metavar="DIR")] = None,
    threads: Threads = None,
) -> None:
    """Probe what a GPT knows of the board, and change it.

    Example: reversi probe runs/gpt/gpt-6x6-normal-0123456789ab.safetensors

    Linear and two-layer probes read labels from the residual stream after each
    layer, on held-out games of the model's training. Beside them are probes of an
    untrained model, of the moves so far (tokens), and of the true board.

    With relative among the labels, interventions change one disc along the linear
    probe's direction; then the legal moves of the changed board are compared with
    the model's most probable tokens.
    """
    from reversi_env.errors import require

    require("torch")
    from models.gpt.agent import read_gpt
    from train.sequences.probes import probe_model

    make_folder("--out", out)
    torch_threads(threads)
    with exit_on_interrupt("reversi: stopped"), progress_bar(lines=True) as show:
        result = probe_model(saved := read_gpt(file), ProbeOptions(**chosen), out, progress=show)
    rows = [
        [label, metric, name, *(f"{value:.4f}" for value in values)]
        for label, metrics in result["probes"].items()
        for metric, probes in metrics.items()
        for name, values in probes.items()
    ]
    layers = [f"layer {layer}" for layer in range(saved.net.config.n_layer + 1)]
    print_table(["label", "metric", "probe", *layers], rows, words=3, gap=1)
    print_table(("interventions", ""), [*result.get("interventions", {}).items()], gap=1)

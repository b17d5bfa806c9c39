"""`GPTRun`: the training of a GPT on a stream of games, in one folder; the same call resumes it.

Every batch is new. With a number of steps, an interrupted run ends with the same weights as an uninterrupted one on a CPU; with
a time limit the number of steps depends on the machine.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

from models.gpt.files import SavedGPT
from models.gpt.net import GPT, GPTConfig
from models.residual.inference import TorchCompiled
from reversi_env.errors import TrainError, extra_libraries
from reversi_env.storage.atomic import write_atomically
from train.charts import BLUE, VERMILION, Figure, labels, panels
from train.fitting.fit import checked_device
from train.jobs.checkpoints import load_checkpoint, network_state, restore_network, save_checkpoint
from train.jobs.logs import Progress, no_progress, write_csv
from train.jobs.provenance import provenance
from train.jobs.run import Run
from train.jobs.tensorboard import TensorBoard
from train.sequences.metrics import legal_tokens, means, rows_by_ply, sums_by_ply
from train.sequences.options import GPTOptions
from train.sequences.streams import GameStream, Split

with extra_libraries():
    import torch
    from torch import Tensor

STATE, LOG, PLIES, CURVE, TENSORBOARD = "state.safetensors", "log.csv", "plies.csv", "curve.svg", "tensorboard"
#: Adam's betas and the maximum norm of a gradient, as in nanoGPT.
BETAS, MAX_GRAD_NORM = (0.9, 0.95), 1.0
#: Steps between two reports, which wait for the device.
REPORT_STEPS = 20
#: Held-out games in one forward pass.
EVAL_BATCH = 2048


@dataclass(frozen=True)
class RunResult:
    """The weight file of a run, its metrics after every evaluation, and those of the last one by ply."""

    weights: Path
    metrics: list[dict[str, Any]]
    plies: list[dict[str, Any]]


class GPTRun:
    """A run in *folder*, which remembers the options; others raise a `TrainError`.

    *command* is recorded in the weight file. *on_metrics* gets the step and the metrics of every evaluation, before the step is
    committed: if the process is killed then, they come again. *compiled*: let torch compile the loss; by default on a GPU.
    """

    def __init__(
        self,
        folder: Path,
        options: GPTOptions,
        *,
        command: str = "",
        progress: Progress = no_progress,
        on_metrics: Callable[[int, Mapping[str, float]], None] = lambda step, metrics: None,
        compiled: bool | None = None,
    ) -> None:
        self.folder, self.options, self.vocabulary = folder, options, options.vocabulary
        self.command, self.progress = command, progress
        self.device = checked_device(options.device)
        self.is_gpu = self.device.type == "cuda"
        self.step, self.seconds = 0, 0.0
        self.metrics: list[dict[str, Any]] = []
        self.plies: list[dict[str, Any]] = []
        self._reports = (on_metrics, TensorBoard(folder / TENSORBOARD))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            net = GPT(new_config(options))
        self.net = net.to(self.device)
        settings = options.weight_decay, options.learning_rate, BETAS, self.device.type
        self.optimiser = self.net.configure_optimizers(*settings)
        compiles = self.is_gpu if compiled is None else compiled
        self._loss: Callable[[Tensor], Tensor] = TorchCompiled(self._plain_loss) if compiles else self._plain_loss

    def run(self) -> RunResult:
        """Train to the last step, or to the end of the time."""
        with Run(self.folder, self.options):
            self._resume()
            began = perf_counter() - self.seconds
            batches = self._batches()
            while self.done < 1:
                self._train_until_evaluation(batches, began)
            path = self._save_weights()
            write_csv(self.folder / PLIES, self.plies)
            curve(self.metrics, self.plies, f"{self.options.size}x{self.options.size}").save(
                self.folder / CURVE, optional=True
            )
        return RunResult(path, self.metrics, self.plies)

    @property
    def done(self) -> float:
        """The share of the steps, or of the time, that is done."""
        minutes = self.options.minutes
        return self.seconds / (60 * minutes) if minutes else self.step / self.options.steps

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        warm_up = min(1.0, (self.step + 1) / self.options.warmup_steps)
        return self.options.learning_rate * warm_up * (1 + math.cos(math.pi * min(1.0, self.done))) / 2

    def _batches(self) -> Iterator[Tensor]:
        stream = game_stream(self.options, "train", self.options.batch_size, self.device)
        stream.skip_to(self.step)
        return iter(stream)

    def _train_until_evaluation(self, batches: Iterator[Tensor], began: float) -> None:
        options, first = self.options, self.step
        losses = torch.zeros((), device=self.device)
        last = first - first % options.eval_every + options.eval_every
        last = last if options.minutes else min(last, options.steps)
        while self.step < last and self.done < 1:
            rate = self.learning_rate
            losses += self._train_step(next(batches), rate)
            self.step += 1
            if self.step % REPORT_STEPS == 0:
                total = losses.item()  # waits for the device
                if not math.isfinite(total):
                    raise TrainError(
                        "the loss is NaN, training has diverged: expected a lower learning rate; start again in a new folder"
                    )
                self._report_progress()
            self.seconds = perf_counter() - began
        train_loss = losses.item() / (self.step - first)
        self._evaluate({"step": self.step, "games": self.step * options.batch_size, "train_loss": round(train_loss, 6)})
        self.seconds = perf_counter() - began
        self._save_state()

    def _train_step(self, tokens: Tensor, rate: float) -> Tensor:
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = self._loss(tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), MAX_GRAD_NORM)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return loss.detach()

    def _plain_loss(self, tokens: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_gpu):
            loss = self.net(tokens[:, :-1], tokens[:, 1:])[1]
        assert loss is not None
        return loss

    def _report_progress(self) -> None:
        if self.options.minutes:
            self.progress(f"training, step {self.step}, seconds", int(self.seconds), int(60 * self.options.minutes))
        else:
            self.progress("training, steps", self.step, self.options.steps)

    @cached_property
    def _held_out(self) -> tuple[Tensor, Tensor]:
        """Held-out games and their legal tokens."""
        size = min(EVAL_BATCH, self.options.eval_games)
        stream = iter(game_stream(self.options, "validation", size, self.device))
        tokens = [next(stream) for _ in range(-(-self.options.eval_games // size))]
        legal = [legal_tokens(batch, self.options.games, self.vocabulary) for batch in tokens]
        return torch.cat(tokens), torch.cat(legal)

    def _evaluate(self, row: dict[str, Any]) -> None:
        sums = sums_by_ply(self.net.eval(), *self._held_out, EVAL_BATCH)
        self.net.train()
        self.plies = rows_by_ply(sums, self.vocabulary)
        overall = means(sums[max(0, self.vocabulary.num_prefix - 1) :])
        self.metrics.append({**row, **overall, "seconds": round(self.seconds, 1)})
        for report in self._reports:
            report(self.step, self.metrics[-1])

    def _resume(self) -> None:
        """Load the last checkpoint."""
        if (parts := load_checkpoint(self.folder / STATE)) is None:
            return
        try:
            restore_network(parts, self.net, self.optimiser)
        except (KeyError, RuntimeError):
            raise TrainError(
                f"{str(self.folder)!r} has a state of another network: expected one of this version, or another folder"
            ) from None
        state = parts["run"]
        self.step, self.seconds = state["step"], state["seconds"]
        self.metrics, self.plies = state["metrics"], state["plies"]

    def _save_state(self) -> None:
        """Write the log, then the checkpoint, which commits the step."""
        write_csv(self.folder / LOG, self.metrics)
        run = {"step": self.step, "seconds": self.seconds, "metrics": self.metrics, "plies": self.plies}
        save_checkpoint(self.folder / STATE, {**network_state(self.net, self.optimiser), "run": run})

    def _save_weights(self) -> Path:
        """Write the final weights and return their file; other weights of the folder are deleted."""
        metrics = [{name: value for name, value in row.items() if name != "seconds"} for row in self.metrics]
        record = {"training": "gpt", "options": self.options.as_dict(), "metrics": metrics, "plies": self.plies}
        saved = SavedGPT(self.vocabulary, self.options.variants, self.net, {**record, **provenance(self.command)})
        data = saved.to_bytes()
        path = self.folder / saved.file_name(data)
        write_atomically(path, data)
        for other in {*self.folder.glob("gpt-*.safetensors")} - {path}:
            other.unlink()
        return path


def game_stream(options: GPTOptions, split: Split, batch_size: int, device: torch.device) -> GameStream:
    """Return the stream of training games, or of held-out games, of a run."""
    settings: dict[str, Any] = {"seed": options.seed, "prefix": options.prefix, "source": options.source}
    return GameStream(options.games, options.vocabulary, batch_size, device=device, split=split, **settings)


def new_config(options: GPTOptions) -> GPTConfig:
    vocabulary = options.vocabulary
    return GPTConfig(vocabulary.context, vocabulary.num_tokens, options.n_layer, options.n_head, options.n_embd)


def curve(metrics: list[dict[str, Any]], plies: list[dict[str, Any]], game: str) -> Figure:
    """Return a plot of the loss over the steps, and of illegal predictions by ply."""

    def draw(figure: Any) -> None:
        names = {"loss": "loss", "entropy": "uniform legal play"}, {"illegal_top1": "top 1", "illegal_mass": "mass"}
        titles = f"{game}: loss on held-out games, nats", "illegal predictions, %"
        axes = panels(figure, 2, titles)
        for axis, rows, x, lines, scale in zip(axes, (metrics, plies), ("step", "ply"), names, (1, 100), strict=True):
            ends = []
            for (name, text), colour in zip(lines.items(), (BLUE, VERMILION), strict=True):
                ys = [scale * row[name] for row in rows]
                axis.plot([row[x] for row in rows], ys, color=colour, marker="." if len(ys) < 2 else "")
                ends.append((rows[-1][x], ys[-1], text, colour))
            axis.set_xlabel(x)
            labels(axis, ends)

    return Figure("curve", f"{game}: loss and illegal predictions.", draw)

"""`GPTRun`: the training of a GPT on a stream of games, in one folder; the same call resumes it.

Every batch is new. An interrupted run ends with the same weights as an uninterrupted one on a CPU.
"""

import math
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from models.gpt.agent import SavedGPT
from models.gpt.net import GPT, GPTConfig
from models.gpt.tokens import PADDING
from models.residual.inference import TorchCompiled
from reversi_env.errors import TrainError, extra_libraries
from train.fitting.fit import checked_device
from train.jobs.checkpoints import load_checkpoint, network_state, restore_network, save_checkpoint
from train.jobs.logs import Progress, no_progress, write_csv
from train.jobs.provenance import provenance
from train.jobs.run import CHECKPOINT, Run
from train.jobs.tensorboard import TensorBoard
from train.sequences.labels import legal_tokens
from train.sequences.options import GPTOptions
from train.sequences.streams import GameStream

with extra_libraries():
    import torch
    from torch import Tensor
    from torch.nn import functional

LOG, TENSORBOARD = "log.csv", "tensorboard"
#: Adam's betas, weight decay of matrices, and the maximum norm of a gradient, as in nanoGPT.
BETAS, WEIGHT_DECAY, MAX_GRAD_NORM = (0.9, 0.95), 0.1, 1.0
#: Steps of the learning rate's warm-up, and held-out games in one forward pass.
WARMUP_STEPS, EVAL_BATCH = 100, 2048
#: Metrics of held-out games, means over predictions: the cross entropy of the move that was played; the entropy of uniform legal
#: play, the lowest loss that is possible on uniformly random games; how often the most probable token is illegal; and the
#: probability of illegal tokens.
METRICS = ("loss", "entropy", "illegal_top1", "illegal_mass")
#: Attributes of a run that a checkpoint has as they are.
STATE = ("step", "metrics", "plies")


class GPTRun:
    """A run in *folder*, which remembers the options; others raise a `TrainError`. *command* is recorded in the weight file.

    ``metrics`` has a row for each evaluation, ``plies`` the rows of the last evaluation by ply.
    """

    def __init__(
        self, folder: Path, options: GPTOptions, *, command: str = "", progress: Progress = no_progress
    ) -> None:
        self.folder, self.options, self.command, self.progress = folder, options, command, progress
        self.device = checked_device(options.device)
        self.step = 0
        self.metrics: list[dict[str, Any]] = []
        self.plies: list[dict[str, Any]] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self.net = new_model(options).to(self.device)
        kind = self.device.type
        self.optimiser = self.net.configure_optimizers(WEIGHT_DECAY, options.learning_rate, BETAS, kind)
        self._loss: Callable[[Tensor], Tensor] = TorchCompiled(self._plain_loss) if kind == "cuda" else self._plain_loss

    def run(self) -> Path:
        """Train to the last step and return the weight file."""
        options, tensorboard = self.options, TensorBoard(self.folder / TENSORBOARD)
        with Run(self.folder, options):
            if parts := load_checkpoint(self.folder / CHECKPOINT):
                restore_network(parts, self.net, self.optimiser)
                vars(self).update(parts["run"])
            stream = GameStream(options, options.batch_size, device=self.device)
            for step in range(self.step, options.steps):
                self._train_step(stream.batch(step))
                self.step = step + 1
                if self.step % options.eval_every == 0 or self.step == options.steps:
                    self._evaluate()
                    tensorboard(self.step, self.metrics[-1])
                    self._save_state()
                last = self.metrics[-1] if self.metrics else {}
                note = "".join(f", {name} {last[name]}" for name in ("step", *METRICS) if last)
                self.progress(f"training{note}", self.step, options.steps)
            return self._save_weights()

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        warm_up = min(1.0, (self.step + 1) / WARMUP_STEPS)
        return self.options.learning_rate * warm_up * (1 + math.cos(math.pi * self.step / self.options.steps)) / 2

    def _train_step(self, tokens: Tensor) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate
        self._loss(tokens).backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), MAX_GRAD_NORM)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def _plain_loss(self, tokens: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss = self.net(tokens[:, :-1], tokens[:, 1:])[1]
        assert loss is not None
        return loss

    @cached_property
    def _held_out(self) -> tuple[Tensor, Tensor]:
        """Held-out games and their legal tokens."""
        tokens = GameStream(self.options, self.options.eval_games, split="validation", device=self.device).batch(0)
        return tokens, legal_tokens(tokens, self.options)

    def _evaluate(self) -> None:
        overall, *self.plies = metrics_by_ply(self.net.eval(), *self._held_out, self.options.vocabulary.num_prefix)
        self.net.train()
        if not math.isfinite(overall["loss"]):
            raise TrainError("the loss is NaN, training has diverged: expected a lower learning rate; use a new folder")
        self.metrics.append({"step": self.step, **overall})

    def _save_state(self) -> None:
        """Write the log, then the checkpoint, which commits the step."""
        write_csv(self.folder / LOG, self.metrics)
        run = {name: getattr(self, name) for name in STATE}
        save_checkpoint(self.folder / CHECKPOINT, {**network_state(self.net, self.optimiser), "run": run})

    def _save_weights(self) -> Path:
        """Write the final weights, which replace others of the folder."""
        run = {"training": "gpt", "options": self.options.as_dict(), "metrics": self.metrics, "plies": self.plies}
        record = {**run, **provenance(self.command)}
        path = SavedGPT(self.options.vocabulary, self.options.variant, self.net, record).save_in(self.folder)
        for other in {*self.folder.glob("gpt-*.safetensors")} - {path}:
            other.unlink()
        return path


def new_model(options: GPTOptions) -> GPT:
    """Return an untrained model, whose weights are drawn from torch's global generator."""
    vocabulary = options.vocabulary
    shape = options.n_layer, options.n_head, options.n_embd
    return GPT(GPTConfig(vocabulary.length - 1, vocabulary.num_tokens, *shape))


@torch.no_grad()
def metrics_by_ply(net: GPT, tokens: Tensor, legal: Tensor, num_prefix: int = 0) -> list[dict[str, Any]]:
    """Return `METRICS` and the number of predictions: over all of them, and then of each ply.

    *legal* are the `legal_tokens` of the games. ``ply`` is the number of tokens of moves in front of the one that is predicted.
    """
    parts = []
    for batch, may_follow in zip(tokens.long().split(EVAL_BATCH), legal[:, :-1].split(EVAL_BATCH), strict=True):
        logits, targets = net(batch[:, :-1])[0].float(), batch[:, 1:]
        loss = functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        entropy = may_follow.sum(2).clamp(min=1).log()
        is_illegal = ~may_follow.gather(2, logits.argmax(2, keepdim=True)).squeeze(2)
        mass = (logits.softmax(2) * ~may_follow).sum(2)
        columns = torch.stack([torch.ones_like(loss), loss, entropy, is_illegal.float(), mass], 2).double()
        parts.append((columns * (targets != PADDING)[..., None]).sum(0))
    first = max(0, num_prefix - 1)  # where the first move is predicted
    sums = torch.stack(parts).sum(0)[first:].cpu()
    rows = []
    for place, (count, *totals) in enumerate([sums.sum(0).tolist(), *sums.tolist()]):
        means = {name: round(total / count, 6) for name, total in zip(METRICS, totals, strict=True) if count}
        ply = {"ply": first + place - num_prefix} if place else {}
        rows += [{**ply, "predictions": int(count), **means}] if count else []
    return rows

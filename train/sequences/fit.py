"""`train_gpt`: the training of a GPT on a stream of games, in one folder; every batch is new."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from models.gpt import GPT, GPTConfig, SavedGPT
from models.residual.inference import TorchCompiled
from models.vocabulary import PADDING
from reversi_env.errors import TrainError, extra_libraries
from train.fitting.fit import checked_device
from train.jobs.checkpoints import load_checkpoint, network_state, restore_network, restoring, save_checkpoint
from train.jobs.logs import Progress, no_progress, write_csv
from train.jobs.provenance import provenance
from train.jobs.run import CHECKPOINT, Run
from train.jobs.tensorboard import TensorBoard
from train.sequences.labels import label_games
from train.sequences.options import GPTOptions
from train.sequences.streams import GameStream

with extra_libraries():
    import torch
    from torch import Tensor
    from torch.nn import functional

#: Adam's betas, weight decay of matrices, and the maximum norm of a gradient, as in nanoGPT.
BETAS, WEIGHT_DECAY, MAX_GRAD_NORM = (0.9, 0.95), 0.1, 1.0
#: Steps of the learning rate's warm-up, and held-out games in one forward pass.
WARMUP_STEPS, EVAL_BATCH = 100, 2048
#: Means over predictions in held-out games: the cross entropy of the move that was played; that of uniform legal play, the lowest
#: loss on uniformly random games; how often the most probable token is illegal; and the probability of illegal tokens.
METRICS = ("loss", "uniform_loss", "illegal_top1", "illegal_mass")


def train_gpt(folder: Path, options: GPTOptions, *, command: str = "", progress: Progress = no_progress) -> Path:
    """Train to the last step and return the weight file; its record has the *command* and the metrics.

    The same call resumes an interrupted run, which ends with the same weights on a CPU. Other options raise a `TrainError`.
    """
    device = checked_device(options.device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        net = new_model(options).to(device)
    optimisers = net.configure_optimizers(WEIGHT_DECAY, options.learning_rate, BETAS, device.type)

    def plain_loss(tokens: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            return net(tokens[:, :-1], tokens[:, 1:])[1]

    loss: Callable[[Tensor], Tensor] = TorchCompiled(plain_loss) if device.type == "cuda" else plain_loss
    state: dict[str, Any] = {"step": 0, "metrics": [], "plies": []}
    tensorboard, note = TensorBoard(folder / "tensorboard"), ""
    with Run(folder, options):
        if parts := load_checkpoint(folder / CHECKPOINT):
            with restoring(folder / CHECKPOINT):
                restore_network(parts, net, *optimisers)
                state = parts["run"]
        stream = GameStream(options, options.batch_size, device=device)
        held_out = GameStream(options, options.eval_games, split="validation", device=device).batch(0)
        steps = range(state["step"], options.steps)
        for step, tokens in zip(steps, stream.batches(steps), strict=True):
            warm_up, decay = min(1.0, (step + 1) / WARMUP_STEPS), (1 + math.cos(math.pi * step / options.steps)) / 2
            for group in (group for optimiser in optimisers for group in optimiser.param_groups):
                group["lr"] = options.learning_rate * warm_up * decay
            loss(tokens).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), MAX_GRAD_NORM)
            for optimiser in optimisers:
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
            if (step + 1) % options.eval_every == 0 or step + 1 == options.steps:
                overall, *state["plies"] = metrics_by_ply(net, held_out, options)
                if not math.isfinite(overall["loss"]):
                    raise TrainError("the loss is NaN: expected a lower learning rate; start again in a new folder")
                state["step"] = step + 1
                state["metrics"].append({"step": step + 1, **overall})
                tensorboard(step + 1, overall)
                note = "".join(f", {name} {overall[name]}" for name in METRICS)
                write_csv(folder / "log.csv", state["metrics"])  # before the checkpoint, which commits the step
                save_checkpoint(folder / CHECKPOINT, {**network_state(net, *optimisers), "run": state})
            progress(f"training{note}", step + 1, options.steps)
        record = {"training": "gpt", "options": options.as_dict(), **state, **provenance(command)}
        path = SavedGPT(options.vocabulary, options.variant, net, record).save_in(folder)
        for other in {*folder.glob("gpt-*.safetensors")} - {path}:
            other.unlink()
        return path


def new_model(options: GPTOptions) -> GPT:
    """Return an untrained model, whose weights are drawn from torch's global generator."""
    block_size, vocab_size = options.vocabulary.length - 1, options.vocabulary.vocab_size
    return GPT(GPTConfig(block_size, vocab_size, options.n_layer, options.n_head, options.n_embd))


@torch.no_grad()
def metrics_by_ply(net: GPT, tokens: Tensor, options: GPTOptions) -> list[dict[str, Any]]:
    """Return `METRICS` of games, and the number of predictions: over all of them, and then of each ply.

    ``ply`` is the number of tokens of moves in front of the one that is predicted.
    """
    parts, num_special = [], options.vocabulary.bos + options.vocabulary.variants
    for batch in tokens.long().split(EVAL_BATCH):
        may_follow = label_games(batch[:, :-1], options, ["legal_tokens"])["legal_tokens"]
        logits, targets = net(batch[:, :-1])[0].float(), batch[:, 1:]
        loss = functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        uniform_loss = may_follow.sum(2).clamp(min=1).log()
        is_illegal = ~may_follow.gather(2, logits.argmax(2, keepdim=True)).squeeze(2)
        mass = (logits.softmax(2) * ~may_follow).sum(2)
        columns = torch.stack([torch.ones_like(loss), loss, uniform_loss, is_illegal.float(), mass], 2).double()
        parts.append((columns * (targets != PADDING)[..., None]).sum(0))
    first = max(0, num_special - 1)  # where the first move is predicted
    sums = torch.stack(parts).sum(0)[first:].cpu()

    def means(row: Tensor) -> dict[str, Any]:
        count, *totals = row.tolist()
        return {
            "predictions": int(count),
            **{name: round(x / count, 6) for name, x in zip(METRICS, totals, strict=True)},
        }

    plies = [{"ply": ply, **means(row)} for ply, row in enumerate(sums, first + 1 - num_special) if row[0] > 0]
    return [means(sums.sum(0)), *plies]

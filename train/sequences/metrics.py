"""Metrics of a sequence model by ply: loss beside the entropy of uniform play, and what it gives to illegal moves."""

from collections.abc import Sequence
from typing import Any

from models.gpt.net import GPT
from models.gpt.tokens import PADDING, Vocabulary
from reversi_env import Rules
from reversi_env.errors import extra_libraries
from train.sequences.labels import label_games

with extra_libraries():
    import torch
    from torch import Tensor
    from torch.nn import functional

#: Sums over predictions, in this order; the first is their number.
COLUMNS = ("predictions", "loss", "entropy", "illegal_top1", "illegal_mass")


def legal_tokens(tokens: Tensor, rules: Rules | Sequence[Rules], vocabulary: Vocabulary) -> Tensor:
    """Return which tokens may follow each token of the games, ``(games, length, num_tokens)``, bool."""
    labels = label_games(tokens, rules, vocabulary, ("legal", "to_move"))
    legal = labels["legal"].flatten(2)
    passing = (labels["to_move"] != 0) & ~legal.any(2)
    actions = torch.from_numpy(vocabulary.action_of_token).to(tokens.device)
    return torch.cat([legal, passing[..., None]], 2)[..., actions] & (actions >= 0)


@torch.no_grad()
def sums_by_ply(net: GPT, tokens: Tensor, legal: Tensor, batch_size: int) -> Tensor:
    """Return the sums of `COLUMNS` over the predictions of each position, ``(length - 1, 5)``, in double precision.

    The loss is the cross entropy of the move that was played. The entropy is that of a uniform distribution over the legal moves,
    the lowest loss that is possible on uniformly random games.
    """
    total = torch.zeros(tokens.shape[1] - 1, len(COLUMNS), dtype=torch.float64, device=tokens.device)
    for start in range(0, len(tokens), batch_size):
        rows = tokens[start : start + batch_size].long()
        may_follow, targets = legal[start : start + batch_size, :-1], rows[:, 1:]
        logits = net(rows[:, :-1])[0].float()
        entropy = may_follow.sum(2).clamp(min=1).log()
        loss = functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        is_illegal = ~may_follow.gather(2, logits.argmax(2, keepdim=True)).squeeze(2)
        mass = (logits.softmax(2) * ~may_follow).sum(2)
        columns = torch.stack([torch.ones_like(loss), loss, entropy, is_illegal.float(), mass], 2).double()
        total += (columns * (targets != PADDING)[..., None]).sum(0)
    return total


def means(sums: Tensor) -> dict[str, Any]:
    """Return the means of `COLUMNS` over all predictions, and their number."""
    count, *totals = sums.sum(0).tolist()
    return {COLUMNS[0]: int(count)} | {
        name: round(total / max(1, count), 6) for name, total in zip(COLUMNS[1:], totals, strict=True)
    }


def rows_by_ply(sums: Tensor, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Return the means of each position; ``ply``: the tokens of moves in front of the one that is predicted."""
    first = max(0, vocabulary.num_prefix - 1)
    plies = enumerate(sums[first:, None].cpu(), first + 1 - vocabulary.num_prefix)
    return [{"ply": ply, **means(row)} for ply, row in plies if row[0, 0]]

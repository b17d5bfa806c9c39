"""`GPT`: a decoder-only transformer over games as sequences of tokens, with the names of nanoGPT.

A model reads the tokens of a game so far and predicts the next one. It has learnt positions, pre-norm blocks, no biases, and
separate matrices for embedding and unembedding. Token 0 is padding and never a target.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from models.gpt.tokens import PADDING
from reversi_env.errors import TrainError, extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

#: Standard deviation of the initial weights, as in GPT-2.
INIT_STD = 0.02
#: Changes the residual stream: from the number of layers so far and the states, ``(batch, time, n_embd)``, to new states.
Edit = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a model: the longest input, the number of tokens, and the layers with their heads and width."""

    block_size: int = 59
    vocab_size: int = 61
    n_layer: int = 8
    n_head: int = 8
    n_embd: int = 512

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise TrainError(f"n_embd={self.n_embd}: expected a multiple of n_head={self.n_head}")


class CausalSelfAttention(nn.Module):
    """Attention of every position to itself and those before it."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, self.n_head, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        result: Tensor = self.c_proj(y.transpose(1, 2).reshape(batch, time, width))
        return result


class MLP(nn.Module):
    """A hidden layer of four times the width."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=False)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.c_proj(functional.gelu(self.c_fc(x)))
        return result


class Block(nn.Module):
    """One layer: attention and then an MLP, each added to the residual stream."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=False)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=False)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        result: Tensor = x + self.mlp(self.ln_2(x))
        return result


class GPT(nn.Module):
    """A model of the next token; the weights are drawn from torch's global generator."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "h": nn.ModuleList(Block(config) for _ in range(config.n_layer)),
                "ln_f": nn.LayerNorm(config.n_embd, bias=False),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                layers = 2 * config.n_layer if name.endswith("c_proj.weight") else 1
                nn.init.normal_(parameter, std=INIT_STD / math.sqrt(layers))

    def forward(
        self, idx: Tensor, targets: Tensor | None = None, edit: Edit | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return logits, ``(batch, time, vocab_size)``, and the mean cross entropy of the *targets* that are no padding, in nats.

        *idx* and *targets* are integers of any type, ``(batch, time)``.
        """
        logits = self.lm_head(self.transformer["ln_f"](self.residual_stream(idx, edit)[-1]))
        if targets is None:
            return logits, None
        flat = logits.flatten(0, 1).float()
        return logits, functional.cross_entropy(flat, targets.flatten().long(), ignore_index=PADDING)

    def residual_stream(self, idx: Tensor, edit: Edit | None = None) -> list[Tensor]:
        """Return the states after the embedding and after each layer, ``(batch, time, n_embd)`` each, as changed by *edit*."""
        positions = torch.arange(idx.shape[1], device=idx.device)
        x = self.transformer["wte"](idx.long()) + self.transformer["wpe"](positions)
        states = [x if edit is None else edit(0, x)]
        for layer, block in enumerate(self.transformer["h"], 1):  # type: ignore[arg-type, var-annotated]
            x = block(states[-1])
            states.append(x if edit is None else edit(layer, x))
        return states

    def configure_optimizers(
        self, weight_decay: float, learning_rate: float, betas: tuple[float, float], device_type: str
    ) -> torch.optim.AdamW:
        """Return AdamW, with weight decay for matrices and embeddings only; fused on a GPU."""
        matrices, others = ([one for one in self.parameters() if (one.dim() >= 2) is big] for big in (True, False))
        groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, learning_rate, betas, fused=device_type == "cuda")

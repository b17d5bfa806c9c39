"""`GPT`: a decoder-only transformer over games as sequences of tokens, with the names of nanoGPT.

A model reads the tokens of a game so far and predicts the next one. It has learnt positions, pre-norm blocks, no biases, and
separate matrices for embedding and unembedding. Token 0 is padding and never a target.

>>> model = GPT(GPTConfig(block_size=11, vocab_size=13, n_layer=2, n_head=2, n_embd=16))
>>> logits, loss = model(torch.tensor([[3, 1, 4]]))
>>> tuple(logits.shape), model.residual_stream(torch.tensor([[3, 1, 4]])).shape[0]
((1, 3, 13), 3)
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
#: Changes the residual stream in front of a layer: from the number of the layer and the states, ``(batch, time, n_embd)``.
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

    @property
    def layers(self) -> nn.ModuleList:
        blocks = self.transformer["h"]
        assert isinstance(blocks, nn.ModuleList)
        return blocks

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return logits, ``(batch, time, vocab_size)``, and the mean cross entropy of the *targets* that are no padding, in nats.

        *idx* and *targets* are integers of any type, ``(batch, time)``.
        """
        logits = self.forward_from(0, self.embed(idx))
        if targets is None:
            return logits, None
        flat = logits.flatten(0, 1).float()
        return logits, functional.cross_entropy(flat, targets.flatten().long(), ignore_index=PADDING)

    def embed(self, idx: Tensor) -> Tensor:
        """Return the residual stream in front of the first layer, ``(batch, time, n_embd)``."""
        positions = torch.arange(idx.shape[1], device=idx.device)
        states: Tensor = self.transformer["wte"](idx.long()) + self.transformer["wpe"](positions)
        return states

    def residual_stream(self, idx: Tensor) -> Tensor:
        """Return the states after the embedding and after each layer, ``(n_layer + 1, batch, time, n_embd)``."""
        states = [self.embed(idx)]
        for block in self.layers:
            states.append(block(states[-1]))
        return torch.stack(states)

    def forward_from(self, layer: int, states: Tensor, edit: Edit | None = None) -> Tensor:
        """Return the logits of a residual stream in front of *layer*; ``n_layer`` is the end of the stream.

        *edit* changes the states in front of this layer and all that follow, and at the end of the stream.
        """
        for number in range(layer, len(self.layers) + 1):
            if edit is not None:
                states = edit(number, states)
            if number < len(self.layers):
                states = self.layers[number](states)
        logits: Tensor = self.lm_head(self.transformer["ln_f"](states))
        return logits

    def configure_optimizers(
        self, weight_decay: float, learning_rate: float, betas: tuple[float, float], device_type: str
    ) -> torch.optim.AdamW:
        """Return AdamW, with weight decay for matrices and embeddings only; fused on a GPU."""
        parameters = list(self.parameters())
        groups = [
            {"params": [one for one in parameters if one.dim() >= 2], "weight_decay": weight_decay},
            {"params": [one for one in parameters if one.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, learning_rate, betas, fused=device_type == "cuda")

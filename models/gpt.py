"""`GPT`: a decoder-only transformer over games as sequences of tokens, with the names of nanoGPT; its files and its agent.

A model reads the tokens of a game so far and predicts the next one. It has learnt positions, pre-norm blocks, no biases, and
separate matrices for embedding and unembedding. Files have the weights in half precision, and the vocabulary in their header.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from models.files import WeightsError, check_game, file_content, named_by_hash, read_file
from models.torch_evaluator import single_torch_thread
from models.vocabulary import PADDING, Vocabulary
from reversi_env import Position
from reversi_env.errors import ReversiError, TrainError, extra_libraries
from reversi_env.rules import Rules
from reversi_env.storage.atomic import write_atomically
from reversi_env.storage.checksummed import file_hash, read_cached
from search.agents.base import Agent
from search.evaluators.base import file_name

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

#: Standard deviation of the initial weights, as in GPT-2.
INIT_STD = 0.02
#: Changes the residual stream: from the number of layers so far and the states, ``(batch, time, n_embd)``, to new states.
Hook = Callable[[int, Tensor], Tensor]


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
        q, k, v = self.c_attn(x).unflatten(2, (3, self.n_head, -1)).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """One layer: attention and then an MLP, each added to the residual stream."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width = config.n_embd
        self.ln_1, self.ln_2 = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.attn = CausalSelfAttention(config)
        layers = {"c_fc": nn.Linear(width, 4 * width, bias=False), "gelu": nn.GELU()}
        layers["c_proj"] = nn.Linear(4 * width, width, bias=False)
        self.mlp = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


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
        self, idx: Tensor, targets: Tensor | None = None, hook: Hook = lambda layer, x: x
    ) -> tuple[Tensor, Tensor | None]:
        """Return logits, ``(batch, time, vocab_size)``, and the mean cross entropy of the *targets* that are no padding, in nats.

        *idx* and *targets* are integers of any type, ``(batch, time)``.
        """
        logits = self.lm_head(self.transformer["ln_f"](self.residual_stream(idx, hook)[-1]))
        if targets is None:
            return logits, None
        flat = logits.flatten(0, 1).float()
        return logits, functional.cross_entropy(flat, targets.flatten().long(), ignore_index=PADDING)

    def residual_stream(self, idx: Tensor, hook: Hook = lambda layer, x: x) -> list[Tensor]:
        """Return the states after the embedding and after each layer, ``(batch, time, n_embd)`` each, as changed by *hook*."""
        positions = torch.arange(idx.shape[1], device=idx.device)
        x, device = self.transformer["wte"](idx.long()) + self.transformer["wpe"](positions), idx.device.type
        if torch.is_autocast_enabled(device):  # which keeps embeddings, and so all states, in single precision
            x = x.to(torch.get_autocast_dtype(device))
        states = [hook(0, x)]
        for layer, block in enumerate(self.transformer["h"], 1):  # type: ignore[arg-type, var-annotated]
            states.append(hook(layer, block(states[-1])))
        return states

    def configure_optimizers(
        self, weight_decay: float, learning_rate: float, betas: tuple[float, float], device_type: str
    ) -> list[torch.optim.Optimizer]:
        """Return Muon for the matrices of the layers, and AdamW for the rest, without weight decay for vectors."""
        muon = [one for one in self.transformer["h"].parameters() if one.dim() == 2]
        rest = [one for one in self.parameters() if all(one is not other for other in muon)]
        embeddings, vectors = ([one for one in rest if (one.dim() >= 2) is big] for big in (True, False))
        groups = [{"params": embeddings, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        adam = torch.optim.AdamW(groups, learning_rate, betas, fused=device_type == "cuda")
        return [torch.optim.Muon(muon, learning_rate, weight_decay, adjust_lr_fn="match_rms_adamw"), adam]


@dataclass(frozen=True)
class SavedGPT:
    """A model with its vocabulary; ``record``: the JSON record of its training."""

    vocabulary: Vocabulary
    variant: Literal["normal", "reversed", "both"]
    net: GPT
    record: dict[str, Any]

    def save_in(self, folder: Path) -> Path:
        """Write the model into *folder* and return the file, which is named by its hash."""
        size, state = self.vocabulary.size, self.net.state_dict()
        tensors = {name: tensor.detach().cpu().to(torch.float16).numpy() for name, tensor in state.items()}
        header = {"architecture": "gpt", "size": size, "variant": self.variant, "record": self.record}
        header |= {"vocabulary": asdict(self.vocabulary), "config": asdict(self.net.config)}
        data = file_content(tensors, header)
        path = folder / named_by_hash(f"gpt-{size}x{size}-{self.variant}", data)
        write_atomically(path, data)
        return path


def read_gpt(path: Path) -> SavedGPT:
    """Return the model in a file, in single precision; the file is checked against its hashes and no code of it is run."""
    header, tensors = read_file(path)
    try:
        with torch.device("meta"):  # draws no weights from torch's global generator
            net = GPT(GPTConfig(**header["config"]))
        arrays = {name: torch.from_numpy(array.astype(np.float32)) for name, array in tensors.items()}
        net.load_state_dict(arrays, assign=True)
        saved = SavedGPT(Vocabulary(**header["vocabulary"]), header["variant"], net.eval(), header["record"])
        if saved.vocabulary.vocab_size != net.config.vocab_size:
            raise WeightsError(f"a model of {net.config.vocab_size} tokens: expected {saved.vocabulary.vocab_size}")
    except (ReversiError, RuntimeError, TypeError, ValueError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WeightsError(f"weight file {str(path)!r} cannot be read ({reason}): expected one of a GPT") from None
    return saved


class GPTAgent(Agent):
    """Plays the most probable legal move of a sequence model, which reads the moves of whole games and never a board.

    ``predictions`` counts the moves that the model has predicted, and ``illegal`` those whose most probable token, of all in the
    vocabulary, was illegal. Without a BOS token, a model predicts no first move; by symmetry the agent plays any.
    """

    sets_up_positions = False

    def __init__(self, weights: str | None = None) -> None:
        if weights is None:
            raise ReversiError("agent 'gpt' without a file: expected gpt:FILE, a file of `reversi train gpt`")
        self._path = Path(weights)
        self.predictions = self.illegal = 0

    def load(self, rules: Rules) -> SavedGPT:
        """Return the content of the file, which is read once, or raise an error if it is of another game."""
        saved = read_cached(self._path, read_gpt)
        variant = rules.variant if saved.variant == "both" else saved.variant
        check_game(f"gpt {str(self._path)!r}", Rules(saved.vocabulary.size, variant), rules)
        return saved

    def check(self, rules: Rules) -> None:
        self.load(rules)

    prepare = check

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        return {file_name("gpt", str(self._path)): file_hash(self._path)}

    def choose(self, position: Position) -> int:
        return self.choose_after(position, ())

    def choose_after(self, start: Position, moves: Sequence[str], position: Position | None = None) -> int:
        rules, position = start.rules, position or start.play_all(moves)
        if start != Position.initial(rules):
            raise ReversiError(f"agent 'gpt' plays whole games: expected the start position, not {start.to_text()}")
        saved, actions = self.load(rules), position.legal_actions()
        tokens = saved.vocabulary.encode(map(rules.action_from_name, moves), rules.variant)
        if position.must_pass() or not tokens.size:
            return actions[0]
        with single_torch_thread(), torch.inference_mode():
            logits = saved.net(torch.from_numpy(tokens)[None])[0][0, -1]
        order = saved.vocabulary.action_of_token[logits.argsort(descending=True).numpy()].tolist()
        self.predictions += 1
        self.illegal += order[0] not in actions
        return next(action for action in order if action in actions)

"""Trained GPTs in safetensors files, in half precision, with vocabulary, variants and record in the header."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from models.files import WeightsError, file_content, named_by_hash, read_file
from models.gpt.net import GPT, GPTConfig
from models.gpt.tokens import Vocabulary
from reversi_env import ReversiError, Rules
from reversi_env.errors import extra_libraries, quoted
from reversi_env.rules import Variant

with extra_libraries():
    import torch

ARCHITECTURE = "gpt"
#: In the header, and in a file's name, of a model of both variants.
BOTH = "both"


@dataclass(frozen=True)
class SavedGPT:
    """A model with its vocabulary; ``variants``: those it was trained on; ``record``: the JSON record of its training."""

    vocabulary: Vocabulary
    variants: tuple[Variant, ...]
    net: GPT
    record: dict[str, Any]

    @property
    def rules(self) -> Rules:
        """The first game that the model was trained on."""
        return Rules(self.vocabulary.size, self.variants[0])

    @property
    def variant(self) -> str:
        return BOTH if len(self.variants) > 1 else self.variants[0]

    def to_bytes(self) -> bytes:
        state = self.net.state_dict()
        tensors = {name: tensor.detach().cpu().to(torch.float16).numpy() for name, tensor in state.items()}
        if not all(np.isfinite(array).all() for array in tensors.values()):
            raise WeightsError("weights exceed the range of float16: the training has probably diverged")
        game = {"size": self.vocabulary.size, "variant": self.variant, "vocabulary": asdict(self.vocabulary)}
        return file_content(
            tensors, {"architecture": ARCHITECTURE, **game, "config": asdict(self.net.config), "record": self.record}
        )

    def file_name(self, data: bytes) -> str:
        return named_by_hash(f"gpt-{self.vocabulary.size}x{self.vocabulary.size}-{self.variant}", data)


def read_gpt(path: Path) -> SavedGPT:
    """Return the model in a file, in single precision; the file is checked against its hashes and no code of it is run."""
    header, tensors = read_file(path)
    if header["architecture"] != ARCHITECTURE:
        raise WeightsError(
            f"weight file {str(path)!r} of architecture {quoted(header['architecture'])}: expected {ARCHITECTURE}"
        )
    try:
        vocabulary, config = Vocabulary(**header["vocabulary"]), GPTConfig(**header["config"])
        variants: tuple[Variant, ...] = get_args(Variant) if header["variant"] == BOTH else (header["variant"],)
        for variant in variants:
            Rules(vocabulary.size, variant)
        if (config.block_size, config.vocab_size) != (vocabulary.context, vocabulary.num_tokens):
            raise WeightsError(f"a model of {config.vocab_size} tokens: expected {vocabulary.num_tokens}")
        with torch.device("meta"):  # draws no weights from torch's global generator
            net = GPT(config)
        arrays = {name: torch.from_numpy(array.astype(np.float32)) for name, array in tensors.items()}
        net.load_state_dict(arrays, assign=True)
    except (ReversiError, RuntimeError, TypeError, ValueError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WeightsError(f"weight file {str(path)!r} cannot be read ({reason}): expected one of a GPT") from None
    return SavedGPT(vocabulary, variants, net.eval(), header["record"])

"""Trained GPTs in safetensors files, and the agent ``gpt`` that plays by them.

``gpt:FILE`` reads the moves of the game, never a board; it therefore plays whole games from the start position only.
``reversi train gpt`` writes such files: weights in half precision, with vocabulary, variants and record in the header.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from models.files import WeightsError, check_game, file_content, named_by_hash, read_file
from models.gpt.net import GPT, GPTConfig
from models.gpt.tokens import Vocabulary
from models.torch_evaluator import single_torch_thread
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import extra_libraries, quoted
from reversi_env.rules import Variant
from reversi_env.storage.atomic import write_atomically
from reversi_env.storage.checksummed import file_hash, read_cached
from search.agents.base import Agent
from search.evaluators.base import file_name

with extra_libraries():
    import torch

ARCHITECTURE = "gpt"


@dataclass(frozen=True)
class SavedGPT:
    """A model with its vocabulary; ``variant``: normal, reversed or both; ``record``: the JSON record of its training."""

    vocabulary: Vocabulary
    variant: str
    net: GPT
    record: dict[str, Any]

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(one for one in get_args(Variant) if self.variant in (one, "both"))

    def save_in(self, folder: Path) -> Path:
        """Write the model into *folder* and return the file, which is named by its hash."""
        state = self.net.state_dict()
        tensors = {name: tensor.detach().cpu().to(torch.float16).numpy() for name, tensor in state.items()}
        header = {"architecture": ARCHITECTURE, "size": self.vocabulary.size, "variant": self.variant}
        header |= {"vocabulary": asdict(self.vocabulary), "config": asdict(self.net.config), "record": self.record}
        data = file_content(tensors, header)
        path = folder / named_by_hash(f"gpt-{self.vocabulary.size}x{self.vocabulary.size}-{self.variant}", data)
        write_atomically(path, data)
        return path


def read_gpt(path: Path) -> SavedGPT:
    """Return the model in a file, in single precision; the file is checked against its hashes and no code of it is run."""
    header, tensors = read_file(path)
    try:
        if header["architecture"] != ARCHITECTURE:
            raise WeightsError(f"architecture {quoted(header['architecture'])}: expected {ARCHITECTURE}")
        with torch.device("meta"):  # draws no weights from torch's global generator
            net = GPT(GPTConfig(**header["config"]))
        arrays = {name: torch.from_numpy(array.astype(np.float32)) for name, array in tensors.items()}
        net.load_state_dict(arrays, assign=True)
        saved = SavedGPT(Vocabulary(**header["vocabulary"]), header["variant"], net.eval(), header["record"])
        if saved.vocabulary.num_tokens != net.config.vocab_size or not saved.variants:
            raise WeightsError(f"a model of {net.config.vocab_size} tokens: expected {saved.vocabulary.num_tokens}")
    except (ReversiError, RuntimeError, TypeError, ValueError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WeightsError(f"weight file {str(path)!r} cannot be read ({reason}): expected one of a GPT") from None
    return saved


class GPTAgent(Agent):
    """Plays the most probable legal move of a sequence model.

    ``predictions`` counts the moves that the model has predicted, and ``illegal`` those whose most probable token, of all in the
    vocabulary, was illegal. Without a start token, a model predicts no first move; by symmetry the agent plays any.
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
        variant = rules.variant if rules.variant in saved.variants else saved.variants[0]
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
        rules = start.rules
        if start != Position.initial(rules):
            raise ReversiError(f"agent 'gpt' plays whole games: expected the start position, not {start.to_text()}")
        position, saved = position or start.play_all(moves), self.load(rules)
        actions = position.legal_actions()
        tokens = saved.vocabulary.encode(map(rules.action_from_name, moves), rules.variant)
        if position.must_pass() or not tokens.size:
            return actions[0]
        with single_torch_thread(), torch.inference_mode():
            logits = saved.net(torch.from_numpy(tokens)[None])[0][0, -1]
        order = saved.vocabulary.action_of_token[logits.argsort(descending=True).numpy()].tolist()
        self.predictions += 1
        self.illegal += order[0] not in actions
        return next(action for action in order if action in actions)

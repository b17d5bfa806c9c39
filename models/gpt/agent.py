"""The agent ``gpt``: a sequence model that plays its most probable legal move.

``gpt:FILE`` reads the moves of the game, never a board; it therefore plays whole games from the start position only.
``reversi train gpt`` writes such files.
"""

from collections.abc import Sequence
from pathlib import Path

from models.files import check_game
from models.gpt.files import SavedGPT, read_gpt
from models.torch_evaluator import single_torch_thread
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import extra_libraries
from reversi_env.storage.checksummed import file_hash, read_cached
from search.agents.base import Agent
from search.evaluators.base import file_name

with extra_libraries():
    import torch


class GPTAgent(Agent):
    """Plays the most probable legal move of a sequence model.

    ``predictions`` counts the moves that the model has predicted, and ``illegal`` those whose most probable token, of all in the
    vocabulary, was illegal. Without a start token, a model predicts no first move; by symmetry the agent plays any.
    """

    sets_up_positions = False

    def __init__(self, weights: str | None = None) -> None:
        if weights is None:
            raise ReversiError(
                "agent 'gpt' without a file: expected gpt:FILE, with a file that `reversi train gpt` wrote"
            )
        self._weights = weights
        self.predictions = self.illegal = 0

    def load(self, rules: Rules) -> SavedGPT:
        """Return the content of the file, which is read once, or raise an error if it is of another game."""
        saved = read_cached(Path(self._weights), read_gpt)
        trained = rules if rules.variant in saved.variants else saved.rules
        check_game(f"gpt {self._weights!r}", Rules(saved.vocabulary.size, trained.variant), rules)
        return saved

    def check(self, rules: Rules) -> None:
        self.load(rules)

    prepare = check

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        return {file_name("gpt", self._weights): file_hash(Path(self._weights))}

    def choose(self, position: Position) -> int:
        if position == Position.initial(position.rules):
            return self.choose_after(position, (), position)
        raise ReversiError(f"agent 'gpt' plays whole games: expected the moves that lead to {position.to_text()}")

    def choose_after(self, start: Position, moves: Sequence[str], position: Position | None = None) -> int:
        rules, position = start.rules, start.play_all(moves) if position is None else position
        if start != Position.initial(rules):
            raise ReversiError(f"agent 'gpt' plays whole games: expected the start position, not {start.to_text()}")
        actions, saved = position.legal_actions(), self.load(rules)
        vocabulary = saved.vocabulary
        tokens = vocabulary.encode(map(rules.action_from_name, moves), rules.variant)
        if position.must_pass() or not tokens.size:
            return actions[0]
        with single_torch_thread(), torch.inference_mode():
            logits = saved.net(torch.from_numpy(tokens)[None])[0][0, -1]
        order = vocabulary.action_of_token[logits.argsort(descending=True).numpy()].tolist()
        self.predictions += 1
        self.illegal += order[0] not in actions
        return next(action for action in order if action in actions)

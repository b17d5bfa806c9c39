"""The tokens of games."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from models.gpt.tokens import Vocabulary
from reversi_env.errors import ReversiError

SIZES = {4: 12, 6: 32, 8: 60}


@pytest.mark.parametrize(("size", "squares"), SIZES.items())
def test_the_default_is_that_of_othello_gpt(size, squares):
    vocabulary = Vocabulary(size)
    assert (vocabulary.num_tokens, vocabulary.length, vocabulary.context) == (squares + 1, squares, squares - 1)
    centre = {(size // 2 + r) * size + size // 2 + c for r in (-1, 0) for c in (-1, 0)}
    actions = [action for action in range(size**2) if action not in centre]
    assert vocabulary.encode(actions).tolist() == list(range(1, squares + 1))
    assert vocabulary.decode([*range(1, squares + 1), 0, 0]) == actions


@pytest.mark.parametrize("size", SIZES)
def test_options_add_tokens(size):
    plain = Vocabulary(size)
    order = tuple(reversed(plain.decode(range(1, plain.num_tokens))))
    vocabulary = Vocabulary(size, passes=True, start=True, rules=True, order=order)
    passed, squares = size**2, plain.num_squares
    assert vocabulary.num_tokens == plain.num_tokens + 4
    for rules, token in (("normal", squares + 3), ("reversed", squares + 4)):
        tokens = vocabulary.encode([order[0], passed, order[-1]], rules)
        assert tokens.tolist() == [squares + 2, token, 1, squares + 1, squares]
        assert vocabulary.decode(tokens) == [order[0], passed, order[-1]]
    assert Vocabulary(size, start=True).encode([order[0], passed]).size == 2
    same = Vocabulary(**json.loads(json.dumps(asdict(vocabulary))))
    assert same == vocabulary
    assert hash(same) == hash(vocabulary)
    moves = np.flatnonzero(vocabulary.square_of_token >= 0)
    assert vocabulary.token_of_square[vocabulary.square_of_token[moves]].tolist() == moves.tolist()


def test_what_is_no_token_is_an_error():
    with pytest.raises(ReversiError, match="order"):
        Vocabulary(4, order=(0, 1, 2))
    for action in (27, 65, -1):
        with pytest.raises(ReversiError, match="action"):
            Vocabulary().encode([action])
    with pytest.raises(ReversiError, match="token"):
        Vocabulary().decode([61])

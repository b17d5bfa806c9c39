"""Helpers of the environments' tests: expected observations of a `Position`, scripted games, warnings."""

import re
import warnings
from contextlib import contextmanager

import numpy as np

from reversi_env import BLACK, Position, Rules
from reversi_env.envs import ReversiEnv

GAMES = [(size, variant) for size in (4, 6, 8) for variant in ("normal", "reversed")]
IDS = {"normal": "Reversi-v0", "reversed": "ReversedReversi-v0"}

#: Whole and partial games by what happens in them (`--` is a pass), from a random search.
PASS_AFTER = "e6f6c4e7e8d8g7f8"  # 8x8: black has no move after eight plies
ENDS_AFTER_A_PASS = "c4b4a4d4d2--a1"  # 4x4: white passes, black makes the last move with squares left
ENDINGS = {
    "black wipes out": ("f5f4d3d6d7e3f3c5b5", Rules(8)),
    "white wipes out": ("f5f6e6d6e7f8f7f4c4b3", Rules(8)),
    "black wipes out and loses": ("f5f4d3d6d7e3f3c5b5", Rules(8, "reversed")),
    "ends early": ("d3e3f6c5e2d6d7e7b6d2d1c7b8b7d8f7f8a5a7", Rules(8)),  # discs of both colours
    "ends after a pass": (ENDS_AFTER_A_PASS, Rules(4)),
    "drawn early": ("d3d2a1d4d1a2b1a4a3b4", Rules(4)),
    "full board": ("c4b4a4d2d1d4a2a3d3c1b1a1", Rules(4)),
    "full board, drawn": ("a2a3a4c1d1a1d3d4c4d2b1b4", Rules(4)),
}


def moves_of(game, rules):
    return [rules.action_from_name(game[i : i + 2]) for i in range(0, len(game), 2)]


def position_after(game, rules):
    return Position.initial(rules).play_all(moves_of(game, rules))


def squares_of(board, rules):
    """Return the bits of a board as 0 and 1, one for each action except the pass."""
    return np.array([board >> sq & 1 for sq in rules.squares()], np.int8)


def board_of(position, observation="planes", own=None):
    """Return the expected observation of *position* from the side of *own* (default: the side to move)."""
    boards = (position.own, position.opp) if own in (None, position.turn) else (position.opp, position.own)
    mine, theirs = (squares_of(board, position.rules) for board in boards)
    if observation == "flat":
        return mine - theirs
    return np.stack([mine, theirs]).reshape(2, position.rules.size, position.rules.size)


def mask_of(position):
    """Return the expected action mask: legal actions, or only the pass if there are none or the game is over."""
    mask = np.zeros(position.rules.pass_action + 1, np.int8)
    mask[position.legal_actions() or [position.rules.pass_action]] = 1
    return mask


def number_of(colour):
    return 0 if colour == BLACK else 1


def result_of(position, colour, reward="win"):
    """Return the reward of the finished game for *colour*."""
    score = position.score(colour)
    return score / position.rules.square_count if reward == "discs" else float(np.sign(score))


def draw_legal(rng, masks):
    return (rng.random(masks.shape) * masks).argmax(-1)


def last_legal(board, mask):
    """Return the last legal action of one game or of a batch."""
    return mask.shape[-1] - 1 - np.asarray(mask)[..., ::-1].argmax(-1)


class LastLegal:
    def choose(self, position):
        return position.legal_actions()[-1]


def two_player(rules, **options):
    env = ReversiEnv(opponent=None, size=rules.size, variant=rules.variant, **options)
    env.reset(seed=1)
    return env


def play_out(env, actions):
    for action in actions:
        result = env.step(action)
    return result


def scripted_game(game, rules, agent, **options):
    """Return an environment whose opponent plays its moves of *game*, and the agent's actions."""
    actions = moves_of(game, rules)
    turns, position = [], Position.initial(rules)
    for action in actions:
        turns.append((position.turn, position.must_pass()))
        position = position.play(action)
    own = [action for action, (turn, _) in zip(actions, turns, strict=True) if turn == agent]
    replies = iter(
        [action for action, (turn, passes) in zip(actions, turns, strict=True) if turn != agent and not passes]
    )
    env = ReversiEnv(
        opponent=lambda board, mask: next(replies), size=rules.size, variant=rules.variant, colour=str(agent), **options
    )
    return env, own


@contextmanager
def only_these_warnings(accepted):
    """Fail if a warning matches no *accepted* pattern, or if a pattern matches no warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    messages = [str(warning.message) for warning in caught]
    unexplained = [text for text in messages if not any(re.search(pattern, text) for pattern in accepted)]
    assert unexplained == []
    unmet = [pattern for pattern in accepted if not any(re.search(pattern, text) for text in messages)]
    assert unmet == []


def same(left, right):
    """Return whether two observations or infos are equal in all keys, values and types."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray):
        equal = all(map(same, left, right)) if left.dtype == object else np.array_equal(left, right)
        return left.dtype == right.dtype and left.shape == right.shape and equal
    return type(left) is type(right) and left == right


def same_step(left, right):
    return all(same(a, b) for a, b in zip(left, right, strict=True))

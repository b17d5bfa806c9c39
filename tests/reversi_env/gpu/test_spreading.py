"""How a GPU writes eight bytes at a time, against the plain way: every place of every size, masks across environments too."""

import numpy as np
import pytest

from reversi_env import Rules
from reversi_env.kernels import autoreset as rollout


@pytest.mark.parametrize("size", [4, 6, 8])
def test_planes_and_masks_word_by_word(size):
    squares = np.array(list(Rules(size).squares()), np.uint64)
    count, playable = squares.size, np.uint64(Rules(size).playable)
    rng = np.random.default_rng(size)
    own, opp, legal = (rng.integers(0, 2**64, 12, np.uint64) & playable for _ in range(3))
    legal[3] = legal[7] = 0
    bits = [((boards[:, None] >> squares) & np.uint64(1)).astype(np.uint8) for boards in (own, opp, legal)]
    compact = [[np.uint64(rollout.compact(board, count)) for board in boards] for boards in (own, opp, legal)]

    def eight_from(rows, split, first):
        return np.uint64(rows[0] if first < split else rows[1]) >> np.uint64(first if first < split else first - split)

    planes = np.concatenate(bits[:2], axis=1)
    for row, mine, theirs in zip(planes, compact[0], compact[1], strict=True):
        rows, split = rollout.plane_rows(mine, theirs, count), rollout.plane_split(count)
        words = [rollout.spread_to_bytes(eight_from(rows, split, first)) for first in range(0, 2 * count, 8)]
        assert np.array_equal(np.array(words, np.uint64).view(np.uint8), row)
        words = [rollout.spread_to_float16(eight_from(rows, split, first)) for first in range(0, 2 * count, 4)]
        assert np.array_equal(np.array(words, np.uint64).view(np.float16), row)

    masks = np.column_stack([bits[2], (legal == 0).astype(np.uint8)]).ravel()
    words = []
    for place in range(0, masks.size // 8 * 8, 8):
        environment, first = divmod(place, count + 1)
        rows = rollout.mask_rows(compact[2][environment], compact[2][min(environment + 1, 11)], count)
        words.append(rollout.spread_to_bytes(eight_from(rows, rollout.mask_split(count), first)))
    assert np.array_equal(np.array(words, np.uint64).view(np.uint8), masks[: 8 * len(words)])


def test_every_byte_and_every_nibble():
    for bits in range(256):
        expected = [bits >> k & 1 for k in range(8)]
        spread = np.array([rollout.spread_to_bytes(np.uint64(bits))], np.uint64)
        assert spread.view(np.uint8).tolist() == expected
        halves = np.array([rollout.spread_to_float16(np.uint64(bits))], np.uint64)
        assert halves.view(np.float16).tolist() == expected[:4]

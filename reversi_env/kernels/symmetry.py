"""The eight symmetries of the square, a canonical form and a hash of positions.

Symmetry *k* (0-7) is: mirror the rows if bit 0 of *k* is set, then mirror the columns if bit 1 is, then transpose if
bit 2 is. Centred boards map onto themselves, so that one set of functions serves all sizes.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel

#: ``INVERSE_SYMMETRY[k]`` undoes symmetry *k*.
INVERSE_SYMMETRY = np.array([0, 1, 2, 3, 4, 6, 5, 7])


@kernel
def _swap(board, mask, distance):
    """Exchange the bits of *mask* with those *distance* higher."""
    moved = (board ^ (board >> distance)) & mask
    return board ^ moved ^ (moved << distance)


@kernel
def mirror_rows(board):
    """Mirror top and bottom: a1 and a8 change places."""
    board = _swap(board, np.uint64(0x00FF_00FF_00FF_00FF), np.uint64(8))
    board = _swap(board, np.uint64(0x0000_FFFF_0000_FFFF), np.uint64(16))
    return (board >> np.uint64(32)) | (board << np.uint64(32))


@kernel
def mirror_columns(board):
    """Exchange left and right: a1 and h1 change places."""
    board = _swap(board, np.uint64(0x5555_5555_5555_5555), np.uint64(1))
    board = _swap(board, np.uint64(0x3333_3333_3333_3333), np.uint64(2))
    return _swap(board, np.uint64(0x0F0F_0F0F_0F0F_0F0F), np.uint64(4))


@kernel
def transpose(board):
    """Exchange rows and columns: b1 and a2 change places."""
    board = _swap(board, np.uint64(0x00AA_00AA_00AA_00AA), np.uint64(7))
    board = _swap(board, np.uint64(0x0000_CCCC_0000_CCCC), np.uint64(14))
    return _swap(board, np.uint64(0x0000_0000_F0F0_F0F0), np.uint64(28))


@kernel
def transform(board, symmetry):
    if symmetry & 1:
        board = mirror_rows(board)
    if symmetry & 2:
        board = mirror_columns(board)
    if symmetry & 4:
        board = transpose(board)
    return board


@kernel
def canonical(own, opp):
    """The smallest of the eight images of (own, opp), and the symmetry that leads to it."""
    best_own, best_opp, best_symmetry = own, opp, 0
    for symmetry in range(1, 8):
        image_own = transform(own, symmetry)
        if image_own > best_own:
            continue
        image_opp = transform(opp, symmetry)
        if image_own < best_own or image_opp < best_opp:
            best_own, best_opp, best_symmetry = image_own, image_opp, symmetry
    return best_own, best_opp, best_symmetry


@kernel
def mix(word):
    """Scramble 64 bits one-to-one so that every input bit reaches every output bit (the finaliser of SplitMix64)."""
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58_476D_1CE4_E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D0_49BB_1331_11EB)
    return word ^ (word >> np.uint64(31))


@kernel
def position_hash(own, opp):
    """A 64-bit hash of the two boards; (own, opp) and (opp, own) differ."""
    return mix(mix(own + np.uint64(0x9E37_79B9_7F4A_7C15)) + opp)

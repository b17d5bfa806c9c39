"""The kernels agree with the slow matrix twin on every position of random games, for every size."""

import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic

from reversi_env import Rules, batch
from reversi_env.kernels import bitboard
from reversi_env.kernels import simd as intrinsics
from reversi_env.kernels.simd import outflanked, outflanked_by_shifts, outflanked_scalar, run_ends, run_ends_scalar
from reversi_env.kernels.stability import stable_discs
from tests.oracles import rules as slow

MISMATCHES = "none", "moves", "flips", "over", "score", "frontier", "scalar moves", "scalar flips", "flips by shifts"

# The twin is compiled here only so that a million positions take seconds; its source has no bit tricks.
turned_by = njit(slow.turned_by)
slow_globals = {**slow.__dict__, "turned_by": turned_by}


def compile_twin(name):
    function = getattr(slow, name)
    clone = type(function)(function.__code__, slow_globals, name)
    slow_globals[name] = njit(clone)
    return slow_globals[name]


legal_squares = compile_twin("legal_squares")
after_move = compile_twin("after_move")
slow_is_over = compile_twin("is_over")
slow_final_score = compile_twin("final_score")
frontier_squares = compile_twin("frontier_squares")
to_boards = compile_twin("to_boards")
scalar_moves = njit(run_ends_scalar)
scalar_flips = njit(outflanked_scalar)
shift_flips = njit(outflanked_by_shifts)


@njit
def square_bit(row, column, size):
    margin = (8 - size) // 2
    return np.uint64(1) << np.uint64(8 * (row + margin) + column + margin)


@njit
def compare_position(board, playable):
    """Index into MISMATCHES of the first thing on which kernels and twin differ."""
    size = board.shape[0]
    own, opp = to_boards(board)
    expected = np.uint64(0)
    for row, column in legal_squares(board):
        expected |= square_bit(row, column, size)
    if bitboard.legal_moves(own, opp, playable) != expected:
        return 1
    for row in range(size):
        for column in range(size):
            if board[row, column] != 0:
                continue
            turned = np.uint64(0)
            for r, c in turned_by(board, row, column):
                turned |= square_bit(r, c, size)
            margin = (8 - size) // 2
            sq = 8 * (row + margin) + column + margin
            if bitboard.flips(sq, own, opp) != turned:
                return 2
            if scalar_flips(sq, own, opp) != outflanked(sq, own, opp):
                return 7
            if shift_flips(sq, own, opp) != turned:
                return 8
    if bitboard.is_over(own, opp, playable) != slow_is_over(board):
        return 3
    if bitboard.final_score(own, opp, playable) != slow_final_score(board):
        return 4
    border = np.uint64(0)
    for row, column in frontier_squares(board):
        border |= square_bit(row, column, size)
    if bitboard.frontier(own, opp, playable) != border:
        return 5
    if (scalar_moves(own, opp) ^ run_ends(own, opp)) & ~(own | opp):
        return 6
    return 0


@njit
def compare_games(start, playable, positions, seed):
    """Random games played by the twin; every position is compared. Returns (mismatch, positions seen)."""
    np.random.seed(seed)
    board = start.copy()
    for seen in range(positions):
        mismatch = compare_position(board, playable)
        if mismatch:
            return mismatch, seen
        moves = legal_squares(board)
        if len(moves):
            row, column = moves[np.random.randint(len(moves))]
            child = after_move(board, row, column)
            own, opp = bitboard.play(
                8 * (row + (8 - board.shape[0]) // 2) + column + (8 - board.shape[0]) // 2, *to_boards(board)
            )
            if (own, opp) != to_boards(child):
                return 2, seen
            board = child
        elif slow_is_over(board):
            board = start.copy()
        else:
            board = -board
    return 0, positions


MANY = [(20_000, 7), pytest.param(1_000_000, 7, marks=[pytest.mark.slow, pytest.mark.long])]


@pytest.mark.parametrize(("positions", "seed"), MANY)
@pytest.mark.parametrize("size", [4, 6, 8])
def test_kernels_equal_the_twin(size, positions, seed):
    mismatch, seen = compare_games(slow.start_board(size), np.uint64(Rules(size).playable), positions, seed * size)
    assert (MISMATCHES[mismatch], seen) == ("none", positions)


def test_the_comparison_notices_a_wrong_rule():
    """With the wrong playable squares the kernels must disagree: the comparison is able to fail."""
    mismatch, _ = compare_games(slow.start_board(6), np.uint64(Rules(4).playable), 100, 1)
    assert MISMATCHES[mismatch] != "none"


@pytest.mark.parametrize(("size", "plies"), [(4, 8), (6, 24), (8, 48)])
def test_stable_discs_equal_the_twin(size, plies):
    own, opp = batch.random_positions(400, np.arange(400) % plies, Rules(size), seed=size)
    for mine, theirs in zip(own, opp, strict=True):
        squares = slow.stable_squares(slow.from_boards(mine, theirs, size))
        expected = sum(int(square_bit(row, column, size)) for row, column in squares)
        assert int(stable_discs(mine, theirs, np.uint64(Rules(size).playable))) == expected


@pytest.mark.parametrize("form", ["emit_by_counted_zeros", "emit_by_reversal", "emit_by_runs"])
def test_the_flips_of_every_cpu_are_compiled_on_this_one(form):
    """A form that this CPU would not choose is slower here, and must be as right."""
    emit = getattr(intrinsics, form)

    @intrinsic
    def flips(typing_context, sq, own, opp):
        return types.uint64(types.int64, types.uint64, types.uint64), lambda c, builder, s, args: emit(builder, *args)

    @njit
    def differences(own, opp):
        wrong = found = 0
        for i in range(own.size):
            for sq in range(64):
                if not ((own[i] | opp[i]) >> np.uint64(sq)) & np.uint64(1):
                    expected = scalar_flips(sq, own[i], opp[i])
                    wrong, found = wrong + (flips(sq, own[i], opp[i]) != expected), found + (expected != 0)
        return wrong, found

    generator = np.random.default_rng(5)
    own = generator.integers(2**64, size=2000, dtype=np.uint64)
    opp = generator.integers(2**64, size=2000, dtype=np.uint64) & ~own
    wrong, found = differences(own, opp)
    assert wrong == 0
    assert found > 10_000

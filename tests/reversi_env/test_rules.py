"""The rules against the reference implementation, the batch functions, and properties of the rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit, types
from numba.extending import intrinsic

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.kernels import bitboard
from reversi_env.kernels import simd as intrinsics
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.kernels.simd import outflanked, outflanked_by_shifts, outflanked_scalar, run_ends, run_ends_scalar
from reversi_env.kernels.stability import stable_discs
from reversi_env.kernels.symmetry import INVERSE_SYMMETRY
from tests.oracles import rules as slow
from tests.oracles.strategies import reachable_positions

MISMATCHES = "none", "moves", "flips", "over", "score", "frontier", "scalar moves", "scalar flips", "flips by shifts"

# The reference implementation is compiled only for speed; its source has no bit tricks.
turned_by = njit(slow.turned_by)
slow_globals = {**slow.__dict__, "turned_by": turned_by}


def compile_reference(name):
    function = getattr(slow, name)
    clone = type(function)(function.__code__, slow_globals, name)
    slow_globals[name] = njit(clone)
    return slow_globals[name]


legal_squares = compile_reference("legal_squares")
after_move = compile_reference("after_move")
slow_is_over = compile_reference("is_over")
slow_final_score = compile_reference("final_score")
frontier_squares = compile_reference("frontier_squares")
to_boards = compile_reference("to_boards")
scalar_moves = njit(run_ends_scalar)
scalar_flips = njit(outflanked_scalar)
shift_flips = njit(outflanked_by_shifts)


@njit
def square_of(row, column, size):
    margin = (8 - size) // 2
    return 8 * (row + margin) + column + margin


@njit
def board_with(squares, size):
    board = np.uint64(0)
    for row, column in squares:
        board |= np.uint64(1) << np.uint64(square_of(row, column, size))
    return board


@njit
def compare_position(board, playable):
    """Return the index in MISMATCHES of the first difference between kernels and reference."""
    size = board.shape[0]
    own, opp = to_boards(board)
    if bitboard.legal_moves(own, opp, playable) != board_with(legal_squares(board), size):
        return 1
    for row in range(size):
        for column in range(size):
            if board[row, column] != 0:
                continue
            flipped, sq = board_with(turned_by(board, row, column), size), square_of(row, column, size)
            if bitboard.flips(sq, own, opp) != flipped:
                return 2
            if scalar_flips(sq, own, opp) != outflanked(sq, own, opp):
                return 7
            if shift_flips(sq, own, opp) != flipped:
                return 8
    if bitboard.is_over(own, opp, playable) != slow_is_over(board):
        return 3
    if bitboard.final_score(own, opp, playable) != slow_final_score(board):
        return 4
    if bitboard.frontier(own, opp, playable) != board_with(frontier_squares(board), size):
        return 5
    if (scalar_moves(own, opp) ^ run_ends(own, opp)) & ~(own | opp):
        return 6
    return 0


@njit
def compare_games(start, playable, positions, seed):
    """Compare every position of random games of the reference; return (mismatch, positions compared)."""
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
            if bitboard.play(square_of(row, column, board.shape[0]), *to_boards(board)) != to_boards(child):
                return 2, seen
            board = child
        elif slow_is_over(board):
            board = start.copy()
        else:
            board = -board
    return 0, positions


@pytest.mark.parametrize("size", [4, 6, 8])
def test_kernels_equal_reference_implementation(size):
    """With the wrong playable squares the comparison must fail."""
    start = slow.start_board(size)
    mismatch, seen = compare_games(start, np.uint64(Rules(size).playable), 8_000, 7 * size)
    assert (MISMATCHES[mismatch], seen) == ("none", 8_000)
    assert compare_games(start, np.uint64(Rules(8 if size == 4 else 4).playable), 100, 1)[0] != 0


@pytest.mark.parametrize(("size", "plies"), [(4, 8), (6, 24), (8, 48)])
def test_stable_discs_equal_reference_implementation(size, plies):
    own, opp = batch.random_positions(400, np.arange(400) % plies, Rules(size), seed=size)
    for mine, theirs in zip(own, opp, strict=True):
        squares = slow.stable_squares(slow.from_boards(mine, theirs, size))
        expected = sum(1 << square_of(row, column, size) for row, column in squares)
        assert int(stable_discs(mine, theirs, np.uint64(Rules(size).playable))) == expected


@pytest.mark.parametrize("form", ["emit_by_counted_zeros", "emit_by_reversal", "emit_by_runs"])
def test_flip_kernels_of_all_cpu_types_are_correct(form):
    """All forms run on this CPU, also those that it would not choose."""
    emit = getattr(intrinsics, form)

    @intrinsic
    def flips(typing_context, sq, own, opp):
        return types.uint64(types.int64, types.uint64, types.uint64), lambda c, builder, s, args: emit(builder, *args)

    @njit
    def differences(own, opp):
        wrong = flipping = 0
        for i in range(own.size):
            for sq in range(64):
                if not ((own[i] | opp[i]) >> np.uint64(sq)) & np.uint64(1):
                    expected = scalar_flips(sq, own[i], opp[i])
                    wrong, flipping = wrong + (flips(sq, own[i], opp[i]) != expected), flipping + (expected != 0)
        return wrong, flipping

    generator = np.random.default_rng(5)
    own = generator.integers(2**64, size=2000, dtype=np.uint64)
    opp = generator.integers(2**64, size=2000, dtype=np.uint64) & ~own
    wrong, flipping = differences(own, opp)
    assert wrong == 0
    assert flipping > 10_000


CASES = [Rules(4), Rules(6, "reversed"), Rules(8), Rules(8, start="parallel")]
LONGEST = {4: 10, 6: 28, 8: 56}


@pytest.fixture(params=CASES, ids=str)
def rules(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["serial", "parallel"])
def parallel(request):
    return request.param


@pytest.fixture
def boards(rules):
    return batch.random_positions(300, np.arange(300) % LONGEST[rules.size], rules, seed=11)


def positions(boards, rules):
    return [Position(rules, int(own), int(opp)) for own, opp in zip(*boards, strict=True)]


def test_batch_queries_match_position(boards, rules, parallel):
    single = positions(boards, rules)
    for question, expected in (
        (batch.legal_moves, Position.legal_board),
        (batch.is_over, Position.is_over),
        (batch.frontier, Position.frontier),
        (batch.stable_discs, Position.stable),
    ):
        assert question(*boards, rules, parallel=parallel).tolist() == [expected(p) for p in single]
    scores = [
        rules.sign * slow.final_score(slow.from_boards(*sides, rules.size)) for sides in zip(*boards, strict=True)
    ]
    assert batch.final_scores(*boards, rules, parallel=parallel).tolist() == scores
    assert batch.position_hash(*boards, parallel=parallel).tolist() == [p.hash64() for p in single]
    *canonical, symmetry = batch.canonical(*boards, parallel=parallel)
    assert positions(canonical, rules) == [p.canonical() for p in single]
    assert [p.transformed(int(k)) for p, k in zip(single, symmetry, strict=True)] == [p.canonical() for p in single]
    assert batch.image_hash(*boards).tolist() == [p.canonical().hash64() for p in single]


def test_expand_and_play_match_position(boards, rules, parallel):
    children = batch.expand(*boards, rules, parallel=parallel)
    expected = [
        (index, PASS_SQUARE if action == rules.pass_action else rules.square_of(action), child.own, child.opp)
        for index, position in enumerate(positions(boards, rules))
        for action in position.legal_actions()
        for child in [position.play(action)]
    ]
    assert list(zip(*(column.tolist() for column in children), strict=True)) == expected
    own, opp = boards[0][children.parent], boards[1][children.parent]
    assert np.array_equal(
        np.stack(batch.play(children.square, own, opp, rules, parallel=parallel)),
        np.stack([children.own, children.opp]),
    )
    flipped = batch.flips(children.square, own, opp, rules, parallel=parallel)
    assert np.array_equal(flipped, opp & ~children.own)
    assert (flipped[children.square != PASS_SQUARE] != 0).all()


def test_move_off_the_board_flips_nothing():
    own, opp = np.array([1 << 18], np.uint64), np.array([1 << 9], np.uint64)  # a line to the corner of the 8x8 frame
    assert batch.flips(0, own, opp, Rules(6)).tolist() == [0]
    assert batch.flips(0, own, opp).tolist() == [1 << 9]


#: No game has more than two plies per square, and no random game has 70.
BAD_PLIES = [2**63, 129, 70, -1, 2.9, np.array([1, 2**63], np.uint64)]


def test_random_positions_are_reproducible_with_requested_plies(rules):
    one = batch.random_positions(500, 6, rules, seed=3)
    assert np.array_equal(one, batch.random_positions(500, 6, rules, seed=3, parallel=True))
    assert not np.array_equal(one, batch.random_positions(500, 6, rules, seed=4))
    discs = np.bitwise_count(one[0] | one[1])
    assert discs.max() == 10
    assert (discs == 10).mean() > (0.5 if rules.size == 4 else 0.99)


def test_random_play_is_uniform_with_known_mean_length():
    """Chi-square of the four first moves is below its 0.1 % point; random 8x8 games last about 60.4 plies with passes."""
    _, counts = np.unique(batch.random_positions(40_000, 1, seed=2)[1], return_counts=True)
    assert counts.size == 4
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 16.27
    plies = batch.random_plies(20_000, seed=9)
    assert plies == batch.random_plies(20_000, seed=9, parallel=True)
    assert abs(plies / 20_000 - 60.4) < 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batch.legal_moves([1, 2], [4]), "own has 2 boards and opp 1"),
        (lambda: batch.legal_moves([[1]], [[2]]), "one-dimensional"),
        *((lambda: batch.legal_moves([1.5], [2.0]), "uint64"), (lambda: batch.legal_moves([1], [1]), "position 0")),
        (lambda: batch.legal_moves([1], [2], Rules(6)), "6x6"),
        *((lambda square=square: batch.play([square], *batch.start(1)), f"square {square}") for square in (0, 64, 65)),
        (lambda: batch.play([19, 19], *batch.start(3)), "3"),
        *((lambda plies=plies: batch.random_positions(2, plies), "plies") for plies in BAD_PLIES),
        (lambda: batch.random_positions(3, [1, 2]), "3 positions"),
        *((lambda: batch.random_positions(-1, 2), "count"), (lambda: batch.random_positions(1, 2, seed=1.7), "seed")),
        *((lambda: batch.random_positions(1, 2, 6), "Rules"), (lambda: batch.random_plies(1, seed=-1), "seed")),
    ],
)
def test_invalid_arrays_are_named(call, message):
    with pytest.raises(ReversiError, match=message):
        call()


@given(reachable_positions(), st.integers(0, 7))
def test_symmetry_commutes_with_play(position, symmetry):
    image, actions = position.transformed(symmetry), position.legal_actions()
    images = batch.action_images(position.rules.size)[symmetry]
    assert sorted(images[actions]) == image.legal_actions()
    for action in actions:
        assert position.play(action).transformed(symmetry) == image.play(images[action])


@given(reachable_positions())
def test_symmetries_match_matrix_symmetries(position):
    matrix = position.to_matrix()
    images = [position.transformed(symmetry) for symmetry in range(8)]
    expected = [np.rot90(m, k) for m in (matrix, matrix.T) for k in range(4)]
    assert {image.to_matrix().tobytes() for image in images} == {np.ascontiguousarray(m).tobytes() for m in expected}
    for symmetry, image in enumerate(images):
        assert image.transformed(int(INVERSE_SYMMETRY[symmetry])) == position
        assert image.canonical() == position.canonical() in images


@given(reachable_positions())
def test_swapping_colours_or_sides_swaps_the_results(position):
    painted = Position(position.rules, position.own, position.opp, position.turn.other)
    assert painted.legal_moves() == position.legal_moves()
    assert painted.to_text() == position.to_text().translate(str.maketrans("XO", "OX"))
    swapped = Position(position.rules, position.opp, position.own, position.turn.other)
    assert swapped.is_over() == position.is_over()
    assert swapped.disc_difference() == -position.disc_difference()
    if position.is_over():
        assert swapped.score() == -position.score()
        assert swapped.winner() == position.winner()
    assert Position.from_text(position.to_text(), position.turn, position.rules) == position
    assert Position.from_matrix(position.to_matrix(), position.turn, position.rules) == position


def test_hash_has_no_collisions_and_diffuses_every_bit():
    own, opp = batch.random_positions(200_000, np.arange(200_000) % 50, seed=5)
    boards = np.unique(np.stack([own, opp]), axis=1)
    own, opp = boards[0], boards[1]
    hashes = batch.position_hash(own, opp)
    assert np.unique(hashes).size == own.size
    for sq in (0, 20, 63):  # flipping one input bit flips half of the output bits
        empty = ((own | opp) >> np.uint64(sq)) & np.uint64(1) == 0
        changed = batch.position_hash(own[empty] | np.uint64(1 << sq), opp[empty]) ^ hashes[empty]
        assert abs(np.bitwise_count(changed).mean() - 32) < 0.2
    assert (batch.position_hash(own, opp) != batch.position_hash(opp, own)).all()

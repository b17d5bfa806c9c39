"""Properties that hold in every position of every game."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import Position, batch
from reversi_env.kernels.symmetry import INVERSE_SYMMETRY
from tests.oracles.strategies import game_positions, reachable_positions

symmetries = st.integers(0, 7)


def image_of(position, action, symmetry):
    """The action under the symmetry."""
    rules = position.rules
    if action == rules.pass_action:
        return action
    marked = Position(rules, 1 << rules.square_of(action), 0).transformed(symmetry)
    return rules.action_of(marked.own.bit_length() - 1)


@given(reachable_positions(), symmetries)
def test_symmetry_commutes_with_play(position, symmetry):
    image = position.transformed(symmetry)
    actions = position.legal_actions()
    assert sorted(image_of(position, action, symmetry) for action in actions) == image.legal_actions()
    for action in actions:
        assert position.play(action).transformed(symmetry) == image.play(image_of(position, action, symmetry))


@given(reachable_positions(), symmetries)
def test_symmetries_are_undone_by_their_inverses(position, symmetry):
    assert position.transformed(symmetry).transformed(int(INVERSE_SYMMETRY[symmetry])) == position


@given(reachable_positions())
def test_the_eight_symmetries_are_the_matrix_ones(position):
    matrix = position.to_matrix()
    images = {position.transformed(symmetry).to_matrix().tobytes() for symmetry in range(8)}
    turned = [np.rot90(m, k) for m in (matrix, matrix.T) for k in range(4)]
    assert images == {np.ascontiguousarray(m).tobytes() for m in turned}


@given(reachable_positions(), symmetries)
def test_all_images_have_one_canonical_form(position, symmetry):
    canonical = position.canonical()
    assert position.transformed(symmetry).canonical() == canonical
    assert canonical in {position.transformed(k) for k in range(8)}


@given(game_positions())
def test_discs_never_decrease_and_a_move_adds_one(positions):
    """The round number is the disc count: it grows by one with each move and stays with a pass."""
    for before, after in itertools.pairwise(positions):
        passed = before.must_pass()
        assert after.round == before.round + (0 if passed else 1)
        assert after.turn == before.turn.other
        assert (before.own | before.opp) & ~(after.own | after.opp) == 0


@given(game_positions())
def test_a_move_turns_only_the_opponents_discs(positions):
    for before, after in itertools.pairwise(positions):
        assert before.own & after.own == 0
        assert after.own & ~before.opp == 0


@given(reachable_positions())
def test_swapping_the_sides_swaps_the_results(position):
    swapped = Position(position.rules, position.opp, position.own, position.turn.other)
    assert swapped.is_over() == position.is_over()
    assert swapped.disc_difference() == -position.disc_difference()
    if position.is_over():
        assert swapped.score() == -position.score()
        assert swapped.winner() == position.winner()


@given(reachable_positions())
def test_colours_are_only_names(position):
    """Painting every disc in the other colour changes nothing but the names."""
    painted = Position(position.rules, position.own, position.opp, position.turn.other)
    assert painted.legal_moves() == position.legal_moves()
    assert painted.to_text() == position.to_text().translate(str.maketrans("XO", "OX"))


@given(reachable_positions())
def test_text_and_matrix_round_trip(position):
    assert Position.from_text(position.to_text(), position.turn, position.rules) == position
    assert Position.from_matrix(position.to_matrix(), position.turn, position.rules) == position


def test_the_hash_has_no_collision_and_spreads_every_bit():
    own, opp = batch.random_positions(200_000, np.arange(200_000) % 50, seed=5)
    boards = np.unique(np.stack([own, opp]), axis=1)
    own, opp = boards[0], boards[1]
    hashes = batch.position_hash(own, opp)
    assert np.unique(hashes).size == own.size
    # every output bit is set in half of the cases, and turning one input bit turns half of the output bits
    bits = np.unpackbits(hashes.view(np.uint8)).reshape(-1, 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.01
    for sq in (0, 20, 63):
        empty = ((own | opp) >> np.uint64(sq)) & np.uint64(1) == 0
        changed = batch.position_hash(own[empty] | np.uint64(1 << sq), opp[empty]) ^ hashes[empty]
        assert abs(np.bitwise_count(changed).mean() - 32) < 0.2
    assert (batch.position_hash(own, opp) != batch.position_hash(opp, own)).all()

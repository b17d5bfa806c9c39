"""What all networks over patterns do to carry their states: records with the field ``digits``, the address of `digit_table`."""

from __future__ import annotations

from models.core.pattern_states import move_states, try_states, write_states


def refresh_accumulator(net, accumulator, own, opp):
    """Write the states of a position."""
    write_states(own, opp, net.digits, accumulator)


def update_accumulator(net, accumulator, sq, flipped):
    """Write the states after a move into the next level's room."""
    move_states(sq, flipped, net.digits, accumulator)


def update_for_value(net, accumulator, sq, flipped):
    """Write them as the side sees them that is to move then."""
    try_states(sq, flipped, net.digits, accumulator)

"""What all networks over patterns do to carry their states: records with the field ``digits``, the address of `digit_table`."""

from __future__ import annotations

from models.core.pattern_states import move_states, try_states, write_states


def begin(net, room, own, opp):
    """Write the states of a position."""
    write_states(own, opp, net.digits, room)


def after_move(net, room, sq, turned):
    """Write the states after a move into the next level's room."""
    move_states(sq, turned, net.digits, room)


def try_move(net, room, sq, turned):
    """Write them as the side sees them that is to move then."""
    try_states(sq, turned, net.digits, room)

"""Texts for a terminal: hints, values of moves, an evaluation bar, the result of a game."""

from math import tanh

from play.game import Game
from play.thinker import Thought
from reversi_env.rules import BLACK, WHITE, Colour
from search.engine.limits import certainty

BAR_WIDTH = 40
#: A lead of so many discs fills most of the bar.
LARGE_LEAD = 20.0
#: Width of the longest bar in the list of values.
VALUE_WIDTH = 20


def hint_text(thought: Thought) -> str:
    """Return the best move with its value and the principal variation."""
    if thought.value is None:
        return f"{thought.move} (no value: this adviser gives none)"
    line = f", expecting {' '.join(thought.pv[:8])}" if len(thought.pv) > 1 else ""
    return f"{thought.move} ({thought.value:+.1f} discs, {certainty(thought.confidence, thought.depth)}{line})"


def value_lines(thought: Thought, *, block_characters: bool) -> list[str]:
    """Return a line per move, best first, with its value for the side to move and a bar."""
    if not thought.moves:
        return ["no values: this adviser gives none; --adviser names another"]
    best = max(entry.value for entry in thought.moves)
    lines = [f"values in discs for the side to move, {certainty(thought.confidence, thought.depth)}:"]
    for entry in thought.moves:
        width = max(1, round(VALUE_WIDTH * (1 - min(best - entry.value, LARGE_LEAD) / LARGE_LEAD)))
        lines.append(f"  {entry.move}  {entry.value:+6.1f}  {('█' if block_characters else '#') * width}")
    return lines


def bar_text(value: float, turn: Colour, *, block_characters: bool) -> str:
    """Return a bar filled from black's side, in *block_characters* or ASCII; *value* is in discs for the side *turn*."""
    for_black = value if turn == BLACK else -value
    filled = round(BAR_WIDTH * (1 + tanh(for_black / LARGE_LEAD)) / 2)
    full, empty = ("█", "░") if block_characters else ("#", "-")
    leader = "even" if round(for_black, 1) == 0 else f"{'black' if for_black > 0 else 'white'} {abs(for_black):+.1f}"
    return f"black {full * filled}{empty * (BAR_WIDTH - filled)} white  {leader}"


def outcome_text(game: Game) -> str:
    """Return the winner of a game that is over, with the margin and the discs on the board."""
    winner, ending = game.winner(), {"resigned": " by resignation", "timeout": " on time"}.get(game.ending or "", "")
    margin = "" if winner is None or ending else f" by {abs(game.score())}"
    empties = " (empty squares count for the winner)" if margin and game.position.empties else ""
    result = "the game is drawn" if winner is None else f"{winner} wins{ending}{margin}"
    return f"{result}, black {game.position.discs(BLACK)}, white {game.position.discs(WHITE)}{empties}"

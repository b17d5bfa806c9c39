"""Game records read: all positions of a game that somebody has as text."""

from __future__ import annotations

from typing import Any

from play.game import Game
from reversi_env import Rules
from reversi_env.rules import BLACK


def read_record(text: str, rules: Rules) -> dict[str, Any]:
    """The game in *text*, as the message `Transcript` has it: GGF, which says its own rules, or the moves of one by *rules*."""
    game = Game.from_ggf(text.strip()) if "(;" in text else Game.from_transcript(text, rules)
    positions = [
        {
            "board": position.to_text(),
            "turn": "black" if position.turn == BLACK else "white",
            "legal": position.legal_moves(),
            "move": move,
        }
        for position, move in zip(game.positions, [*game.moves, None], strict=True)
    ]
    names = {"size": game.rules.size, "variant": game.rules.variant, "black": game.black, "white": game.white}
    return {**names, "moves": list(game.moves), "positions": positions, "result": game.record().result}

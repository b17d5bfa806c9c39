"""Reading and writing games and problems: transcripts, OBF, GGF and WTHOR.

Functions for one game or problem take its text; functions for a whole file take its path, or its contents as lines
(OBF, GGF) or bytes (WTHOR). Bad input raises a `reversi_env.errors.ReversiError` that names the place and what was
expected.
"""

from reversi_env.notation.game import Annotation, Ending, Game
from reversi_env.notation.ggf import read_ggf, read_ggf_game, write_ggf
from reversi_env.notation.obf import Problem, read_obf, read_obf_line, write_obf_line
from reversi_env.notation.transcript import Passes, read_transcript, write_transcript
from reversi_env.notation.wthor import Replays, WthorFile, WthorHeader, read_wthor, read_wthor_names

__all__ = [
    "Annotation",
    "Ending",
    "Game",
    "Passes",
    "Problem",
    "Replays",
    "WthorFile",
    "WthorHeader",
    "read_ggf",
    "read_ggf_game",
    "read_obf",
    "read_obf_line",
    "read_transcript",
    "read_wthor",
    "read_wthor_names",
    "write_ggf",
    "write_obf_line",
    "write_transcript",
]

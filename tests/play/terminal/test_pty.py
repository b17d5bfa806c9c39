"""`reversi play` in a pseudo-terminal: prompts, keys, Ctrl-C, Ctrl-D and kill -9."""

import importlib.util
import os
import re
import signal
import subprocess
from contextlib import suppress

import pytest

from play.game import Game
from reversi_env import Rules

from .process import Terminal

HAS_READLINE = importlib.util.find_spec("readline") is not None
#: Makes the pseudo-terminal the controlling terminal, so that its Ctrl-C reaches the process.
LAUNCH = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from play.__main__ import main; main()"
CLEAR = "\x1b[H\x1b[J"
AGENT = ("--agent", "six-factor:depth=1", "--adviser", "six-factor:depth=2")


class Session(Terminal):
    """An interactive `reversi play`."""

    def type(self, text, expect=r"(?:black|white)> $"):
        os.write(self.controller, text.encode())
        return self.until(expect)

    def line(self, text, expect=r"\n(?:black|white|new, undo, save or quit)(?: \(paused.*\))?> "):
        return self.type(f"{text}\n", expect)

    def end_by_ctrl_c(self):
        """Press Ctrl-C until the program ends: CPython's readline misses one between its prompt and its wait."""
        for _ in range(10):
            os.write(self.controller, b"\x03")
            while self.more(patience=5):
                pass
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
                break
        return self.end()


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def start(*arguments):
        here = {"environment": {"XDG_STATE_HOME": tmp_path}, "cwd": tmp_path}
        opened.append(Session("play", *arguments, code=LAUNCH, start_new_session=True, **here))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def transcript(shown):
    """Return the transcript in the output of ``moves``."""
    return re.search(r"\n([a-h][1-8]\S*)\n", shown)[1]


def test_a_whole_game_in_a_terminal(terminal, tmp_path):
    game = terminal(*AGENT, "--size", "4")
    assert "black to move (black 2, white 2)" in game.until(r"black> ")
    assert "●" in game.raw
    assert CLEAR not in game.raw
    assert "white (six-factor:depth=1) plays" in game.line("b1")
    assert game.raw.count(CLEAR) == 2  # each board replaces the last one, with the answer below
    assert "white (six-factor:depth=1) plays" in game.raw.rpartition(CLEAR)[2]
    first = transcript(game.line("moves"))
    assert first.startswith("b1")
    values = game.line("val\t")
    assert "values in discs" in values
    assert not HAS_READLINE or values.count("values") == 2  # Tab completed the word
    assert "saved to" in game.line("save game.ggf")
    shown = ""
    while "Game over" not in shown:
        position = Game.from_transcript(transcript(game.line("moves")), Rules(4)).position
        shown = game.line(position.legal_moves()[-1])
    played = Game.from_transcript(transcript(game.line("moves")), Rules(4))
    assert played.is_over()
    assert f"black {played.position.discs(-1)}, white {played.position.discs(1)}" in shown
    assert "saved to" in game.line("save end.txt")
    os.write(game.controller, b"quit\n")
    assert game.end() == 0
    assert Game.from_transcript((tmp_path / "end.txt").read_text(), Rules(4)).moves == played.moves
    assert Game.from_ggf((tmp_path / "game.ggf").read_text()).to_transcript() == first


@pytest.mark.slow
def test_ctrl_c_makes_the_agent_move_and_keeps_the_game(terminal):
    """The agent has an hour per move."""
    game = terminal("--agent", "six-factor:time=3600", "--size", "8")
    game.until(r"black> ")
    game.line("f5", r"white is thinking")
    shown = game.type("\x03", r"black> ")
    assert re.search(r"white \(six-factor:time=3600\) plays [a-h][1-8]", shown)
    assert "f5" in game.line("moves")
    assert game.end_by_ctrl_c() == 130
    assert "Game saved" in game.text
    assert "Traceback" not in game.text


@pytest.mark.slow
def test_ctrl_d_ends_and_resume_continues_after_kill_9(terminal):
    game = terminal(*AGENT, "--size", "6")
    game.until(r"black> ")
    game.line("e4")
    os.write(game.controller, b"\x04")
    assert game.end() == 0
    assert "Game saved" in game.text

    again = terminal("--resume")
    again.until(r"black> ")
    before = transcript(again.line("moves"))
    assert before.startswith("e4")
    again.line(Game.from_transcript(before, Rules(6)).position.legal_moves()[0])
    played = transcript(again.line("moves"))
    assert len(played) > len(before)
    again.process.kill()
    assert again.end() == -signal.SIGKILL
    last = terminal("--resume")
    last.until(r"black> ")
    assert transcript(last.line("moves")) == played

"""`Screen`: output and input in a terminal, a pipe or a log file."""

import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from shutil import get_terminal_size
from typing import TextIO

_RESET = "\x1b[0m"
_CLEAR = "\x1b[H\x1b[J"
_STYLES = {"bold": "\x1b[1m", "faint": "\x1b[2m", "error": "\x1b[31m"}


class Screen:
    """Output and input by lines. *colour*: whether to use colours and round discs; by default if the terminal has them."""

    def __init__(self, colour: bool | None = None) -> None:
        for stream in (sys.stdin, sys.stdout):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # for characters that the encoding lacks
        self.colour = shows_colours(sys.stdout, os.environ) if colour is None else colour
        self._typed = sys.stdin.isatty() and sys.stdout.isatty()

    def complete_with(self, words: Callable[[], Iterable[str]]) -> None:
        """Let the Tab key complete *words*, and the arrow keys show earlier lines, if readline is there."""
        if not self._typed:
            return
        try:
            import readline
        except ImportError:
            return

        def fitting(begun: str, number: int) -> str | None:
            matches = [word for word in words() if word.startswith(begun.lower())]
            return matches[number] if number < len(matches) else None

        readline.set_completer(fitting)
        readline.set_completer_delims(" ")
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def show(self, text: str = "", style: str | None = None) -> None:
        if style and self.colour:
            text = f"{_STYLES[style]}{text}{_RESET}"
        print(text, flush=True)

    def clear(self, lines: int) -> bool:
        """Clear the screen for this number of *lines*; return False if it cannot be cleared or they do not fit."""
        fits = self.colour and self._typed and get_terminal_size().lines >= lines
        if fits:
            print(_CLEAR, end="", flush=True)
        return fits

    def read(self, prompt: str) -> str:
        """Return a line of input, stripped; raise EOFError at its end. Input from a pipe or file is printed, too."""
        try:
            line = input(prompt)
        except EOFError:
            print(flush=True)  # Ctrl-D leaves the cursor after the prompt
            raise
        if not sys.stdin.isatty():
            print(line, flush=True)
        return line.strip()


def shows_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether *stream* is a terminal with colours that the user has not disabled (https://no-color.org)."""
    if environment.get("NO_COLOR") or environment.get("TERM", "dumb") in ("dumb", "", "unknown"):
        return False
    try:
        "●•█░".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return stream.isatty()

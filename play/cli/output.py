"""Output of the commands: progress bar, messages after Ctrl-C, results as JSON or as a table."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol

from play.interrupt import INTERRUPTED

#: What to do after an interruption.
RESUME = "run the same command again to resume"
#: Without a terminal, seconds between two lines of progress.
LINE_SECONDS = 60.0


class ProgressDisplay(Protocol):
    """Updates the progress bar: *done* of *total* (None: unknown) of the task *doing*, followed by a *note*."""

    def __call__(self, doing: str, done: int, total: int | None, note: str = "") -> None: ...


@contextmanager
def progress_bar(*, lines: bool = False) -> Iterator[ProgressDisplay]:
    """Yield a progress bar on standard error with rate and remaining time, for one task after another.

    Without a terminal it prints a line per minute (`LINE_SECONDS`) and, with *lines*, one per task.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    texts = [TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[note]", "fields[rate]")]
    console = Console(file=sys.stderr)
    columns = (texts[0], BarColumn(), MofNCompleteColumn(), *texts[1:], TimeRemainingColumn())
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet, redirect_stdout=False) as bar:
        current, due = "", monotonic() + LINE_SECONDS

        def show(doing: str, done: int, total: int | None, note: str = "") -> None:
            nonlocal current, due
            if doing != current:
                current = doing
                for shown in bar.task_ids:
                    bar.remove_task(shown)
                bar.add_task(doing, total=total, note="", rate="")
                if quiet and lines:
                    print(doing, file=sys.stderr, flush=True)
            if quiet and monotonic() >= due:
                due = monotonic() + LINE_SECONDS
                count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
                print(f"{doing}: {count} {note}".rstrip(), file=sys.stderr, flush=True)
            [task] = bar.tasks
            rate = f"{task.speed:,.{0 if task.speed >= 100 else 1}f}/s" if task.speed else ""
            bar.update(task.id, completed=done, total=total, note=note, rate=rate)

        yield show


@contextmanager
def exit_on_interrupt(words: str | Callable[[], str]) -> Iterator[None]:
    """After Ctrl-C, print *words* on standard error and exit with the status that shells expect."""
    try:
        yield
    except KeyboardInterrupt:
        print(words if isinstance(words, str) else words(), file=sys.stderr)
        sys.exit(INTERRUPTED)


@contextmanager
def output_after_interrupt(interrupted: bool, words: str) -> Iterator[None]:
    """If Ctrl-C ended the work, print *words* before the partial result and exit with its status after it."""
    if interrupted:
        print(f"reversi: {words}", file=sys.stderr)
    yield
    if interrupted:
        sys.exit(INTERRUPTED)


def attributes(result: object, *names: str) -> dict[str, Any]:
    values = {name: getattr(result, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def print_json(result: dict[str, Any]) -> None:
    """Write *result* as one line of JSON on standard output, with null for NaN and infinities."""
    print(json.dumps(_without_nan(result), allow_nan=False), flush=True)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    words: int = 1,
    width: int = 0,
    gap: int | None = None,
    **look: Any,
) -> None:
    """Print a table whose first *words* columns are text; the others are numbers, which are never wrapped.

    On a terminal narrower than *width* lines may wrap, but nothing is cut off. With a *gap*, the number of spaces between
    columns, only the headings have a line. *look* are options of rich's table.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if gap is not None:
        look |= {"box": SIMPLE_HEAD, "padding": (0, gap, 0, 0), "pad_edge": False}
    table = Table(title=title, title_justify="left", **look)
    for number, heading in enumerate(headings):
        is_text = number < words
        justify, overflow = ("left", "fold") if is_text else ("right", "ellipsis")
        table.add_column(heading, justify=justify, overflow=overflow, no_wrap=not is_text)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console(width=max(Console().width, width)).print(table)

"""The report of a benchmark: JSON for programs, a table for people."""

import sys
from collections.abc import Callable
from typing import Any

from play.cli.output import print_json, print_table


class Report:
    """The figures of a benchmark, measured one after the other, with the machine and the versions of *packages*."""

    def __init__(self, title: str, *packages: str) -> None:
        from train.jobs.provenance import cpu_name, versions

        self.title = title
        self.result: dict[str, Any] = {"cpu": cpu_name(), "versions": versions(*packages)}
        self._rows: list[tuple[str, str]] = []

    def measure(self, label: str, work: Callable[[], Any]) -> Any:
        """Return the result of *work*, with *label* on standard error meanwhile."""
        from rich.console import Console

        console = Console(file=sys.stderr)
        if not console.is_terminal:
            print(label, file=sys.stderr, flush=True)
        with console.status(label):
            return work()

    def row(self, label: str, text: str, **figures: Any) -> None:
        """Add a line of the table, and *figures* to the JSON."""
        self._rows.append((label, text))
        self.result |= figures

    def figure(self, name: str, label: str, shown: Callable[[Any], str], work: Callable[[], Any]) -> Any:
        """Measure one figure: *name* in the JSON, *label* in the table, where it is *shown*."""
        value = self.measure(label, work)
        self.row(label, shown(value), **{name: value})
        return value

    def show(self, as_json: bool, *, failed: bool = False) -> None:
        """Print the report; exit with status 1 if it *failed*."""
        if as_json:
            print_json(self.result)
        else:
            from rich.console import Console

            width = max(len(label) + len(text) for label, text in self._rows) + 7  # with borders and padding
            print_table(("", ""), self._rows, title=self.title, show_header=False, width=width)
            installed = ", ".join(f"{name} {version}" for name, version in self.result["versions"].items() if version)
            Console().print(f"{self.result['cpu']}; {installed}", highlight=False, soft_wrap=True)
        if failed:
            sys.exit(1)


def millions(unit: str, digits: int = 1) -> Callable[[float], str]:
    """Return a function that formats a rate in millions of *unit* per second."""
    return lambda value: f"{value / 1e6:,.{digits}f} million {unit}/s"

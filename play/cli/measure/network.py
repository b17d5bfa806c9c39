"""`reversi network`: the record in a weight file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from play.cli.options import Json
from play.cli.output import print_json, print_table


def network(
    file: Annotated[Path, Parameter(help="Weight file of a network or policy.")], /, *, as_json: Json = False
) -> None:
    """Show the record of a weight file: game, architecture and training.

    Example: reversi network models/weights/8x8-normal-bfc3ad5730fb.safetensors

    The table leaves out nested lists; --json prints the whole header.
    """
    from models.files import read_file

    header, tensors = read_file(file)
    header = {"file": str(file), **header, "parameters": sum(tensor.size for tensor in tensors.values())}
    if as_json:
        print_json(header)
        return
    record = header.pop("record")
    print_table(["", file.name], [*_rows(header), *_rows(record)], words=2)
    for name, entries in record.items():
        if isinstance(entries, list) and entries and all(isinstance(entry, dict) for entry in entries):
            columns = [column for column in entries[-1] if not isinstance(entries[-1][column], (dict, list))]
            rows = ([entry.get(column, "") for column in columns] for entry in entries)
            print_table(columns, rows, title=name, words=0, gap=2)


def _rows(entries: dict[str, Any], prefix: str = "") -> Iterator[list[Any]]:
    """Yield one row per single value; entries of an object are prefixed with its name."""
    for name, value in entries.items():
        if isinstance(value, dict):
            yield from _rows(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield [f"{prefix}{name}", f"{value:.6g}" if isinstance(value, float) else value]

"""`reversi book`: opening books, built by search, shown and checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.cli.analysis.analyse import AnalyseCommand
from play.cli.clusters import ClusterCommand, RayAddress, Workers, chosen_executor
from play.cli.job_options import given, options_from
from play.cli.options import Json, StartSize, VariantName
from play.cli.output import ends_at_ctrl_c, print_json, print_table, progress_bar
from play.cli.usage import Application

if TYPE_CHECKING:
    from reversi_env import Position, Rules
    from search.book import Book
    from train.book.checking import Checked

app = Application(no_args_is_help=True, rich_markup_mode="rich")

BookFile = Annotated[
    Path | None, typer.Option("--book", help="The file of a book; by default the package's own of the game.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="File for the book.")]


@app.callback()
def book() -> None:
    """Books of openings, made by our own engine."""


@app.command(cls=ClusterCommand)
@options_from("train.book.options:BookOptions")
def build(
    context: typer.Context,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder for the build; made if it is not there.")],
    workers: Workers = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Build a book: search leaf after leaf, best first, and take the values back to the start.

    Example: reversi book build runs/book --positions 75000

    Next comes the leaf to which the fewest moves lead, each disc that was
    given away on the way counting as --loss-plies more. All its moves are
    searched, and those within --margin of the best stay in the book. Every
    core searches; with --ray all machines of a cluster.

    Run the same command again to go on after Ctrl-C or a crash, or with more
    --positions to let it grow: the book comes out the same, on any number of
    workers. It is in OUT/book.safetensors; agents play by it with
    [b]network:time=1,book=OUT/book.safetensors[/b].
    """
    from train.book.building import BOOK, build
    from train.book.options import BookOptions

    options, began = BookOptions(**given(context)), perf_counter()
    stopped = "reversi: stopped; the same command goes on"
    with ends_at_ctrl_c(stopped), chosen_executor(ray, workers) as executor, progress_bar() as show:
        made = build(options, out, executor=executor, progress=show)
    told = {"file": str(Path(out) / BOOK), **_about(made), "seconds": perf_counter() - began}
    if as_json:
        print_json(told)
    else:
        print(f"{told['file']}: {_described(made)}, in {told['seconds']:.1f} s")


@app.command(cls=AnalyseCommand)
def show(
    game: Annotated[str, typer.Argument(help="Moves such as [b]f5d6c3[/b], a board, or a file with a game.")] = "start",
    file: BookFile = None,
    wthor: Annotated[
        Path | None,
        typer.Option("--wthor", metavar="FOLDER", help="Count the moves of these recorded games beside it."),
    ] = None,
    size: StartSize = None,
    variant: VariantName = "normal",
    as_json: Json = False,
) -> None:
    """Show how the moves of a position stand in a book, and in recorded games.

    Examples: reversi book show f5d6c3 --book runs/book/book.safetensors

              reversi book show f5 --wthor wthor

    Values are discs for the side to move. Plays: whether agents play the move,
    which may lose a sixth of the margin, and all of it by the deeper search of
    a check. Lines: ways to go on to where the book ends. Of recorded games: how
    many went on with a move, the share of points and the mean score of who
    played it.
    """
    from play.cli.positions import typed_position
    from reversi_env.openings import opening_name
    from train.book.games import GameTree

    position = typed_position(game, None, variant, size)
    found = _book(file, position.rules, needed=wthor is None)
    played = {} if wthor is None else GameTree(wthor).moves(position)
    rows = _rows(position, found, played)
    if as_json:
        here = found and found.find(position)
        value = {"value": here.value, "lines": here.lines} if here else {"value": None, "lines": 0}
        print_json({"book": _about(found) if found else None, **value, "moves": rows})
        return
    if found is not None:
        print(_described(found))
    if name := opening_name(position):
        print(f"opening: {name}")
    if not rows:
        print("no move of this position is in it")
        return
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    print_table(columns, ([_cell(name, row[name]) for name in columns] for row in rows), words=2)


@app.command(cls=ClusterCommand)
@options_from("train.book.options:CheckOptions")
def check(
    context: typer.Context,
    file: BookFile = None,
    all_positions: Annotated[bool, typer.Option("--all", help="All positions, instead of some.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the check, and the book that follows from it.")
    ] = None,
    workers: Workers = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Search the moves that a book plays deeper than the book did, and say what they lose.

    Examples: reversi book check --positions 300

              reversi book check --all --out runs/check

    Positions are drawn by lot among those with moves in the book, and searched,
    as are those that it plays to. A move loses what it is worse than the best
    of all legal moves, in discs; what is beyond the book's margin is listed.

    OUT/book.safetensors is the book with what was found, in place of what an
    earlier check did: it does not play the moves that are listed. Run the same
    command again to go on after Ctrl-C or a crash.
    """
    from reversi_env import Rules
    from train.book.checking import check, judged
    from train.book.options import CheckOptions

    options = CheckOptions(**given(context))
    book = _book(file, Rules(options.size, options.variant))
    assert book is not None
    if all_positions:
        options = replace(options, positions=len(book))
    stopped = "reversi: stopped" if out is None else "reversi: stopped; the same command goes on"
    with ends_at_ctrl_c(stopped), chosen_executor(ray, workers) as executor, progress_bar() as show:
        found = judged(check(book, options, out, executor=executor, progress=show))
    beyond = [move for move in found if move.found > book.margin]
    told = {
        "moves": len(found),
        "margin": book.margin,
        "beyond": len(beyond),
        "worst": max((move.found for move in found), default=0.0),
        "played": sum(_plays(book, move) for move in beyond),
    }
    if as_json:
        print_json(told | {"found": [move._asdict() for move in beyond]})
        return
    from reversi_env.errors import count_noun

    print(_described(book))
    deep = count_noun(options.depth, "ply", "plies")
    print(
        f"{count_noun(len(found), 'move')} that it plays by its own values, searched {deep} deep: {len(beyond)} lose more"
        f" than {book.margin:g} discs, the worst {told['worst']:.1f}; it plays {told['played']} of these"
    )
    for move in beyond:
        print(f"  {move.board} {move.move}: {move.found:.1f}, by the book {move.loss:.1f}")


def _plays(book: Book, checked: Checked) -> bool:
    """Whether a book plays a move that was checked."""
    from reversi_env import Position

    position = Position.from_text(checked.board, rules=book.rules)
    return any(move.move == checked.move and move.plays for move in book.moves(position))


def _book(file: Path | None, rules: Rules, *, needed: bool = True) -> Book | None:
    """The book that is asked for; None where the package has none of the game and none is *needed*."""
    from search.book import PACKAGED, book_for, packaged_book

    if file is None and not needed:
        return packaged_book(rules)
    return book_for(PACKAGED if file is None else str(file), rules)


def _rows(position: Position, book: Book | None, played: dict[str, Any]) -> list[dict[str, Any]]:
    """The moves of a position that a book or games know, the book's first; what is not known is None."""
    from reversi_env.openings import opening_name

    known = {} if book is None else {move.move: move for move in book.moves(position)}
    rows = []
    for name in dict.fromkeys((*known, *played)):
        move, games = known.get(name), played.get(name)
        rows.append(
            {
                "move": name,
                "opening": opening_name(position.play(name)),
                "value": move and move.value,
                "plays": move and ("yes" if move.plays else "no"),
                "lines": move and move.lines,
                "games": games and games.games,
                "points": games and games.points,
                "score": games and games.score,
            }
        )
    return rows


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    shapes = {"value": "+.2f", "lines": ",d", "games": ",d", "points": ".1%", "score": "+.1f"}
    return format(value, shapes[column]) if column in shapes else str(value)


def _about(book: Book) -> dict[str, Any]:
    return {"positions": len(book), "margin": book.margin, "about": dict(book.about)}


def _described(book: Book) -> str:
    """A book in words."""
    from reversi_env.errors import count_noun

    depth = f", searched {count_noun(book.about['depth'], 'ply', 'plies')} deep" if "depth" in book.about else ""
    if "check" in book.about:
        depth += f" and checked {book.about['check']['depth']}"
    game = f"{book.rules.size}x{book.rules.size} {book.rules.variant}"
    return f"{game}, {count_noun(len(book), 'position')}, moves within {book.margin:g} discs of the best{depth}"

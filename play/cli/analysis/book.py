"""`reversi book`: opening books, built by search, shown and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, ProcessCount, RayAddress, chosen_executor, flag, options_of, text
from play.cli.output import exit_on_interrupt, print_json, print_table, progress_bar
from play.cli.positions import DEFAULT, PositionChoice, PositionText, read_problems
from train.book.options import BookOptions, CheckOptions, SolvedBookOptions

if TYPE_CHECKING:
    from reversi_env import Position, Rules
    from search.agents.book import Book
    from train.book.check import CheckedMove
    from train.book.recorded import GameTree

BookFile = Annotated[Path | None, text("Book file (default: the packaged book of the game).", "--book", metavar="FILE")]
BuildChoice: Any = options_of(BookOptions)
CheckChoice: Any = options_of(CheckOptions)
SolvedChoice: Any = options_of(SolvedBookOptions)
OutFolder = Annotated[str, Parameter(help="Output folder; created if missing.")]


def build(
    out: OutFolder,
    /,
    *,
    chosen: BuildChoice = NOTHING,
    workers: ProcessCount = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Build an opening book by searches of its positions.

    Example: reversi book build runs/book --positions 75000

    The next position to extend is the one with the lowest cost: the number of
    moves to it, plus --loss-plies for every disc lost on the way (best-first).
    All its moves are searched, and those within --margin of the best stay in
    the book. Values are backed up by negamax. Every core searches; with --ray
    all machines of a cluster.

    Run the same command again to resume after Ctrl-C or a crash, or with more
    --positions to extend the book: it is the same on any number of workers.
    It is in OUT/book.safetensors; agents use it with
    network:time=1,book=OUT/book.safetensors.
    """
    from train.book.build import build

    _build(build, BookOptions(**chosen), out, workers, ray, as_json)


def solve(
    out: OutFolder,
    /,
    *,
    chosen: SolvedChoice = NOTHING,
    workers: ProcessCount = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Build a book of all positions up to a ply with their exact scores, on 4x4 or 6x6.

    Example: reversi book solve runs/solved --plies 5 --workers 2

    The positions of the last ply are solved, up to symmetry; all other scores
    follow from them. On 6x6 ply 5 has 314 positions, ply 6 1,632 and ply 7
    9,069; each takes seconds. Every core works; with --ray all machines of a
    cluster.

    Run the same command again to resume after Ctrl-C or a crash, or with more
    --plies or another --start. The book is in OUT/book.safetensors.
    """
    from train.book.solved import solve_book

    _build(solve_book, SolvedBookOptions(**chosen), out, workers, ray, as_json)


def _build(
    run: Callable[..., Book], options: Any, out: str, workers: int | None, ray: str | None, as_json: bool
) -> None:
    """Build a book, or resume, and print its size and time."""
    from train.book.build import BOOK

    began, stopped = perf_counter(), "reversi: stopped; run the same command again to resume"
    with exit_on_interrupt(stopped), chosen_executor(ray, workers) as executor, progress_bar() as show:
        book = run(options, out, executor=executor, progress=show)
    report = {"file": str(Path(out) / BOOK), **_about(book), "seconds": perf_counter() - began}
    if as_json:
        print_json(report)
    else:
        print(f"{report['file']}: {_described(book)}, in {report['seconds']:.1f} s")


def show(
    position: PositionText = "start",
    /,
    *,
    file: BookFile = None,
    wthor: Annotated[Path | None, text("Folder with recorded games (WTHOR files) to count.", metavar="DIR")] = None,
    where: PositionChoice = DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the book moves of a position and their frequency in recorded games.

    Examples: reversi book show f5d6c3 --book runs/book/book.safetensors

              reversi book show f5 --wthor wthor

    Values are in discs for the side to move. plays: whether agents play the
    move. It may lose a sixth of the book's margin by the book's values, and the
    whole margin by the values of a check. lines: number of continuations to the
    end of the book. With --wthor: how many recorded games continued with a move,
    its share of points and its mean score.
    """
    from train.book.recorded import GameTree

    tree = None if wthor is None else GameTree(wthor)
    for line, problem in read_problems(position, where, as_json=as_json):
        _show(line, problem.position, _book(file, problem.position.rules, needed=tree is None), tree, as_json)


def _show(
    line: int | None, position: Position, opening_book: Book | None, tree: GameTree | None, as_json: bool
) -> None:
    from reversi_env.notation.openings import opening_name

    rows = _rows(position, opening_book, {} if tree is None else tree.moves(position))
    if as_json:
        entry = opening_book and opening_book.find(position)
        value = {"value": entry.value, "lines": entry.lines} if entry else {"value": None, "lines": 0}
        about = {"book": _about(opening_book) if opening_book else None} | value | {"moves": rows}
        print_json(about if line is None else {"line": line} | about)
        return
    if line is not None:
        print(f"line {line}")
    if opening_book is not None:
        print(_described(opening_book))
    if name := opening_name(position):
        print(f"opening: {name}")
    if not rows:
        print("no known moves in this position")
        return
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    print_table(columns, ([_cell(name, row[name]) for name in columns] for row in rows), words=2)


def check(
    *,
    file: BookFile = None,
    chosen: CheckChoice = NOTHING,
    all_positions: Annotated[bool, flag("Check all positions.", "--all")] = False,
    out: Annotated[Path | None, text("Folder for the check and the resulting book.", "--out", metavar="DIR")] = None,
    workers: ProcessCount = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Verify the moves of a book with a deeper search.

    Examples: reversi book check --positions 300

              reversi book check --all --out runs/check

    Samples positions with book moves and searches them and the positions after
    their book moves. A move loses its difference in discs to the best of all
    legal moves; losses beyond the book's margin are listed.

    OUT/book.safetensors is the book with these results, in place of those of
    an earlier check: it does not play the moves that are listed. Run the same
    command again to resume after Ctrl-C or a crash.
    """
    from reversi_env import Rules
    from train.book.check import check, checked_moves

    options = CheckOptions(**chosen)
    book = _book(file, Rules(options.size, options.variant))
    assert book is not None
    if all_positions:
        options = replace(options, positions=len(book))
    stopped = "reversi: stopped" if out is None else "reversi: stopped; run the same command again to resume"
    with exit_on_interrupt(stopped), chosen_executor(ray, workers) as executor, progress_bar() as show:
        verdicts = checked_moves(check(book, options, out, executor=executor, progress=show))
    beyond = [move for move in verdicts if move.found > book.margin]
    report = {
        "moves": len(verdicts),
        "margin": book.margin,
        "beyond": len(beyond),
        "worst": max((move.found for move in verdicts), default=0.0),
        "played": sum(_plays(book, move) for move in beyond),
    }
    if as_json:
        print_json(report | {"found": [move._asdict() for move in beyond]})
        return
    from reversi_env.errors import count_noun

    print(_described(book))
    deep = count_noun(options.depth, "ply", "plies")
    print(
        f"{count_noun(len(verdicts), 'move')} that the book plays by its own values, searched {deep} deep: {len(beyond)} lose"
        f" more than {book.margin:g} discs, the worst {report['worst']:.1f}; the book plays {report['played']} of these"
    )
    for move in beyond:
        print(f"  {move.board} {move.move}: {move.found:.1f}, by the values of the book {move.loss:.1f}")


def _plays(book: Book, checked: CheckedMove) -> bool:
    from reversi_env import Position

    position = Position.from_text(checked.board, rules=book.rules)
    return any(move.move == checked.move and move.plays for move in book.moves(position))


def _book(file: Path | None, rules: Rules, *, needed: bool = True) -> Book | None:
    from search.agents.book import PACKAGED, book_for, packaged_book

    if file is None and not needed:
        return packaged_book(rules)
    return book_for(PACKAGED if file is None else str(file), rules)


def _rows(position: Position, book: Book | None, played: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row per move of the book or of recorded games, those of the book first, with None for missing values."""
    from reversi_env.notation.openings import opening_name

    known = {} if book is None else {move.move: move for move in book.moves(position)}
    rows = []
    for name in dict.fromkeys((*known, *played)):
        move, games = known.get(name), played.get(name)
        plays = move and ("yes" if move.plays else "no")
        in_book = {"value": move and move.value, "plays": plays, "lines": move and move.lines}
        recorded = {column: games and getattr(games, column) for column in ("games", "points", "score")}
        rows.append({"move": name, "opening": opening_name(position.play(name)), **in_book, **recorded})
    return rows


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    shapes = {"value": "+.2f", "lines": ",d", "games": ",d", "points": ".1%", "score": "+.1f"}
    return format(value, shapes[column]) if column in shapes else str(value)


def _about(book: Book) -> dict[str, Any]:
    return {"positions": len(book), "margin": book.margin, "about": dict(book.about)}


def _described(book: Book) -> str:
    from reversi_env.errors import count_noun
    from search.agents.book import SOLVED

    depth = f", searched {count_noun(book.about['depth'], 'ply', 'plies')} deep" if "depth" in book.about else ""
    if "check" in book.about:
        depth += f" and checked {book.about['check']['depth']}"
    game = f"{book.rules.size}x{book.rules.size} {book.rules.variant}"
    if book.is_solved:
        plies = count_noun(book.about[SOLVED], "ply", "plies")
        return f"{game}, {count_noun(len(book), 'position')}, exact scores up to {plies}"
    return f"{game}, {count_noun(len(book), 'position')}, moves within {book.margin:g} discs of the best{depth}"

"""Books: lookups and values against slow references, resumed builds, checks, recorded games, agents."""

import json
from dataclasses import replace

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules
from reversi_env.batch import action_images
from reversi_env.errors import TrainError
from reversi_env.rules import BLACK
from reversi_env.storage.checksummed import pack_checksummed, unpack_checksummed
from search.agents.book import UNCHECKED, UNITS_PER_DISC, BookError, book_for, packaged_book, read_book
from search.agents.spec import make_agent
from search.engine.engine import Engine
from search.engine.limits import Limits
from tests.oracles.strategies import random_moves, wthor_file, wthor_record
from train.book.build import BOOK, LOG, build, grow
from train.book.check import all_moves, check, checked_moves
from train.book.options import BookOptions, CheckOptions
from train.book.recorded import GameTree
from train.jobs.processes import LocalExecutor

SMALL = BookOptions(size=6, evaluator="six-factor", positions=60, depth=2, margin=3.0, batch=4)
START = Position.initial(SMALL.rules)
CHECK = CheckOptions(size=6, evaluator="six-factor", positions=1000, depth=4)
COLUMNS = ("own", "opp", "value", "depth", "lines", "checked")
VARIANTS = ["normal", "reversed"]
IN_PROCESS = LocalExecutor(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("build")
    build(SMALL, path, executor=IN_PROCESS)
    return path


@pytest.fixture(scope="module")
def book(folder):
    return read_book(folder / BOOK)


def same(first, second):
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in COLUMNS)


def positions_of(book):
    return [Position(book.rules, int(own), int(opp)) for own, opp in zip(book.own, book.opp, strict=True)]


@pytest.mark.parametrize("option", ["depth=4", "wieghts=FILE"])
def test_unknown_evaluator_options_are_refused(option):
    name = option.partition("=")[0]
    for kind in (BookOptions, CheckOptions):
        with pytest.raises(TrainError, match=name):
            kind(evaluator=f"six-factor:{option}")


def test_leaves_with_only_known_children_are_not_searched():
    """On 4x4, transpositions already cover all children of some leaves; the build must not search an empty batch."""
    batch_sizes = []

    def search(own, opp, depth):
        batch_sizes.append(len(own))
        empties = 16 - np.bitwise_count(own | opp).astype(np.int64)
        return np.zeros(len(own), np.int64), np.where(empties <= 7, empties, depth)

    options = BookOptions(size=4, evaluator="six-factor", positions=10_000, depth=1, margin=64.0, loss_plies=0.0)
    tree = grow(options, search)
    assert min(batch_sizes) > 0
    assert len(tree.own) > 100


def test_lookups_equal_a_reference_under_all_symmetries(book):
    rows = {}
    for row, position in enumerate(positions_of(book)):
        for symmetry in range(8):
            image = position.transformed(symmetry)
            rows[image.own, image.opp] = (book.value[row] / UNITS_PER_DISC, int(book.depth[row]), int(book.lines[row]))
    assert len(book) >= SMALL.positions
    for own, opp in rows:
        position = Position(book.rules, own, opp)
        assert book.find(position) == rows[own, opp]
        after = {move: position.play(move) for move in position.legal_moves()}
        known = {move: rows[at.own, at.opp] for move, at in after.items() if (at.own, at.opp) in rows}
        expected = {
            (move, -value, depth, lines, rows[own, opp][0] + value <= book.margin / 6 + 1e-9)
            for move, (value, depth, lines) in known.items()
            if not rows[own, opp][1] and rows[own, opp][0] + value <= book.margin + 1e-9
        }
        assert set(book.moves(position)) == expected
        for child in after.values():
            assert (book.find(child) is None) == ((child.own, child.opp) not in rows)
    assert book.find(Position.initial()) is None


def test_values_and_lines_are_backed_up_from_the_leaves(book):
    engine, seen = Engine("six-factor", book.rules, megabytes=1), set()

    def searched(position, depth):
        engine.clear()
        return engine.search(position, Limits(depth=depth))

    def visit(position):
        entry, moves = book.find(position), book.moves(position)
        seen.add((position.canonical().own, position.canonical().opp))
        if not moves:
            last = searched(position, SMALL.depth)
            means = last.value if last.exact else (last.value + searched(position, SMALL.depth - 1).value) / 2
            assert entry.value == pytest.approx(means, abs=0.5 / UNITS_PER_DISC + 1e-9)
            assert (entry.depth, entry.lines) == (position.empties if last.exact else SMALL.depth, 1)
            return entry
        below = [visit(position.play(move.move)) for move in moves]
        assert entry.value == moves[0].value == max(-after.value for after in below)
        assert all(entry.value - move.value <= SMALL.margin + 1e-9 for move in moves)
        assert (entry.lines, entry.depth) == (sum(after.lines for after in below), 0)
        return entry

    visit(START)
    assert len(seen) == len(book)


def reference_check(book, depth):
    """Return the losses of the played moves, by book values and by searches of *depth* plies, keyed by board and move."""
    engine, values = Engine("six-factor", book.rules, megabytes=1), {}

    def value(position):
        image = position.canonical()
        if image not in values:
            engine.clear()
            first, last = (engine.search(image, Limits(depth=plies)) for plies in (depth - 1, depth))
            mean = last.value if last.exact else (first.value + last.value) / 2
            values[image] = round(mean * UNITS_PER_DISC)
        return values[image]

    played = {position: [] for position in positions_of(book) if not book.find(position).depth}
    for position, moves in played.items():
        least = book.find(position).value - book.margin / 6 - 1e-9
        moves += [move for move in book.moves(position) if move.value >= least]
    known = {*played, *(at.play(move.move).canonical() for at, moves in played.items() for move in moves)}
    losses = {}
    for position, moves in played.items():
        after = [position.play(move).canonical() for move in position.legal_moves()]
        best = max(value(position), *(-value(child) for child in after if child in known))
        for move in moves:
            loss = (best + value(position.play(move.move))) / UNITS_PER_DISC
            losses[position.to_text(), move.move] = (book.find(position).value - move.value, loss)
    return losses


def test_check_equals_a_reference_and_bars_worse_moves(book, tmp_path):
    margin = 1.2  # some moves of the six-factor formula lose far more
    narrow = replace(book, margin=margin)
    checked_book = check(narrow, CHECK, tmp_path, executor=IN_PROCESS)
    reference = reference_check(narrow, CHECK.depth)
    judged_moves = checked_moves(checked_book)
    assert {(move.board, move.move) for move in judged_moves} == reference.keys()
    for move in judged_moves:
        assert (move.loss, move.found) == pytest.approx(reference[move.board, move.move])
    worse = {key for key, (_, loss) in reference.items() if loss > margin}
    assert 0 < len(worse) < len(reference)
    again = read_book(tmp_path / BOOK)
    assert same(again, checked_book)
    assert again.about["check"]["depth"] == CHECK.depth
    for position in positions_of(again):
        for symmetry in range(8):
            image = position.transformed(symmetry)
            played = {image.play(move.move).canonical() for move in again.moves(image) if move.plays}
            expected = [move for board, move in reference.keys() - worse if board == position.to_text()]
            assert played == {position.play(move).canonical() for move in expected}
            assert (again.choose(image) is None) == (not expected)


def test_a_check_of_a_sample_resumes_to_the_same_bytes(book, tmp_path, monkeypatch):
    monkeypatch.setattr("train.book.check.BATCH", 4)
    some = replace(CHECK, positions=10, seed=3)
    whole = check(book, some, tmp_path / "whole", executor=IN_PROCESS)
    assert same(check(book, some, executor=IN_PROCESS), whole)
    (tmp_path / "cut").mkdir()
    for name in ("run.json", LOG):
        (tmp_path / "cut" / name).write_bytes((tmp_path / "whole" / name).read_bytes()[: -9 if name == LOG else None])
    check(book, some, tmp_path / "cut", executor=IN_PROCESS)
    for name in (BOOK, LOG):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    drawn = (whole.checked != UNCHECKED) & (book.depth == 0)
    assert 10 <= drawn.sum() < (book.depth == 0).sum()
    for row, position in enumerate(positions_of(book)):
        assert drawn[row] or book.moves(position) == whole.moves(position)
    with pytest.raises(TrainError, match="book"):
        check(replace(book, margin=2.0), some, tmp_path / "cut", executor=IN_PROCESS)


def test_check_command_reports_worse_and_played_moves(folder, tmp_path, monkeypatch, json_lines):
    monkeypatch.setattr("train.book.check.core_count", lambda: 0)
    path = tmp_path / "narrow.safetensors"
    path.write_bytes(replace(read_book(folder / BOOK), margin=1.2).to_bytes())
    arguments = ("book", "check", "--size", 6, "--evaluator", "six-factor", "--depth", 4, "--all", "--book")
    [result] = json_lines(*arguments, path, "--out", tmp_path / "check")
    assert result["beyond"] == result["played"] == len(result["found"]) > 0
    [again] = json_lines(*arguments, tmp_path / "check" / BOOK)
    assert again == result | {"played": 0}


@pytest.mark.parametrize("variant", VARIANTS)
def test_packaged_books_play_no_move_that_failed_the_check(variant):
    book = packaged_book(Rules(8, variant))
    judged_moves, moves = checked_moves(book), all_moves(book)
    assert len(judged_moves) == np.count_nonzero(moves.loss <= book.margin / 6 * UNITS_PER_DISC + 1e-7)
    assert book.about["check"]["depth"] >= book.about["depth"] + 6
    some = [move for number, move in enumerate(judged_moves) if number % 300 == 0 or move.found > book.margin]
    for move in some:
        position = Position.from_text(move.board, rules=book.rules)
        [plays] = [known.plays for known in book.moves(position) if known.move == move.move]
        assert plays == (move.found <= book.margin)


def test_a_build_grows_and_resumes_to_the_same_bytes(folder, tmp_path):
    build(BookOptions(**{**SMALL.as_dict(), "positions": 20}), tmp_path, executor=IN_PROCESS)
    small = read_book(tmp_path / BOOK)
    assert 20 <= len(small) < SMALL.positions
    log = tmp_path / LOG
    log.write_bytes(log.read_bytes()[:-7])
    build(SMALL, tmp_path, executor=IN_PROCESS)
    for name in (BOOK, LOG):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
    with pytest.raises(TrainError, match="margin"):
        build(BookOptions(**{**SMALL.as_dict(), "margin": 1.0}), tmp_path, executor=IN_PROCESS)
    lines = log.read_text().splitlines()
    changed = json.loads(lines[3])
    changed["value"][0] += 1
    log.write_text("\n".join([*lines[:3], json.dumps(changed), *lines[4:], ""]))
    with pytest.raises(TrainError, match="line 4 of .*searches.jsonl"):
        build(SMALL, tmp_path, executor=IN_PROCESS)


def test_damaged_missing_or_unsuitable_books_are_refused(folder, tmp_path):
    data, path = (folder / BOOK).read_bytes(), tmp_path / "broken.safetensors"
    with pytest.raises(BookError, match="broken"):
        read_book(path)
    for wrong in (data[:-1], data[:200], data[:-9] + b"\0" + data[-8:], data.replace(b"book-1", b"book-2"), b""):
        path.write_bytes(wrong)
        with pytest.raises(BookError, match="broken"):
            read_book(path)
    header, tensors = unpack_checksummed(data)
    for wrong in (
        pack_checksummed(tensors, header | {"format": "book-2"}),
        pack_checksummed(tensors | {"own": tensors["own"].astype(np.int64)}, header),
    ):
        path.write_bytes(wrong)
        with pytest.raises(BookError, match="broken"):
            read_book(path)
    with pytest.raises(BookError, match="6x6 normal"):
        book_for(str(folder / BOOK), Rules())


def steps_of(games, scores):
    """Yield for every move the canonical positions before and after it, and the result for the side that played it."""
    for game, score in zip(games, scores, strict=True):
        at = Position.initial()
        for move in game:
            before, at = at, at.play(move)
            if move != "pass":
                yield before.canonical(), at.canonical(), (2 * score - 64) * (1 if before.turn == BLACK else -1)


def reference_counts(position, steps):
    """Return the recorded moves of a position as {move: (games, points, score)}, in plain Python."""
    counts, here = {}, position.canonical()
    for move in position.legal_moves():
        after = position.play(move).canonical()
        if results := [result for *way, result in steps if way == [here, after]]:
            points = np.mean([(result > 0) + (result == 0) / 2 for result in results])
            counts[move] = (len(results), points, np.mean(results))
    return counts


def test_recorded_games_are_counted_by_move(tmp_path):
    start = Position.initial()
    games = [random_moves(start, seed, 8) for seed in range(40)] + [random_moves(start, 508)]
    names = [start.rules.name_of(action) for action in range(start.rules.pass_action + 1)]
    for symmetry in (3, 4, 7):  # the symmetries that keep the start position
        image = dict(zip(names, (names[action] for action in action_images(8)[symmetry]), strict=True))
        games += [[image[move] for move in game] for game in games[symmetry : 2 * symmetry]]
    scores = [32 if number % 9 == 0 else 7 * number % 65 for number in range(len(games))]
    records = [wthor_record(game, score) for game, score in zip(games, scores, strict=True)]
    (tmp_path / "a.wtb").write_bytes(wthor_file(*records[:25]))
    (tmp_path / "b.WTB").write_bytes(wthor_file(*records[25:]))
    tree, steps = GameTree(tmp_path, 55), list(steps_of(games, scores))
    assert len(tree) == len(games)
    line = games[40]
    passed = line.index("pass")
    here = [start.play_all(game[:plies]) for game, plies in zip(games, (0, 1, 2, 2, 3, 4, 6, 7, 8), strict=False)]
    here += [start.play_all(line[:plies]) for plies in (passed, passed + 1)]
    for position in [*here, *(here[3].transformed(symmetry) for symmetry in range(1, 8))]:
        counts, expected = tree.moves(position), reference_counts(position, steps)
        assert counts.keys() == expected.keys()
        assert all(counts[move] == pytest.approx(expected[move]) for move in expected)
        assert list(counts) == sorted(counts, key=lambda move: -counts[move].games)
    assert [bool(tree.moves(position)) for position in here[-3:]] == [False, False, True]
    late = next(at for at in (start.play_all(line[:plies]) for plies in range(len(line))) if at.empties == 5)
    assert GameTree(tmp_path).moves(late)
    assert not tree.moves(late)


def test_missing_folders_and_illegal_games_are_refused(tmp_path):
    with pytest.raises(ReversiError, match="none"):
        GameTree(tmp_path / "none")
    (tmp_path / "a.wtb").write_bytes(wthor_file(wthor_record(["f5", "d6"]), wthor_record(["f5", "f5"])))
    with pytest.raises(ReversiError, match="'a.wtb'.*game 1"):
        GameTree(tmp_path)


def test_an_agent_uses_a_book_only_if_its_spec_has_one(folder, book):
    spec, best = f"six-factor:depth=1,book={folder / BOOK}", book.moves(START)[0]
    result = make_agent(spec).search(START)
    assert (result.move, result.value, result.nodes) == (best.move, best.value, 0)
    assert result.pv[: len(book.line(START))] == book.line(START)
    assert make_agent("six-factor:depth=1").search(START).nodes > 0
    assert make_agent(spec).search(START.play_all(book.line(START))).nodes > 0
    position = next(
        at for at in positions_of(book) if sorted(move.plays for move in book.moves(at))[:3] == [False, True, True]
    )
    drawn = [make_agent(f"{spec},variety=3,seed={seed}").search(position).move for seed in range(20)]
    assert set(drawn) == {move.move for move in book.moves(position) if move.plays}  # variety does not matter
    drawn = [make_agent(f"{spec},seed={seed}").search(position).value for seed in range(3)]
    assert set(drawn) == {book.moves(position)[0].value}
    with pytest.raises(BookError, match="6x6 normal"):
        make_agent(spec).check(Rules(8))
    if packaged_book(Rules(4)) is None:
        with pytest.raises(BookError, match="4x4 normal"):
            make_agent("six-factor:book=yes").check(Rules(4))

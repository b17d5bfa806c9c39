"""The transposition table: entries come back as stored, for exactly their position, and the right ones give way."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from reversi_env import ReversiError
from search.engine.table import TranspositionTable
from search.kernels import table as core
from search.kernels.table import BYTES_PER_BUCKET, NO_MOVE, WAYS, WORDS_PER_ENTRY

bounds = st.integers(-core.LIMIT, core.LIMIT)
moves = st.integers(0, NO_MOVE)
bytes_ = st.integers(0, 255)
boards = st.integers(0, 2**64 - 1)


class OneBucket:
    """A table of eight buckets, in which all positions are made to meet in the first one."""

    def __init__(self):
        self.table = TranspositionTable(0.001)

    @property
    def entries(self):
        return self.table.words()[: WAYS * WORDS_PER_ENTRY].reshape(WAYS, WORDS_PER_ENTRY)

    def store(self, own, opp, lower=0, upper=0, move=NO_MOVE, depth=1, generation=0):
        core.store(self.table.address, 0, np.uint64(own), np.uint64(opp), lower, upper, move, depth, generation)

    def probe(self, own, opp):
        return core.probe(self.table.address, 0, np.uint64(own), np.uint64(opp))


def unpacked(data):
    parts = (core.lower_of, core.upper_of, core.move_of, core.second_move_of, core.depth_of, core._generation_of)
    return tuple(part(np.uint64(data)) for part in parts)


@given(st.tuples(bounds, bounds, moves, moves, bytes_, bytes_))
@example((-core.LIMIT, -core.LIMIT, 0, 0, 0, 0))
@example((core.LIMIT, core.LIMIT, NO_MOVE, NO_MOVE, 255, 255))
def test_all_parts_of_an_entry_survive_packing_and_no_entry_looks_like_none(parts):
    """`probe` says "none" by 0, so the data word of a stored entry must never be 0."""
    assert unpacked(core.pack(*parts)) == parts
    assert core.pack(*parts) != 0


@given(boards, boards, boards, boards, bounds, st.sampled_from([0, 9, 255]))
def test_an_entry_is_found_for_its_own_position_only(own, opp, other_own, other_opp, lower, depth):
    bucket = OneBucket()
    bucket.store(own, opp, lower, core.LIMIT, 7, depth)
    if (own, opp) != (0, 0):  # the empty board, which nobody searches, looks like an empty entry
        assert unpacked(bucket.probe(own, opp)) == (lower, core.LIMIT, 7, NO_MOVE, depth, 0)
    if (other_own, other_opp) != (own, opp):
        assert bucket.probe(other_own, other_opp) == 0
    if own != opp:
        assert bucket.probe(opp, own) == 0


data_of_one_position = st.tuples(bounds, bounds, moves, st.just(12), bytes_)


@given(boards, boards, boards, boards, data_of_one_position, data_of_one_position)
def test_words_of_two_writes_mixed_up_belong_to_no_position(own, filled, other_own, other_opp, data, other_data):
    """Of two positions, and of one: mixed by plain ``^ data``, its discs would change colour, appear or disappear."""
    own, opp = own & filled, filled & ~own
    for other in ((other_own, other_opp), (own, opp)):
        writes, torn = [OneBucket(), OneBucket()], OneBucket()
        writes[0].store(own, opp, *data)
        writes[1].store(*other, *other_data)
        whole = {tuple(write.entries[0]) for write in writes}
        difference = int(writes[0].entries[0, 2] ^ writes[1].entries[0, 2])
        near = [(mine, theirs) for mine in (own, own ^ difference) for theirs in (opp, opp ^ difference)]
        for chosen in np.ndindex(2, 2, 2):
            words = np.where(chosen, *(write.entries[0] for write in writes))
            if tuple(words) in whole or filled == 0:
                continue
            torn.entries[0] = words
            assert not any(torn.probe(*position) for position in (*near, other))


def test_bounds_of_equal_depth_are_narrowed_but_never_cross_and_moves_are_remembered():
    """Estimates of one depth may differ between searches; an entry with lower > upper would answer every question wrongly."""
    bucket = OneBucket()
    for stored, expected in (
        ((-10, 20, 11), (-10, 20, 11, NO_MOVE)),
        ((-30, 6, NO_MOVE), (-10, 6, 11, NO_MOVE)),
        ((0, 30, 13), (0, 6, 13, 11)),
        ((10, 32_000, 12), (10, 32_000, 12, 13)),
        ((-32_000, 6, NO_MOVE), (-32_000, 6, 12, 13)),
    ):
        bucket.store(1, 2, *stored, 8)
        assert unpacked(bucket.probe(1, 2))[:5] == (*expected, 8)


def test_a_deeper_result_replaces_and_a_shallower_one_does_not_before_a_new_generation():
    bucket = OneBucket()
    for stored, generation, expected in (
        ((-10, 10, 11, 8), 1, (-10, 10, 11, NO_MOVE, 8, 1)),
        ((40, 50, 12, 9), 1, (40, 50, 12, 11, 9, 1)),
        ((0, 1, 13, 7), 1, (40, 50, 12, 11, 9, 1)),
        ((0, 1, 13, 7), 2, (0, 1, 13, 12, 7, 2)),
    ):
        bucket.store(1, 2, *stored, generation)
        assert unpacked(bucket.probe(1, 2)) == expected


@pytest.mark.parametrize(
    ("stored", "left"),
    [
        # own board, depth, generation: the fourth place takes what is shallower than the other three, whatever lies there
        ([(1, 20, 1), (2, 15, 1), (3, 10, 1), (4, 5, 1)], [1, 2, 3, 4]),
        ([(1, 20, 1), (2, 15, 1), (3, 10, 1), (4, 5, 1), (5, 4, 1)], [1, 2, 3, 5]),
        ([(1, 20, 1), (2, 15, 1), (3, 10, 1), (4, 5, 1), (5, 4, 1), (6, 12, 1)], [1, 2, 5, 6]),
        # entries of earlier generations give way first, however deep
        ([(1, 60, 6), (2, 3, 7), (3, 4, 7), (4, 2, 7)], [1, 2, 3, 4]),
        ([(1, 60, 6), (2, 3, 7), (3, 4, 7), (4, 2, 7), (5, 1, 7)], [2, 3, 4, 5]),
    ],
)
def test_three_entries_are_kept_by_depth_and_generation_and_the_fourth_takes_the_rest(stored, left):
    bucket = OneBucket()
    for own, depth, generation in stored:
        bucket.store(own, 0, depth=depth, generation=generation)
    assert [own for own in range(1, 7) if bucket.probe(own, 0)] == left


def size_in_mib(table):
    return (table.bucket_mask + 1) * BYTES_PER_BUCKET / 2**20


@pytest.mark.parametrize("megabytes", [0.001, 1, 1.5, 64, 100, 1024, 4096])
def test_tables_from_small_to_four_gibibytes(megabytes):
    table = TranspositionTable(megabytes)
    size = size_in_mib(table)
    assert megabytes / 2 - 0.0002 < size <= megabytes
    assert table.address % 64 == 0  # so that no bucket lies in three lines of the cache
    stored = np.arange(1, 301 if megabytes > 100 else 4001, dtype=np.uint64)  # every page touched is memory taken
    found, highest = _store_and_probe(table.address, table.bucket_mask, stored)
    if megabytes < 1:
        assert found == WAYS * (table.bucket_mask + 1)
        assert table.words().reshape(-1, WORDS_PER_ENTRY).all(axis=0)[2]
    else:
        assert found > 0.99 * stored.size
        assert highest * 8 > 0.95 * size * 2**20


@njit
def _store_and_probe(address, bucket_mask, stored):
    """Store a position for each number, then count those found with their own data; and the highest word used."""
    highest = 0
    for own in stored:
        bucket = core.bucket_of(own, ~own, bucket_mask)
        core.store(address, bucket, own, ~own, np.int64(own), 32000, 1, 5, 1)
        highest = max(highest, bucket)
    found = 0
    for own in stored:
        data = core.probe(address, core.bucket_of(own, ~own, bucket_mask), own, ~own)
        if data:
            found += core.lower_of(data) == np.int64(own)
    return found, highest


def test_a_table_that_grows_keeps_what_it_knows(monkeypatch):
    monkeypatch.setattr("search.engine.table._FIRST_BUCKETS", 64)
    table, stored = TranspositionTable(0.4, grows=True), np.arange(1, 151, dtype=np.uint64)
    assert table.bucket_mask == 63
    _store_and_probe(table.address, table.bucket_mask, stored)
    before = sorted(_entries(table))
    assert len(before) > 130
    for entries, buckets in ((64 * WAYS, 64), (257, 128), (1100, 512), (3, 512), (math.inf, 4096)):
        table.reserve(entries)
        assert table.bucket_mask == buckets - 1
        assert sorted(_entries(table)) == before
        for own, data in ((np.uint64(own), data) for own, data in before):
            assert core.probe(table.address, core.bucket_of(own, ~own, table.bucket_mask), own, ~own) == data
        empty = table.words().reshape(-1, WAYS, WORDS_PER_ENTRY)[:, :, 2] == 0
        assert (empty[:, 1:] >= empty[:, :-1]).all()
    assert size_in_mib(table) == table.words().nbytes / 2**20
    table.clear()
    assert table.bucket_mask == 63
    assert not table.words().any()


def _entries(table):
    """(own board, data word) of every entry."""
    words = table.words().reshape(-1, WORDS_PER_ENTRY)
    kept = words[words[:, 2] != 0]
    return [(int(word ^ core._scrambled(data)), int(data)) for word, _, data in kept]


def test_an_entry_torn_by_two_threads_is_dropped_where_the_table_grows(monkeypatch):
    monkeypatch.setattr("search.engine.table._FIRST_BUCKETS", 64)
    table, stored = TranspositionTable(0.4, grows=True), np.arange(1, 61, dtype=np.uint64)
    _store_and_probe(table.address, table.bucket_mask, stored)
    first_words = table.words().reshape(-1, WORDS_PER_ENTRY)[:, 0]
    first_words[first_words != 0] ^= np.uint64(1 << 40 | 1 << 13)
    before = {data for _, data in _entries(table)}
    table.reserve(1100)
    left = _entries(table)
    assert len(left) < len(before) / 2
    assert {data for _, data in left} < before


@pytest.mark.parametrize("megabytes", [0, -1, 0.0001, float("nan"), float("inf"), 2**21, "64", None, True])
def test_bad_sizes_are_named(megabytes):
    with pytest.raises(ReversiError, match="MiB"):
        TranspositionTable(megabytes)


def thread_states_for(table, contents, threads=1):
    thread_states = np.zeros(threads, [("table", np.int64), ("bucket_mask", np.int64), ("generation", np.int64)])
    table.attach(thread_states, contents)
    return thread_states


def test_clear_forgets_everything_and_generations_are_counted_round():
    table = TranspositionTable(0.001)
    for _ in range(2):
        for _ in range(257):
            table.new_search()
        thread_states = thread_states_for(table, "notes", threads=2)
        assert (thread_states["generation"] == 1).all()
        assert (thread_states["table"] == table.address).all()
        core.store(table.address, 0, np.uint64(1), np.uint64(2), 0, 0, 0, 5, 1)
        table.clear()
        assert (table._words.any(), table.generation) == (False, 0)
    table.words()[:] = 1
    table.clear()
    assert not table.words().any()
    unused = TranspositionTable(0.001)
    unused._words[:] = 1
    unused.clear()
    assert unused._words.all()  # not touched, which would take its memory


def test_a_table_holds_one_kind_of_values_at_a_time():
    """Scores of one game, or estimates, taken for those of another would be wrong results without a sign of it."""
    table = TranspositionTable(0.001)
    for _ in range(2):
        thread_states_for(table, "apples")
    with pytest.raises(ReversiError, match=r"apples.*pears"):
        thread_states_for(table, "pears")
    table.clear()
    thread_states_for(table, "pears")

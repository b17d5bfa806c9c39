"""The transposition table: entries, torn entries, replacement, sizes and growth."""

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
    """A table of eight buckets that stores all positions in the first one."""

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
def test_packed_entry_round_trips_and_is_never_zero(parts):
    """`probe` returns 0 for "no entry", so the data word of an entry must not be 0."""
    assert unpacked(core.pack(*parts)) == parts
    assert core.pack(*parts) != 0


@given(boards, boards, boards, boards, bounds, st.sampled_from([0, 9, 255]))
def test_entry_is_found_only_for_its_own_position(own, opp, other_own, other_opp, lower, depth):
    bucket = OneBucket()
    bucket.store(own, opp, lower, core.LIMIT, 7, depth)
    if (own, opp) != (0, 0):  # the empty board is never searched and looks like an empty entry
        assert unpacked(bucket.probe(own, opp)) == (lower, core.LIMIT, 7, NO_MOVE, depth, 0)
    if (other_own, other_opp) != (own, opp):
        assert bucket.probe(other_own, other_opp) == 0
    if own != opp:
        assert bucket.probe(opp, own) == 0


data_of_one_position = st.tuples(bounds, bounds, moves, st.just(12), bytes_)


@given(boards, boards, boards, boards, data_of_one_position, data_of_one_position)
def test_torn_entry_matches_no_position(own, filled, other_own, other_opp, data, other_data):
    """Two writes of different positions or of one; with plain ``^ data`` the latter would match another board."""
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


def test_bounds_of_equal_depth_narrow_but_never_cross():
    """Estimates of one depth may differ between searches; an entry with lower > upper would be wrong for every probe."""
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


def test_shallower_result_replaces_only_in_a_new_generation():
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
    ("stored", "kept_boards"),
    [
        # (own board, depth, generation): the fourth way takes every entry that is shallower than the other three
        ([(1, 20, 1), (2, 15, 1), (3, 10, 1), (4, 5, 1)], [1, 2, 3, 4]),
        ([(1, 20, 1), (2, 15, 1), (3, 10, 1), (4, 5, 1), (5, 4, 1)], [1, 2, 3, 5]),
        ([(1, 20, 1), (2, 15, 1), (3, 10, 1), (4, 5, 1), (5, 4, 1), (6, 12, 1)], [1, 2, 5, 6]),
        # entries of earlier generations are replaced first, at any depth
        ([(1, 60, 6), (2, 3, 7), (3, 4, 7), (4, 2, 7)], [1, 2, 3, 4]),
        ([(1, 60, 6), (2, 3, 7), (3, 4, 7), (4, 2, 7), (5, 1, 7)], [2, 3, 4, 5]),
    ],
)
def test_replacement_by_depth_and_generation_with_one_free_way(stored, kept_boards):
    bucket = OneBucket()
    for own, depth, generation in stored:
        bucket.store(own, 0, depth=depth, generation=generation)
    assert [own for own in range(1, 7) if bucket.probe(own, 0)] == kept_boards


def size_in_mib(table):
    return (table.bucket_mask + 1) * BYTES_PER_BUCKET / 2**20


@pytest.mark.parametrize("megabytes", [0.001, 1, 1.5, 64, 100, 1024, 4096])
def test_table_sizes_up_to_4_gib(megabytes):
    table = TranspositionTable(megabytes)
    size = size_in_mib(table)
    assert megabytes / 2 - 0.0002 < size <= megabytes
    assert table.address % 64 == 0  # no bucket spans three cache lines
    stored = np.arange(1, 301 if megabytes > 100 else 4001, dtype=np.uint64)  # every touched page takes memory
    hits, highest = _store_and_probe(table.address, table.bucket_mask, stored)
    if megabytes < 1:
        assert hits == WAYS * (table.bucket_mask + 1)
        assert table.words().reshape(-1, WORDS_PER_ENTRY).all(axis=0)[2]
    else:
        assert hits > 0.99 * stored.size
        assert highest * 8 > 0.95 * size * 2**20


@njit
def _store_and_probe(address, bucket_mask, stored):
    """Store a position per number; return how many are found with their own data, and the highest bucket."""
    highest = 0
    for own in stored:
        bucket = core.bucket_of(own, ~own, bucket_mask)
        core.store(address, bucket, own, ~own, np.int64(own), 32000, 1, 5, 1)
        highest = max(highest, bucket)
    hits = 0
    for own in stored:
        data = core.probe(address, core.bucket_of(own, ~own, bucket_mask), own, ~own)
        if data:
            hits += core.lower_of(data) == np.int64(own)
    return hits, highest


def test_growing_table_keeps_its_entries(monkeypatch):
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
    """Return (own board, data word) of every entry."""
    words = table.words().reshape(-1, WORDS_PER_ENTRY)
    kept = words[words[:, 2] != 0]
    return [(int(word ^ core._scrambled(data)), int(data)) for word, _, data in kept]


def test_growing_table_drops_torn_entries(monkeypatch):
    monkeypatch.setattr("search.engine.table._FIRST_BUCKETS", 64)
    table, stored = TranspositionTable(0.4, grows=True), np.arange(1, 61, dtype=np.uint64)
    _store_and_probe(table.address, table.bucket_mask, stored)
    first_words = table.words().reshape(-1, WORDS_PER_ENTRY)[:, 0]
    first_words[first_words != 0] ^= np.uint64(1 << 40 | 1 << 13)
    before = {data for _, data in _entries(table)}
    table.reserve(1100)
    remaining = _entries(table)
    assert len(remaining) < len(before) / 2
    assert {data for _, data in remaining} < before


@pytest.mark.parametrize("megabytes", [0, -1, 0.0001, float("nan"), float("inf"), 2**21, "64", None, True])
def test_invalid_size_is_rejected(megabytes):
    with pytest.raises(ReversiError, match="MiB"):
        TranspositionTable(megabytes)


def thread_states_for(table, contents, threads=1):
    thread_states = np.zeros(threads, [("table", np.int64), ("bucket_mask", np.int64), ("generation", np.int64)])
    table.attach(thread_states, contents)
    return thread_states


def test_clear_empties_table_and_generations_wrap_around():
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
    assert unused._words.all()  # `clear` does not touch an unused table, which would take memory


def test_table_has_one_kind_of_values_at_a_time():
    """Values of another kind or game would be wrong without any error."""
    table = TranspositionTable(0.001)
    for _ in range(2):
        thread_states_for(table, "apples")
    with pytest.raises(ReversiError, match=r"apples.*pears"):
        thread_states_for(table, "pears")
    table.clear()
    thread_states_for(table, "pears")

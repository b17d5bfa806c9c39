"""Streams of tokens, their sources, files and labels, against games on a plain matrix."""

from importlib.util import find_spec
from itertools import islice

import numpy as np
import pytest
import torch
from numba import njit

from reversi_env import Position, Rules
from reversi_env.errors import TrainError
from reversi_env.notation import Game, read_transcript, write_ggf
from search import evaluators
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.solver import solve_all_moves
from tests.oracles import rules as slow
from tests.oracles import sequences as oracle
from tests.oracles.cuda import NUMBA_SIMULATES
from tests.oracles.processes import output_of
from train.sequences.labels import label_games
from train.sequences.options import StreamOptions, TokenOptions
from train.sequences.streams import GameStream, read_tokens, write_tokens

NAMES = "board", "relative", "legal", "flipped", "mobility", "parity", "to_move"
TOKEN_OPTIONS = [{}, {"passes": True, "bos": True, "variant": "both"}]


def first_batch(games, split="train", **options):
    return GameStream(StreamOptions(**options), games, split=split).batch(0)


def assert_true(tokens, options, **how):
    """Games are legal and complete, and all labels are those of the oracle; legal tokens are as many as legal moves."""
    labels = label_games(tokens, options, [*NAMES, "legal_tokens"])
    for name, expected in oracle.label_rows(tokens.numpy(), options.size, options.vocabulary, **how).items():
        assert np.array_equal(labels[name].numpy(), expected), name
    first, legal = max(1, len(options.vocabulary.special_tokens("normal"))), labels["legal_tokens"]
    following = tokens[:, first:]
    assert legal[:, first - 1 : -1].gather(2, following[..., None].long()).squeeze(2)[following != 0].all()
    assert torch.equal(legal.sum(2), labels["mobility"].clamp(min=1) * (labels["to_move"] != 0))


@pytest.mark.parametrize("options", TOKEN_OPTIONS)
@pytest.mark.parametrize(("size", "games"), [(4, 50), (6, 10), (8, 4)])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_games_and_labels_are_those_of_an_independent_tokeniser(size, games, options, split):
    options = StreamOptions(size, seed=size, **options)
    tokens = GameStream(options, games, split=split).batch(1)
    assert (tokens.dtype, tuple(tokens.shape)) == (torch.uint8, (games, options.vocabulary.length))
    assert_true(tokens, options)
    if options.bos:
        normal = size**2 - 4 + 3
        assert set(map(tuple, tokens[:, :2].tolist())) == {(normal - 1, normal), (normal - 1, normal + 1)}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 6, 8])
@pytest.mark.parametrize("options", [{}, {"variant": "reversed"}, TOKEN_OPTIONS[1]])
def test_a_hundred_thousand_games(monkeypatch, size, options):
    for name in ("turned_by", "legal_squares", "after_move", "start_board"):
        monkeypatch.setattr(slow, name, njit(getattr(slow, name)))
    options, compiled = StreamOptions(size, **options), njit(oracle.label_row)
    for tokens in islice(GameStream(options, 1000), 100):
        assert_true(tokens, options, label_row=compiled)


@pytest.mark.parametrize(("size", "prefix"), [(4, 4), (6, 4), (8, 4), (8, 8)])
def test_splits_share_no_beginning_whatever_seed_and_variant(size, prefix):
    seen = {}
    for split, seed, variant in (("train", 1, "normal"), ("validation", 2, "reversed"), ("validation", 1, "normal")):
        tokens = first_batch(400, split=split, size=size, seed=seed, variant=variant, prefix=prefix)
        seen.setdefault(split, set()).update(map(tuple, tokens[:, :prefix].tolist()))
    assert all(len(beginnings) > 3 for beginnings in seen.values())
    assert not seen["train"] & seen["validation"]


def test_moves_are_uniform_and_depend_on_seed_and_batch():
    stream = GameStream(StreamOptions(seed=5), 20_000)
    tokens = stream.batch(0)
    counts = np.unique(tokens[:, :2].numpy().astype(int) @ [100, 1], return_counts=True)[1]
    assert len(counts) == 12
    assert abs(counts - 20_000 / 12).max() < 250  # six standard deviations; beginnings in the other split are few
    assert not any(torch.equal(tokens, other) for other in (stream.batch(1), first_batch(20_000, seed=6)))


@pytest.mark.parametrize("source", ["random", "six-factor:depth=1+random@2", "random:seed=3"])
def test_a_stream_resumes_with_the_batch_that_would_have_come(source):
    stream, later = (GameStream(StreamOptions(4, "both", source, prefix=4, seed=3), 5) for _ in range(2))
    batches, later.state = list(islice(stream, 4)), 2
    for others in (islice(later, 2), stream.batches(range(2, 4))):
        assert all(torch.equal(one, other) for one, other in zip(batches[2:], others, strict=True))
    assert not list(stream.batches(range(4, 4)))


@pytest.mark.parametrize("source", ["six-factor:depth=1", "random+six-factor:depth=2@1.5", "random:seed=3"])
@pytest.mark.parametrize(("split", "passes"), [("train", True), ("validation", True), ("train", False)])
def test_agents_play_legal_games_after_the_beginning_of_their_split(source, split, passes):
    options = {"size": 4, "prefix": 4, "passes": passes, "seed": 1}
    tokens, random = (first_batch(30, split=split, source=one, **options) for one in (source, "random"))
    oracle.label_rows(tokens.numpy(), 4, StreamOptions(**options).vocabulary)
    assert torch.equal(tokens[:, :4], random[:, :4])
    assert not torch.equal(tokens, random)


def test_temperature_and_pools_change_the_moves():
    sources = "six-factor:depth=1", "greedy", "six-factor:depth=1@50", "six-factor:depth=1+greedy"
    one, other, hot, both = (first_batch(30, size=6, source=source) for source in sources)
    assert not any(torch.equal(*pair) for pair in ((one, hot), (both, one), (both, other)))


def test_recorded_games_come_once_per_epoch(tmp_path):
    start, file = Position.initial(), tmp_path / "games.ggf"
    options = {"passes": True, "source": str(file)}
    vocabulary, played = StreamOptions(passes=True).vocabulary, first_batch(12, passes=True, seed=5)
    names = [[Rules().name_of(action) for action in vocabulary.decode(row)] for row in played.tolist()]
    file.write_text("\n".join(write_ggf(Game(start, tuple(moves))) for moves in names))
    stream = GameStream(StreamOptions(**options), 12)
    assert sorted(stream.batch(0).tolist()) == sorted(stream.batch(1).tolist()) == sorted(played.tolist())
    with pytest.raises(TrainError, match="no games of this split"):
        first_batch(12, split="validation", **options)
    file.write_text(write_ggf(read_transcript("f5d6", start)))
    assert first_batch(3, prefix=4, **options).tolist()[0][:3] == [*vocabulary.encode([37, 43]).tolist(), 0]


def test_agents_need_a_move_after_the_beginning():
    with pytest.raises(TrainError, match="prefix=12: agents play after"):
        GameStream(StreamOptions(4, source="greedy"), 2)


@pytest.mark.parametrize("source", ["nobody", "random:seed=1@2", "six-factor@x"])
def test_what_is_no_source_is_an_error(source):
    with pytest.raises(TrainError, match="source="):
        GameStream(StreamOptions(source=source), 2)


def test_labels_end_at_an_illegal_token():
    options, tokens = StreamOptions(), first_batch(3, seed=1)
    before = label_games(tokens, options, NAMES)
    for wrong in (200, int(tokens[0, 3])):  # no token, and an occupied square
        tokens[0, 7] = wrong
        labels = label_games(tokens, options, NAMES)
        for name in NAMES:
            assert torch.equal(labels[name][0, :7], before[name][0, :7])
            assert not labels[name][0, 7:].any()
            assert torch.equal(labels[name][1:], before[name][1:])
    with pytest.raises(TrainError, match="'nothing'"):
        label_games(tokens, options, ["nothing"])


def test_stable_discs():
    labels = label_games(first_batch(3, size=6, seed=2), StreamOptions(6), ["board", "stable"])
    for board, stable in zip(*(label.reshape(-1, 6, 6).numpy() for label in labels.values()), strict=True):
        expected = slow.stable_squares(board) | slow.stable_squares(-board)
        assert {*map(tuple, np.argwhere(stable).tolist())} == expected


@pytest.mark.parametrize(("size", "empties"), [(4, 12), (6, 7), (8, 6)])
def test_values_are_those_of_solver_and_search(size, empties):
    options = StreamOptions(size, "both", seed=4)
    tokens = GameStream(options, 4).batch(0)
    values, searched = (label_games(tokens, options, ["values"], empties=empties, depth=d)["values"] for d in (0, 2))
    if size == 6:  # the solved book has the value of every early move
        assert [values[0, place].nan_to_num(-99).max() for place in (0, 1)] == [-4, 4]
    for row, labels, game in zip(tokens.tolist(), values, options.rules * 2, strict=True):
        position = Position.initial(game)
        for place, action in enumerate(options.vocabulary.decode(row), 1):
            position = position.play(action)
            position = position.play("pass") if position.must_pass() else position
            if position.empties <= empties:
                expected = torch.full((size**2,), torch.nan)
                for move, value in [] if position.is_over() else solve_all_moves(position).items():
                    expected[game.action_from_name(move)] = value
                assert torch.equal(labels[place].nan_to_num(99), expected.nan_to_num(99))
    solved = ~values.isnan()
    assert torch.equal(values[solved], searched[solved])
    legal = label_games(tokens, options, ["legal", "to_move"])
    assert torch.equal(~searched.isnan(), legal["legal"] & (legal["to_move"] != 0)[..., None])
    if size == 4:  # searches to the end are exact, also over passes
        searched = label_games(tokens, options, ["values"], empties=0, depth=12)["values"]
        assert torch.equal(values.nan_to_num(99), searched.nan_to_num(99))
    if size == 8:
        position = Position.initial().play(options.vocabulary.decode(tokens[0].tolist())[0])
        engine = Engine(evaluators.get_evaluator("network"), position.rules)
        for move in position.legal_moves():
            value = -engine.search(position.play(move), Limits(depth=2)).value
            assert searched[0, 1, position.rules.action_from_name(move)].item() == pytest.approx(value, abs=1e-3)


def test_files_have_the_games_of_the_stream_resume_and_notice_a_flipped_bit(tmp_path, reversi):
    small = {"size": 4, "games": 25, "shard_games": 10, "variant": "both", "seed": 7}
    options, folder, shard = TokenOptions(**small), tmp_path / "games", tmp_path / "games" / "shard-00000.parquet"
    write_tokens(options, folder)
    assert np.array_equal(read_tokens(folder), GameStream(options, 25).batch(0).numpy())
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(files) == 4
    shard.unlink()
    command = "tokens", folder, *(f"--{name.replace('_', '-')}={value}" for name, value in small.items())
    assert reversi(*command)[0] == 0
    assert files == {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(TrainError, match="seed"):
        write_tokens(TokenOptions(**small | {"seed": 8}), folder)
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data)
    with pytest.raises(TrainError, match="shard-00000.parquet' is damaged"):
        read_tokens(folder)
    assert reversi(*command)[0] != 0


GPU = """
import torch
from tests.oracles.cuda import numba_device
from train.sequences.options import StreamOptions
from train.sequences.streams import GameStream

numba_device()
for options in (dict(size=4, variant="both"), dict(size=6, passes=True, bos=True), dict(size=8)):
    options = StreamOptions(seed=2**31 - 1, **options)
    for split in ("train", "validation"):
        tokens, cpu = (GameStream(options, 9, device=one, split=split).batch(2) for one in ("cuda", "cpu"))
        assert torch.equal(tokens.cpu(), cpu)
        print(options.size, split, int(tokens.sum()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")
def test_a_gpu_plays_the_same_games():
    assert len(output_of(GPU, **NUMBA_SIMULATES)) == 6

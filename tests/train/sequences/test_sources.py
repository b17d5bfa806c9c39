"""Sources of games other than random play, and datasets of tokens."""

import json

import numpy as np
import pytest
import torch

from models.gpt.tokens import Vocabulary
from reversi_env import Rules
from reversi_env.errors import TrainError
from reversi_env.notation import Game, read_transcript, write_ggf
from reversi_env.position import Position
from tests.oracles.sequences import label_rows
from train.sequences.files import read_tokens, write_tokens
from train.sequences.options import TokenOptions
from train.sequences.streams import GameStream

SMALL = TokenOptions(size=4, games=25, shard_games=10, variant="both", rules=True, seed=7)


def stream(source, size=4, games=30, **options):
    return GameStream(Rules(size), Vocabulary(size, passes=True), games, seed=1, source=source, **options)


@pytest.mark.parametrize("source", ["six-factor:depth=1", "random+six-factor:depth=2@1.5", "random:seed=3"])
def test_agents_play_legal_games_after_the_beginning_of_their_split(source):
    for split in ("train", "validation"):
        tokens = stream(source, split=split, prefix=4).batch(3)
        label_rows(tokens.numpy(), 4, Vocabulary(4, passes=True))
        random = stream("random", split=split, prefix=4).batch(3)
        assert torch.equal(tokens[:, :4], random[:, :4])
        assert not torch.equal(tokens, random)


def test_temperature_and_pools_change_the_moves():
    one, other, hot = (
        stream(source, 6).batch(0) for source in ("six-factor:depth=1", "greedy", "six-factor:depth=1@50")
    )
    both = stream("six-factor:depth=1+greedy", 6).batch(0)
    assert not torch.equal(one, hot)
    assert not any(torch.equal(both, alone) for alone in (one, other))


def test_recorded_games_come_once_per_epoch_in_another_order(tmp_path):
    vocabulary, start = Vocabulary(passes=True), Position.initial()
    played = GameStream(Rules(), vocabulary, 12, seed=5, source="random").batch(0)
    names = [[Rules().name_of(action) for action in vocabulary.decode(row)] for row in played.tolist()]
    file = tmp_path / "games.ggf"
    file.write_text("\n".join(write_ggf(Game(start, tuple(moves))) for moves in names))
    batches = [stream(str(file), 8, 12).batch(number) for number in (0, 1)]
    for batch in batches:
        assert sorted(batch.tolist()) == sorted(played.tolist())
    assert not torch.equal(*batches)
    with pytest.raises(TrainError, match="0 recorded games"):
        stream(str(file), 8, split="validation").batch(0)
    file.write_text(write_ggf(read_transcript("f5d6", start)))
    assert stream(str(file), 8, 3, prefix=4).batch(0).tolist()[0][:3] == [*vocabulary.encode([37, 43]).tolist(), 0]


def test_files_have_the_games_of_the_stream_and_resume(tmp_path):
    write_tokens(SMALL, tmp_path / "whole")
    expected = GameStream([Rules(4), Rules(4, "reversed")], Vocabulary(4, rules=True), 25, seed=7).batch(0)
    assert np.array_equal(read_tokens(tmp_path / "whole"), expected.numpy())
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert len(files) == 4

    def stop(games):
        if games > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tokens(SMALL, tmp_path / "part", progress=stop)
    (tmp_path / "part" / "shard-00000.parquet").unlink()
    write_tokens(SMALL, tmp_path / "part")
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "part").iterdir()}
    with pytest.raises(TrainError, match="seed"):
        write_tokens(TokenOptions(**{**SMALL.as_dict(), "seed": 8}), tmp_path / "part")


def test_a_flipped_bit_is_refused(tmp_path):
    write_tokens(SMALL, tmp_path)
    shard, manifest = tmp_path / "shard-00001.parquet", tmp_path / "manifest.json"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data)
    for use in (read_tokens, lambda folder: write_tokens(SMALL, folder)):
        with pytest.raises(TrainError, match="shard-00001.parquet' is damaged"):
            use(tmp_path)
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"shards": [1]}))
    with pytest.raises(TrainError, match="manifest"):
        read_tokens(tmp_path)


def test_the_command(reversi, tmp_path):
    status, out, _ = reversi("tokens", tmp_path / "out", "--games", "30", "--size", "6", "--json")
    assert status == 0
    assert json.loads(out)["shards"] == 1
    assert read_tokens(tmp_path / "out").shape == (30, 32)

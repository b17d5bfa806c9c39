"""Datasets of tokens."""

import numpy as np
import pytest

from reversi_env.errors import TrainError
from train.sequences.files import read_tokens, write_tokens
from train.sequences.options import TokenOptions
from train.sequences.streams import GameStream

SMALL = {"size": 4, "games": 25, "shard_games": 10, "variant": "both", "seed": 7}


def test_files_have_the_games_of_the_stream_and_resume(tmp_path):
    options = TokenOptions(**SMALL)
    write_tokens(options, tmp_path / "whole")
    assert np.array_equal(read_tokens(tmp_path / "whole"), GameStream(options, 25).batch(0).numpy())
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert len(files) == 4

    def stop(games):
        if games > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tokens(options, tmp_path / "part", progress=stop)
    (tmp_path / "part" / "shard-00000.parquet").unlink()
    write_tokens(options, tmp_path / "part")
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "part").iterdir()}
    with pytest.raises(TrainError, match="seed"):
        write_tokens(TokenOptions(**SMALL | {"seed": 8}), tmp_path / "part")


def test_a_flipped_bit_is_refused(tmp_path, reversi):
    assert reversi("tokens", tmp_path, "--games", "30", "--size", "6", "--shard-games", "20")[0] == 0
    assert read_tokens(tmp_path).shape == (30, 32)
    shard = tmp_path / "shard-00001.parquet"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data)
    with pytest.raises(TrainError, match="shard-00001.parquet' is damaged"):
        read_tokens(tmp_path)
    assert reversi("tokens", tmp_path, "--games", "30", "--size", "6", "--shard-games", "20")[0] != 0

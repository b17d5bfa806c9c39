"""Random games on a GPU: one thread per game, which runs the CPU's own functions (`train.kernels.sequences`)."""

import numpy as np

from reversi_env.errors import extra_libraries
from reversi_env.gpu.driver import SIMULATED, cuda, launch, shared_array
from reversi_env.gpu.episodes import usable_device
from train.kernels import sequences
from train.kernels.sequences import MAX_MOVES, random_game

with extra_libraries():
    import torch

#: Threads of a block; a simulated one is a Python thread.
BLOCK = 1 if SIMULATED else 128
write_tokens = cuda.jit(device=True)(sequences.write_tokens.py_func)


@cuda.jit
def play_games(tokens, token_of_square, prefixes, own, opp, playable, seed, first, prefix, validation):
    i = cuda.grid(1)
    if i < tokens.shape[0]:
        squares = cuda.local.array(MAX_MOVES, np.uint8)
        number = first + np.uint64(i)
        random_game(squares, own, opp, playable, seed, number, MAX_MOVES, prefix, validation)
        tokens_before = prefixes[number % np.uint64(prefixes.shape[0])]
        write_tokens(squares, token_of_square, tokens_before, own, opp, playable, tokens[i])


def random_tokens(shape, tables, boards, selection, device):
    """Return what `train.kernels.sequences` makes on a CPU; *selection*: seed, first game, prefix, whether for validation."""
    device = usable_device(device)
    tokens = torch.empty(shape, dtype=torch.uint8, device=device)
    arrays = [shared_array(torch.from_numpy(table).to(device)) for table in tables]
    launch(play_games, shape[0], BLOCK, device, shared_array(tokens), *arrays, *boards, *selection)
    return tokens

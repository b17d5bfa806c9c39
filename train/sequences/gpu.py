"""Random games on a GPU: one thread per game, which runs the CPU's own function (`train.kernels.sequences`)."""

import numpy as np

from reversi_env.errors import extra_libraries
from reversi_env.gpu.driver import SIMULATED, cuda, launch, shared_array
from reversi_env.gpu.episodes import usable_device
from train.kernels.sequences import MAX_PLIES, random_game

with extra_libraries():
    import torch

#: Threads of a block; a simulated one is a Python thread.
BLOCK = 1 if SIMULATED else 128


@cuda.jit
def play_games(squares, first, own, opp, playable, seed, prefix, validation, passes):
    i = cuda.grid(1)
    if i < squares.shape[0]:
        game = cuda.local.array(MAX_PLIES, np.uint8)
        random_game(game, first + np.uint64(i), own, opp, playable, seed, prefix, validation, passes)
        for ply in range(squares.shape[1]):
            squares[i, ply] = game[ply]


def random_squares(shape, first, arguments, device):
    """Return the rows that `train.kernels.sequences.random_games` writes for the numbers from *first* on."""
    device = usable_device(device)
    squares = torch.empty(shape, dtype=torch.uint8, device=device)
    launch(play_games, shape[0], BLOCK, device, shared_array(squares), np.uint64(first), *arguments)
    return squares

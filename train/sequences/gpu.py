"""Sequences on a GPU: one thread per game, which runs the CPU's own functions (`train.kernels.sequences`)."""

import numpy as np

from reversi_env.errors import extra_libraries
from reversi_env.gpu.driver import SIMULATED, cuda, launch, shared_array
from reversi_env.gpu.episodes import usable_device
from train.kernels import sequences
from train.kernels.sequences import MAX_SQUARES, WORDS, random_game

with extra_libraries():
    import torch

#: Threads of a block; a simulated one is a Python thread.
BLOCK = 1 if SIMULATED else 128
write_tokens, replay_tokens = (
    cuda.jit(device=True)(function.py_func) for function in (sequences.write_tokens, sequences.replay_tokens)
)


@cuda.jit
def play_games(tokens, token_of_square, prefixes, own, opp, playable, seed, first, prefix, validation):
    i = cuda.grid(1)
    if i < tokens.shape[0]:
        squares = cuda.local.array(MAX_SQUARES, np.uint8)
        number = first + np.uint64(i)
        random_game(squares, own, opp, playable, seed, number, MAX_SQUARES, prefix, validation)
        write_tokens(squares, token_of_square, prefixes[number % np.uint64(prefixes.shape[0])], tokens[i])


@cuda.jit
def replay_games(tokens, square_of_token, own, opp, playable, passes, boards, to_move):
    i = cuda.grid(1)
    if i < tokens.shape[0]:
        board = cuda.local.array(WORDS, np.uint64)
        replay_tokens(tokens[i], square_of_token, own, opp, playable, passes, board, boards[i], to_move[i])


def random_tokens(shape, tables, start, first, selection, device):
    """Return the tokens of the random games from number *first* on; *tables* are those of `sequences.tokens_of_games`."""
    device = usable_device(device)
    tokens = torch.empty(shape, dtype=torch.uint8, device=device)
    arrays = [shared_array(torch.from_numpy(table).to(device)) for table in tables]
    numbers = np.uint64(selection.seed), np.uint64(first), selection.prefix, selection.validation
    launch(play_games, shape[0], BLOCK, device, shared_array(tokens), *arrays, *start, *numbers)
    return tokens


def replay(tokens, square_of_token, game, words, to_move):
    """Write what `train.kernels.sequences.replay_rows` writes, to tensors; *words* are int64 with the bits of the boards."""
    table = shared_array(torch.from_numpy(square_of_token).to(tokens.device))
    results = shared_array(words, np.uint64), shared_array(to_move)
    launch(replay_games, len(tokens), BLOCK, tokens.device, shared_array(tokens), table, *game, *results)

"""The batched tree search over pure states, in 64 games at once against random moves, with disc counts in place of a network.

Argument: simulations per move. On a GPU the same code searches thousands of games; `reversi train alphazero`
trains a network with it.
"""

import sys

import torch

from models import TreeSearch
from reversi_env import Rules, functional

simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 32
rules, games, device = Rules(6), 64, "cpu"
generator = torch.Generator(device).manual_seed(1)


def network(own, opp):
    """Return equal logits of all squares, and the difference of discs as the value for the side to move."""
    squares = torch.arange(64, device=own.device)
    count = ((own.unsqueeze(1) >> squares & 1) - (opp.unsqueeze(1) >> squares & 1)).sum(1)
    return torch.zeros(len(own), rules.square_count, device=own.device), count.float()


search = TreeSearch(network, rules, simulations, exact=6)  # the last six squares are solved
state = functional.init(games, rules, device=device)
searcher = torch.arange(games, device=device) % 2  # the searcher is black (0) in half of the games
while not functional.is_over(state).all():
    noise = torch.rand((games, rules.square_count + 1), generator=generator, device=device)
    random_actions = (functional.legal(state) * noise).argmax(1)
    best_actions = search.run(state).action
    next_state = functional.step(state, torch.where(state.turn == searcher, best_actions, random_actions))
    state = functional.where(functional.is_over(state), state, next_state)  # finished games stay as they are
score = torch.where(state.turn == searcher, 1, -1) * functional.score(state)
points = (score > 0).float().mean() + (score == 0).float().mean() / 2
print(f"{simulations} simulations per move: {points:.1%} of the points in {games} games against random moves")

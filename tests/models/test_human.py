"""The agent `human`: deterministic moves per seed, more mistakes in harder positions, and no wipe-outs."""

from functools import partial

import numpy as np
import pytest

from models.human import LEVELS, HumanAgent
from reversi_env import BLACK, WHITE, Position, Rules, batch
from reversi_env.rules import Colour
from search.agents.registry import AgentSpecError
from search.agents.spec import make_agent
from train.arena.match import play_game
from train.arena.openings import Opening

#: White to move. After d3, d7 or e6 black's reply wipes white out; after h3 or g6 the wipe-out comes later.
TRAPS = {
    "-------------X----X-XXO----XXX-----XXX------X-------X-----------": "d3",
    "------------------X---X----XXX----XOX----XXXX-----O-------------": "d7",
    "------------X------XO---XXXXX-----XXXX---X----------------------": "e6",
    "X----X---XX-X-XX--XXXOX---XXXXOO--XXXX----XXXX-----X-X-----X----": "h3",
    "----------OX---X---X--X----XOX---XXXXX-----XXX-----X-------X----": "g6",
}


def choices(spec, positions):
    agent = make_agent(spec)
    return [agent.choose(position) for position in positions]


@pytest.mark.parametrize("rules", [Rules(), Rules(6, "reversed"), Rules(4)], ids=str)
def test_move_depends_only_on_seed_and_position(rules):
    own, opp = batch.random_positions(12, rules.square_count // 4, rules, seed=3)
    positions = [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]
    positions = [position for position in positions if len(position.legal_moves()) > 1]
    for level in (1, 6, len(LEVELS)):
        moves = choices(f"human:level={level},seed=5", positions)
        assert choices(f"human:{level},seed=5", positions[::-1]) == moves[::-1]
        assert all(move in position.legal_actions() for move, position in zip(moves, positions, strict=True))
    others = {tuple(choices(f"human:1,seed={seed}", positions)) for seed in range(5)}
    assert len(others) > 1


@pytest.mark.slow
def test_levels_from_3_on_avoid_wipe_outs():
    wiped = np.zeros(len(LEVELS), int)
    for board, trap in TRAPS.items():
        position = Position.from_text(board, WHITE)
        for level in range(len(LEVELS)):
            chosen = {HumanAgent(level + 1, seed).choose(position) for seed in range(8 if level < 5 else 2)}
            wiped[level] += position.rules.action_from_name(trap) in chosen
    assert wiped[0] > 0
    assert not wiped[2:].any()


def test_lapses_are_more_likely_in_harder_positions():
    seen, rules = np.zeros(5), Rules()
    for level in range(2, len(LEVELS)):
        chances = [HumanAgent(level).chance_of_lapse(rules, seen, seen + discs) for discs in (0, 2, 8)]
        assert chances[0] == 0 < chances[1] < chances[2] < 1
        assert HumanAgent(level - 1).chance_of_lapse(rules, seen, seen + 2) > chances[1]


def test_level_10_beats_level_1_and_level_11_is_rejected():
    strong, weak = make_agent("human:10"), make_agent("human:1")
    opening = Opening(Position.initial(Rules(6)))
    for colour in (BLACK, WHITE):
        game = play_game({colour: strong, Colour(-colour): weak}, opening)
        assert game.discs_of(colour) > 0
    with pytest.raises(AgentSpecError, match="level"):
        make_agent("human:level=11")


def test_stop_reaches_all_engines(monkeypatch):
    agent, stopped = HumanAgent(5), []
    for rules in (Rules(4), Rules(6)):
        monkeypatch.setattr(agent.search_agent(rules), "stop", partial(stopped.append, rules))
    agent.stop()
    assert stopped == [Rules(4), Rules(6)]

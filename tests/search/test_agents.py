"""Agents by spec: the grammar, what each name plays, and how bad specs are answered."""

import gymnasium
import numpy as np
import pytest

import reversi_env  # noqa: F401 - registers the ids
from reversi_env import Position, Rules, batch
from search import agents
from search.agents import AgentSpecError, make
from search.solver import solve_all_moves


def positions(rules, count, plies, seed=1):
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]


def test_all_promised_names_are_there():
    promised = {"random", "greedy", "greedy-invincible", "double-alpha", "exact"}
    promised |= {"position-stability", "six-factor", "four-attribute", "cell-utility", "ten-weight", "sixteen-weight"}
    assert promised | {"discs", "mobility"} <= set(agents.names())


@pytest.mark.parametrize("name", ["random", "greedy", "greedy-invincible", "exact", "six-factor", "double-alpha"])
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_every_kind_of_agent_plays_legal_moves(name, variant):
    agent = make(name)
    for size, plies in ((4, 4), (6, 14), (8, 30)):
        for position in positions(Rules(size, variant), 3, plies):
            assert agent.choose(position) in position.legal_actions()


def test_an_agent_that_must_pass_passes():
    must_pass = Position.from_text("OX--" + "-" * 12)
    for name in ("random", "greedy", "greedy-invincible", "exact", "six-factor:depth=2"):
        assert make(name).choose(must_pass) == must_pass.rules.pass_action


def test_the_same_seed_plays_the_same_moves():
    played = [[make(f"random:seed={seed}").choose(p) for p in positions(Rules(), 30, 20)] for seed in (1, 1, 2)]
    assert played[0] == played[1] != played[2]


def test_a_level_is_a_depth():
    position = positions(Rules(), 1, 20)[0]
    assert make("six-factor:level=3").search(position).depth == 3
    assert make("six-factor", depth=2).search(position).depth == 2


def test_the_invincible_end_is_perfect():
    agent = make("greedy-invincible:exact=8")
    for position in positions(Rules(6), 10, 24):
        values = solve_all_moves(position)
        assert values[position.rules.name_of(agent.choose(position))] == max(values.values())


@pytest.mark.parametrize("make_env", [gymnasium.make, lambda *a, **k: gymnasium.make_vec(*a, num_envs=3, **k)])
def test_an_agent_is_an_environments_opponent_by_its_spec(make_env):
    env = make_env("Reversi-v0", size=6, opponent="six-factor:depth=2", colour="white")
    env.reset(seed=1)
    rewards = np.zeros(1)
    for _ in range(40):
        *_, terminated, _, _ = result = env.step(env.unwrapped.sample_legal())
        rewards = np.append(rewards, np.asarray(result[1]).ravel())
        if np.ndim(terminated) == 0 and terminated:
            break
    assert rewards.min() == -1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("six-facto", "did you mean 'six-factor'"),
        ("", "is unknown"),
        (None, "expected a text"),
        ("six-factor:depth=-1", "depth='-1' of agent 'six-factor:depth=-1': expected a whole number"),
        ("six-factor:depth=2.5", "expected a whole number"),
        ("six-factor:time=abc", "time='abc'"),
        ("six-factor:time=nan", "time='nan'"),
        ("six-factor:time=0", "expected a number"),
        ("six-factor:level=5", "expected a whole number"),
        ("six-factor:dept=3", "did you mean 'depth'"),
        ("six-factor:depth", "expected key=value"),
        ("six-factor:depth=1,depth=2", "given twice"),
        ("greedy:depth=3", "option 'depth=3' of agent 'greedy:depth=3' is unknown"),
    ],
)
def test_bad_specs_are_named(spec, message):
    with pytest.raises(AgentSpecError, match=message):
        make(spec)

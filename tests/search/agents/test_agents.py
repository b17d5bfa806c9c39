"""Agents: the grammar of specs, options, legal moves in all games, seeds and copies."""

import copy
import pickle

import numpy as np
import pytest

import reversi_env  # noqa: F401 - registers the ids
from models.evaluator import FOLDER
from reversi_env import Position, Rules, batch
from search import Limits, agents, evaluator, evaluators
from search.agents.registry import AgentSpecError
from search.agents.spec import AgentSpec, make_agent
from search.engine.solver import solve_all_moves
from search.evaluators.formula import formula_file
from search.evaluators.function import SlowEvaluatorWarning
from tests.oracles.search import GAMES, endgames, game_name, positions

every_game = pytest.mark.parametrize("rules", GAMES, ids=game_name)

#: One agent of every kind, with shallow searches and small tables.
KINDS = (
    *("random", "greedy", "greedy-invincible:exact=8,table=0.1", "exact:exact=8,table=0.1"),
    "six-factor:depth=2,table=0.1",
)


def positions_of_all_stages(rules, count=3):
    """Return positions from the start to near the end, and one where the side to move must pass."""
    longest = rules.square_count - 6
    own, opp = batch.random_positions(count, np.linspace(0, longest, count).astype(int), rules, seed=3)
    must_pass = [position for position in positions(*endgames(rules, 300, 6), rules) if position.must_pass()]
    stages = [*positions(own, opp, rules), must_pass[0]]
    return [position for position in stages if not position.is_over()]


def choices(spec, count=12, plies=8):
    """Return the moves of a new agent in a sequence of fixed positions."""
    own, opp = batch.random_positions(count, plies, seed=1)
    agent = make_agent(spec)
    return [agent.choose(position) for position in positions(own, opp, Rules())]


@every_game
def test_all_agents_play_legal_moves_in_all_games(rules):
    stages = positions_of_all_stages(rules)
    assert len(stages) >= 3
    for spec in KINDS:
        agent = make_agent(spec)
        for position in stages:
            assert agent.choose(position) in position.legal_actions(), spec


def test_agent_can_alternate_between_games():
    for spec in ("six-factor:depth=3,table=0.1", "greedy-invincible:exact=8,table=0.1"):
        shared, alone = make_agent(spec), {rules: make_agent(spec) for rules in GAMES}
        for rules in GAMES * 2:
            for position in positions(*endgames(rules, 6, 8), rules):
                if not position.is_over():
                    assert shared.choose(position) == alone[rules].choose(position)


@pytest.mark.parametrize("rules", [GAMES[2], GAMES[5]], ids=game_name)
@pytest.mark.parametrize("name", ["sixteen-weight", "discs"])
def test_greedy_invincible_is_greedy_then_perfect(rules, name):
    agent, greedy = make_agent(f"greedy-invincible:evaluator={name}"), make_agent("greedy")
    assert agent.content_hashes(rules) == make_agent("greedy-invincible").content_hashes(rules) or name == "discs"
    regret = 0
    for empties, count in ((6, 12), (9, 8), (12, 4)):
        own, opp = batch.random_positions(4 * count, rules.square_count - 4 - empties, rules, seed=empties)
        endings = [p for p in positions(own, opp, rules) if p.empties == empties and not p.is_over()]
        for position in endings[:count]:
            values = solve_all_moves(position)
            assert values[rules.name_of(agent.choose(position))] == max(values.values())
            regret += max(values.values()) - values[rules.name_of(greedy.choose(position))]
    assert regret > 10
    for position in [p for p in positions_of_all_stages(rules) if p.empties > 12]:
        value = evaluators.get_evaluator(name).static_value
        after = [value(position.play(action)) for action in position.legal_actions()]
        assert value(position.play(agent.choose(position))) == min(after)


def test_exact_agent_is_random_then_perfect():
    own, opp = batch.random_positions(12, 50, seed=7)
    agent = make_agent("exact:exact=10")
    agent.prepare(Rules())
    for position in positions(own, opp, Rules()):
        values = solve_all_moves(position)
        assert values[position.rules.name_of(agent.choose(position))] == max(values.values())
    assert len({make_agent(f"exact:seed={seed}").choose(Position.initial()) for seed in range(20)}) == 4


@pytest.mark.slow
def test_spec_options_and_defaults_reach_the_search():
    agent = make_agent("six-factor:depth=5,time=0.25,nodes=1000,exact=14,threads=2,table=3,seed=9")
    limits = agent.limits
    assert (limits.depth, limits.time, limits.nodes, limits.empties_exact) == (5, 0.25, 1000, 14)
    engine = agent.engine(Rules(4))
    assert len(engine.thread_states) == agent.threads == make_agent("exact:threads=2").threads == 2
    assert 1.4 < engine.table.words().nbytes / 2**20 <= 3
    assert make_agent("six-factor").limits.depth == agents.DEFAULT_DEPTH
    assert make_agent("six-factor:time=0.5").limits.depth is None
    assert make_agent("six-factor", depth=3, time=None).limits.depth == 3
    assert make_agent("six-factor:depth=2", depth=3).limits.depth == 2
    assert make_agent("random", depth=3, seed=4).choose(Position.initial()) in Position.initial().legal_actions()


@evaluator
def few_discs(position):
    return -position.own.bit_count()


def test_agent_of_an_evaluator_takes_the_options_of_a_search():
    assert make_agent(few_discs, depth=2, exact=3).limits == Limits(depth=2, empties_exact=3)
    for player in (few_discs, "random"):
        with pytest.raises(AgentSpecError, match="depht"):
            make_agent(player, depht=2)


@pytest.mark.slow
def test_agent_of_a_python_evaluator_plays():
    with pytest.warns(SlowEvaluatorWarning, match="few-discs"):
        assert make_agent(few_discs, depth=2).choose(Position.initial()) in Position.initial().legal_actions()


def test_seed_determines_random_choices():
    """At the start position the four moves are symmetric, so even a search chooses at random."""
    for name, plies in (("random", 8), ("greedy", 8), ("six-factor:depth=1,table=0.1", 0)):
        seeded = name + ("," if ":" in name else ":") + "seed="
        drawn = [choices(f"{seeded}{seed}", plies=plies) for seed in (1, 1, 2, 3, 4)]
        assert drawn[0] == drawn[1]
        assert any(other != drawn[0] for other in drawn[2:]), name


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("six-facto:depth=4", "did you mean 'six-factor'"),
        *((name, f"agent {name!r}") for name in ("", None)),
        *((f"six-factor:{name}={value}", f"{name}='{value}'") for name, value in (("table", "1e9"), ("time", "abc"))),
        ("six-factor:deep=4", "did you mean 'depth'"),
        ("greedy:depth=3", "depth"),
        ("greedy-invincible:evaluator=disc", "did you mean 'discs'"),
        *(("zero:x,device=tpu", "device='tpu'"), ("six-factor:depth=2,time", "'time'")),
        *(("six-factor:depth=2,depth=3", "twice"), ("gtp:   ", "command line"), ("gtp", "COMMAND LINE")),
        *(("gtp:engine 'half", "No closing quotation"), ("nboard[tim=1]:engine", "did you mean 'time'")),
        ("gtpp:engine", "did you mean 'gtp'"),
    ],
)
def test_invalid_spec_error_names_the_problem(spec, words):
    with pytest.raises(AgentSpecError, match=words) as error:
        make_agent(spec)
    assert "expected" in str(error.value)
    assert "\n" not in str(error.value)


SPEC = "six-factor:depth=2,table=0.1"


@pytest.mark.parametrize(
    "spec",
    [
        *(SPEC + ",", "greedy-invincible:exact=8,", "random:"),
        *("six-factor:depth=2,table=0.1,weights=FORMULA,", "network:depth=2,table=0.1,weights=NETWORK,"),
    ],
)
def test_agents_are_copied_and_pickled_without_tables(spec, tmp_path):
    formula, network = tmp_path / "formula.json", min(FOLDER.glob("6x6-normal-*"))
    formula.write_bytes(formula_file(evaluators.get_evaluator("six-factor"), "six-factor", {}, {}))
    agent = make_agent(spec.replace("FORMULA", str(formula)).replace("NETWORK", str(network)) + "seed=5")
    position = positions_of_all_stages(Rules(6))[1]
    agent.choose(position)
    packed = pickle.dumps(agent)
    assert len(packed) < 10_000
    copies = [pickle.loads(packed), copy.deepcopy(agent)]
    expected = [agent.choose(position) for _ in range(8)]
    for copied in copies:
        assert [copied.choose(position) for _ in range(8)] == expected


@pytest.mark.parametrize(
    "text", ["random", "six-factor:", "six-factor:depth=4,,seed=1", "rl:a.zip", "gtp[time=1]: x 'a b'"]
)
def test_spec_round_trips_text_and_pickle(text):
    spec = AgentSpec.parse(text)
    assert str(spec) == text
    assert pickle.loads(pickle.dumps(spec)) == spec == AgentSpec.parse(spec)
    assert len({spec, AgentSpec(text)}) == 1


def test_spec_can_be_changed_and_lists_its_files():
    spec = AgentSpec.parse("rl:a.zip,seed=1")
    assert (spec.files(), str(spec.with_(weights="b"))) == ({"weights": "a.zip"}, "rl:weights=b,seed=1")
    booked = [AgentSpec.parse(f"network:weights=w,book={book}").files() for book in ("b.safetensors", "yes")]
    assert booked == [{"weights": "w", "book": "b.safetensors"}, {"weights": "w"}]
    assert AgentSpec.parse("six-factor:weights=w=1.json,depth=2").evaluator == "six-factor:weights=w=1.json"
    program = AgentSpec.parse("nboard:engine -x w=1,2")
    assert (program.name, program.options, program.command, program.files()) == ("nboard", {}, "engine -x w=1,2", {})
    assert str(program.with_(depth=3)) == "nboard[depth=3]:engine -x w=1,2"

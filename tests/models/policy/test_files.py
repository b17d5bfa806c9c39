import json

import pytest
import torch
from safetensors.numpy import load, save

from models.files import WeightsError
from models.policy.files import FORMAT, SavedPolicy, read_policy
from reversi_env import Position, Rules
from search import agents


def test_a_policy_comes_back_as_it_was(tiny_net, tmp_path):
    saved = SavedPolicy(Rules(6, "reversed"), tiny_net(6), {"steps": 7})
    (tmp_path / "policy").write_bytes(saved.to_bytes())
    there = read_policy(tmp_path / "policy")
    assert (there.rules, there.record, there.net.architecture) == (saved.rules, {"steps": 7}, saved.net.architecture)
    assert all(torch.equal(a, b) for a, b in zip(there.net.parameters(), saved.net.parameters(), strict=True))


def rewritten(data, **changes):
    """The file with other entries in its header, and the hash of its tensors left out."""
    length = int.from_bytes(data[:8], "little")
    description = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["policy"]) | changes
    description = {name: value for name, value in description.items() if value is not None and name != "tensors"}
    return save(load(data), metadata={"policy": json.dumps(description)})


def test_files_that_are_no_policies(tiny_net, tmp_path):
    path = tmp_path / "policy.safetensors"
    whole = SavedPolicy(Rules(4), tiny_net(), {}).to_bytes()
    for data, complaint in (
        (b"", "cannot be read"),
        (b"\x80\x04cposix\nsystem\n.", "cannot be read"),
        (whole[:-10], "cannot be read"),
        (whole[:-10] + bytes([whole[-10] ^ 1]) + whole[-9:], "damaged, its weights are not those that its header says"),
        (save(load(whole)), "cannot be read"),
        (save(load(whole), metadata={"policy": "[" * 100_000}), "cannot be read"),
        (rewritten(whole, format=FORMAT + 1), f"expected {FORMAT}"),
        (rewritten(whole, size=5), "5"),
        (rewritten(whole, size=6), "cannot be read"),
        (rewritten(whole, size=None), "cannot be read"),
        (rewritten(whole, architecture={"layers": 3}), "cannot be read"),
        (rewritten(whole, architecture={"kind": "q"}), "kind"),
    ):
        path.write_bytes(data)
        with pytest.raises(WeightsError, match=complaint) as error:
            read_policy(path)
        assert "\n" not in str(error.value)
        assert "policy.safetensors" in str(error.value)
    with pytest.raises(WeightsError, match="No such file"):
        read_policy(tmp_path / "nowhere")


# --- agents by spec ---------------------------------------------------------------------------------


def test_policies_are_agents(policy_file):
    start = Position.initial(Rules(4))
    best = agents.make_agent(f"rl:{policy_file}").choose(start)
    assert agents.make_agent(f"rl:weights={policy_file},seed=5").choose(start) == best
    wild = [agents.make_agent(f"rl:{policy_file},temperature=9,seed={seed}").choose(start) for seed in range(30)]
    assert set(wild) == set(start.legal_actions())
    found = agents.make_agent(f"rl-search:{policy_file},depth=2,exact=0").search(start)
    assert found.depth == 2
    assert len(found.moves) == 4
    assert agents.make_agent(f"rl-search:{policy_file},depth=1,exact=12").search(start).exact


def test_a_policy_that_must_pass_passes(policy_file):
    position = Position.from_text("XXXX\nXXXX\nOOOO\nOO-O", rules=Rules(4))
    if not position.must_pass():
        position = next(p for p in _walk(Position.initial(Rules(4))) if p.must_pass())
    assert agents.make_agent(f"rl:{policy_file}").choose(position) == position.rules.pass_action
    assert agents.make_agent(f"rl-search:{policy_file}").choose(position) == position.rules.pass_action


def _walk(position):
    yield position
    if not position.is_over():
        for action in position.legal_actions():
            yield from _walk(position.play(action))


def test_a_policy_plays_its_own_game_only(policy_file):
    for rules in (Rules(6), Rules(4, "reversed")):
        with pytest.raises(WeightsError, match="is for 4x4 normal: expected one for"):
            agents.make_agent(f"rl:{policy_file}").choose(Position.initial(rules))
    with pytest.raises(WeightsError, match="4x4 normal"):
        agents.make_agent("rl").choose(Position.initial(Rules(4)))


def test_specs_that_are_wrong(policy_file):
    for spec, complaint in (
        (f"rl:{policy_file},{policy_file}", "expected key=value"),
        ("rl:temperature=-1", "a number from 0 to 100"),
        ("rl-search:depth=0", "depth"),
        ("rl:weights=", "the path of a weight file"),
        ("six-factor:file", "expected key=value"),
    ):
        with pytest.raises(agents.AgentSpecError, match=complaint):
            agents.make_agent(spec)


def test_a_changed_file_is_read_again(policy_file, tiny_net):
    agent = agents.make_agent(f"rl:{policy_file}")
    agent.choose(Position.initial(Rules(4)))
    policy_file.write_bytes(SavedPolicy(Rules(4), tiny_net(seed=1), {"again": True}).to_bytes())
    assert agent.saved(Rules(4)).record == {"again": True}


def test_policies_play_in_matches_and_environments(policy_file, reversi):
    import gymnasium

    import reversi_env  # noqa: F401

    env = gymnasium.make("Reversi-v0", size=4, opponent=f"rl:{policy_file}")
    _, info = env.reset(seed=1)
    over = False
    while not over:
        _, reward, over, _, info = env.step(int(info["action_mask"].argmax()))
    assert reward in (-1.0, 0.0, 1.0)
    status, out, _ = reversi("match", f"rl:{policy_file}", "random", "--size", 4, "-k", 2, "--games", 4)
    assert status == 0
    assert "4 games" in out
    status, _, err = reversi("match", f"rl:{policy_file}", "random", "--size", 6, "--games", 2)
    assert status == 2
    assert "is for 4x4 normal" in err

"""The tokens of games, the sequence model, its files and its agent."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from models.files import WeightsError
from models.gpt.agent import GPTAgent, SavedGPT, read_gpt
from models.gpt.net import GPT, GPTConfig
from models.gpt.tokens import Vocabulary
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import TrainError
from search import make_agent
from train.arena.match import play_match

ON_4X4 = Rules(4)


def new_model(vocabulary=None, **shape):
    vocabulary = vocabulary or Vocabulary(4)
    torch.manual_seed(0)
    config = vocabulary.length - 1, vocabulary.num_tokens
    return GPT(GPTConfig(*config, **{"n_layer": 2, "n_head": 2, "n_embd": 16, **shape})).eval()


@pytest.fixture
def saved():
    return SavedGPT(Vocabulary(4), "normal", new_model(), {"training": "none"})


@pytest.fixture
def path(saved, tmp_path):
    return saved.save_in(tmp_path)


def tokens(*shape, low=1):
    return torch.randint(low, 13, shape, generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


@pytest.mark.parametrize(("size", "squares"), [(4, 12), (6, 32), (8, 60)])
def test_the_default_is_that_of_othello_gpt(size, squares):
    vocabulary = Vocabulary(size)
    assert (vocabulary.num_tokens, vocabulary.length) == (squares + 1, squares)
    centre = {(size // 2 + r) * size + size // 2 + c for r in (-1, 0) for c in (-1, 0)}
    actions = [action for action in range(size**2) if action not in centre]
    assert vocabulary.encode(actions).tolist() == list(range(1, squares + 1))
    assert vocabulary.decode([*range(1, squares + 1), 0, 0]) == actions


@pytest.mark.parametrize("size", [4, 6, 8])
def test_options_add_tokens(size):
    plain = Vocabulary(size)
    order = tuple(reversed(plain.decode(range(1, plain.num_tokens))))
    vocabulary = Vocabulary(size, passes=True, start=True, rules=True, order=order)
    passed, squares = size**2, plain.length
    assert vocabulary.num_tokens == plain.num_tokens + 4
    for rules, token in (("normal", squares + 3), ("reversed", squares + 4)):
        tokens = vocabulary.encode([order[0], passed, order[-1]], rules)
        assert tokens.tolist() == [squares + 2, token, 1, squares + 1, squares]
        assert vocabulary.decode(tokens) == [order[0], passed, order[-1]]
    assert Vocabulary(size, start=True).encode([order[0], passed]).size == 2
    assert Vocabulary(**json.loads(json.dumps(asdict(vocabulary)))) == vocabulary


def test_what_is_no_token_is_an_error():
    with pytest.raises(ReversiError, match="order"):
        Vocabulary(4, order=(0, 1, 2))
    for action in (27, 65, -1):
        with pytest.raises(ReversiError, match="action"):
            Vocabulary().encode([action])


def test_a_prediction_depends_on_earlier_tokens_only():
    net, games = new_model(), tokens(3, 11)
    others = games.clone()
    others[:, 6:] = tokens(3, 5) % 12 + 1
    before, after = net(games)[0], net(others)[0]
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-6)
    assert not torch.allclose(before[:, 6:], after[:, 6:], atol=1e-3)


def test_padding_is_no_target():
    net, games = new_model(), tokens(4, 12)
    games[:, 8:] = 0
    logits, loss = net(games[:, :-1], games[:, 1:])
    expected = -logits.log_softmax(2)[:, :7].gather(2, games[:, 1:8, None].long()).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_an_edit_changes_the_stream_in_front_of_each_layer_and_at_its_end():
    net, games, seen = new_model(), tokens(2, 9), []
    logits, states = net(games)[0], net.residual_stream(games)
    assert [tuple(one.shape) for one in states] == [(2, 9, 16)] * 3
    assert torch.equal(net(games, edit=lambda layer, x: seen.append(layer) or x)[0], logits)
    assert seen == [0, 1, 2]
    for layer in range(3):  # the stream goes on from any layer
        edited = net(games.flip(0), edit=lambda number, x: states[number] if number == layer else x)[0]  # noqa: B023
        assert torch.equal(edited, logits)


@pytest.mark.parametrize("variant", ["normal", "reversed", "both"])
def test_a_file_gives_the_same_model(saved, variant, tmp_path):
    vocabulary = Vocabulary(4, rules=variant == "both", order=tuple(Vocabulary(4).decode(range(12, 0, -1))))
    model = replace(saved, vocabulary=vocabulary, variant=variant, net=new_model(vocabulary))
    file, state = model.save_in(tmp_path), torch.random.get_rng_state()
    same = read_gpt(file)
    assert torch.equal(state, torch.random.get_rng_state())
    assert (same.vocabulary, same.variant, same.net.config) == (vocabulary, variant, model.net.config)
    games = tokens(2, 7)
    assert torch.allclose(same.net(games)[0], model.net(games)[0], atol=1e-2)
    assert same.save_in(tmp_path) == file


def test_files_that_are_damaged_or_of_another_model(saved, path):
    wrong = replace(saved, vocabulary=Vocabulary(6)).save_in(path.parent).read_bytes()
    for data in (path.read_bytes()[:-1], bytes([*path.read_bytes()[:-1], 7]), wrong):
        other = path.with_name("other.safetensors")
        other.write_bytes(data)
        with pytest.raises(WeightsError, match="other"):
            read_gpt(other)


def test_the_agent_plays_its_most_probable_legal_move(saved, path):
    start, moves = Position.initial(ON_4X4), ["a2"]
    seen = saved.vocabulary.encode([ON_4X4.action_from_name("a2")])
    with torch.inference_mode():
        logits = read_gpt(path).net(torch.from_numpy(seen)[None])[0][0, -1]
    legal = start.play_all(moves).legal_actions()
    best = max(legal, key=lambda action: logits[saved.vocabulary.encode([action])[0]])
    assert make_agent(f"gpt:{path}").choose_after(start, moves) == best


def test_the_agent_counts_illegal_predictions(path):
    agent = GPTAgent(str(path))
    assert play_match(agent, "random", 10, ON_4X4).games == 10
    assert 0 < agent.illegal < agent.predictions  # an untrained model predicts both


def test_the_agent_needs_a_file_its_own_game_and_the_moves(path):
    with pytest.raises(TrainError, match="n_head"):
        new_model(n_head=3)
    with pytest.raises(ReversiError, match="gpt:FILE"):
        make_agent("gpt")
    with pytest.raises(WeightsError, match="4x4 normal"):
        GPTAgent(str(path)).check(Rules(6))
    with pytest.raises(WeightsError, match="4x4 normal"):
        GPTAgent(str(path)).check(Rules(4, "reversed"))
    with pytest.raises(ReversiError, match="whole games"):
        GPTAgent(str(path)).choose(Position.initial(ON_4X4).play("a2"))

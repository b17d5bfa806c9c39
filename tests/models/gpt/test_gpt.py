"""The sequence model, its files and its agent."""

from dataclasses import replace

import pytest
import torch

from models.files import WeightsError
from models.gpt.agent import GPTAgent
from models.gpt.files import SavedGPT, read_gpt
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
    return GPT(
        GPTConfig(vocabulary.context, vocabulary.num_tokens, **{"n_layer": 2, "n_head": 2, "n_embd": 16, **shape})
    ).eval()


@pytest.fixture
def saved():
    return SavedGPT(Vocabulary(4), ("normal",), new_model(), {"training": "none"})


@pytest.fixture
def path(saved, tmp_path):
    data = saved.to_bytes()
    file = tmp_path / saved.file_name(data)
    file.write_bytes(data)
    return file


def tokens(*shape, low=1):
    return torch.randint(low, 13, shape, generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


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


def test_the_stream_goes_on_from_every_layer():
    net, games = new_model(), tokens(2, 9)
    states = net.residual_stream(games)
    assert states.shape == (3, 2, 9, 16)
    for layer in range(3):
        assert torch.allclose(net.forward_from(layer, states[layer]), net(games)[0], atol=1e-5)


def test_an_edit_changes_this_layer_and_all_that_follow():
    net, games, seen = new_model(), tokens(2, 9), []
    states = net.residual_stream(games)
    net.forward_from(1, states[1], lambda layer, x: seen.append(layer) or x)
    assert seen == [1, 2]
    zeroed = net.forward_from(2, states[2], lambda layer, x: x * 0)
    assert torch.allclose(zeroed, torch.zeros_like(zeroed), atol=1e-6)


def test_only_matrices_have_weight_decay():
    groups = new_model().configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cpu").param_groups
    assert [(group["weight_decay"], {one.dim() for one in group["params"]}) for group in groups] == [
        (0.1, {2}),
        (0.0, {1}),
    ]


def test_heads_must_divide_the_width():
    with pytest.raises(TrainError, match="n_head"):
        new_model(n_head=3)


@pytest.mark.parametrize("variants", [("normal",), ("reversed",), ("normal", "reversed")])
def test_a_file_gives_the_same_model(saved, variants, tmp_path):
    vocabulary = Vocabulary(4, rules=len(variants) > 1)
    model = replace(saved, vocabulary=vocabulary, variants=variants, net=new_model(vocabulary))
    data = model.to_bytes()
    file = tmp_path / model.file_name(data)
    file.write_bytes(data)
    state = torch.random.get_rng_state()
    same = read_gpt(file)
    assert torch.equal(state, torch.random.get_rng_state())
    assert (same.vocabulary, same.variants, same.net.config) == (vocabulary, variants, model.net.config)
    games = tokens(2, 7)
    assert torch.allclose(same.net(games)[0], model.net(games)[0], atol=1e-2)
    assert same.to_bytes() == data


def test_files_that_are_damaged_or_of_another_model(saved, path):
    wrong = replace(saved, vocabulary=Vocabulary(6)).to_bytes()
    for data in (path.read_bytes()[:-1], bytes([*path.read_bytes()[:-1], 7]), wrong):
        other = path.with_name("other.safetensors")
        other.write_bytes(data)
        with pytest.raises(WeightsError, match="other"):
            read_gpt(other)


def test_the_agent_plays_legal_moves_and_counts_illegal_predictions(path):
    agent = GPTAgent(str(path))
    result = play_match(agent, "random", 10, ON_4X4)
    assert result.games == 10
    assert 0 < agent.illegal < agent.predictions  # an untrained model predicts both


def test_the_agent_plays_its_most_probable_legal_move(saved, path):
    start, moves = Position.initial(ON_4X4), ["a2"]
    position = start.play_all(moves)
    with torch.inference_mode():
        logits = read_gpt(path).net(torch.from_numpy(saved.vocabulary.encode([ON_4X4.action_from_name("a2")]))[None])[
            0
        ][0, -1]
    legal = {
        action: logits[saved.vocabulary.token_of_square[ON_4X4.square_of(action)]]
        for action in position.legal_actions()
    }
    assert make_agent(f"gpt:{path}").choose_after(start, moves) == max(legal, key=legal.get)


def test_the_agent_needs_a_file_its_own_game_and_the_moves(path):
    with pytest.raises(ReversiError, match="gpt:FILE"):
        make_agent("gpt")
    with pytest.raises(WeightsError, match="4x4 normal"):
        GPTAgent(str(path)).check(Rules(6))
    with pytest.raises(WeightsError, match="4x4 normal"):
        GPTAgent(str(path)).check(Rules(4, "reversed"))
    with pytest.raises(ReversiError, match="whole games"):
        GPTAgent(str(path)).choose(Position.initial(ON_4X4).play("a2"))

"""The sequence model: tokens of games, predictions, files and agent."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from models.files import WeightsError
from models.gpt import GPT, GPTAgent, GPTConfig, SavedGPT, read_gpt
from models.vocabulary import Vocabulary
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import TrainError
from search import make_agent
from train.arena.match import play_match

ON_4X4, VOCABULARY = Rules(4), Vocabulary(4)


def new_model(vocabulary=VOCABULARY, n_head=2):
    torch.manual_seed(0)
    return GPT(GPTConfig(vocabulary.length - 1, vocabulary.vocab_size, n_layer=2, n_head=n_head, n_embd=16))


@pytest.fixture
def path(tmp_path):
    return SavedGPT(VOCABULARY, "normal", new_model(), {}).save_in(tmp_path)


def tokens(*shape, low=1):
    return torch.randint(low, 13, shape, generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


@pytest.mark.parametrize(("size", "squares"), [(4, 12), (6, 32), (8, 60)])
def test_default_vocabulary_is_that_of_othello_gpt(size, squares):
    vocabulary = Vocabulary(size)
    assert (vocabulary.vocab_size, vocabulary.length) == (squares + 1, squares)
    actions = [action for action in range(size**2) if not {*divmod(action, size)} <= {size // 2 - 1, size // 2}]
    assert vocabulary.encode(actions).tolist() == list(range(1, squares + 1))
    assert vocabulary.decode([*range(1, squares + 1), 0, 0]) == actions


@pytest.mark.parametrize("size", [4, 6, 8])
def test_options_add_tokens(size):
    plain = Vocabulary(size)
    order = tuple(reversed(plain.decode(range(1, plain.vocab_size))))
    vocabulary = Vocabulary(size, passes=True, bos=True, variants=True, order=order)
    actions, squares = [order[0], size**2, order[-1]], plain.length
    assert vocabulary.vocab_size == plain.vocab_size + 4
    for variant, token in (("normal", squares + 3), ("reversed", squares + 4)):
        tokens = vocabulary.encode(actions, variant)
        assert tokens.tolist() == [squares + 2, token, 1, squares + 1, squares]
        assert vocabulary.decode(tokens) == actions
    assert Vocabulary(size, bos=True).encode(actions).size == 3
    assert Vocabulary(**json.loads(json.dumps(asdict(vocabulary)))) == vocabulary
    with pytest.raises(ReversiError, match="order"):
        Vocabulary(size, order=(0, 1, 2))
    for action in (size**2 // 2 + size // 2, size**2 + 1, -1):
        with pytest.raises(ReversiError, match="action"):
            plain.encode([action])


def test_predictions_depend_only_on_earlier_tokens():
    net, games = new_model(), tokens(3, 11)
    others = games.clone()
    others[:, 6:] = tokens(3, 5) % 12 + 1
    before, after = net(games)[0], net(others)[0]
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-6)
    assert not torch.allclose(before[:, 6:], after[:, 6:], atol=1e-3)


def test_residual_stream_is_half_precision_under_autocast():
    net, games = new_model(), tokens(4, 9)
    with torch.autocast("cpu", torch.bfloat16):
        states, (_, loss) = net.residual_stream(games), net(games[:, :-1], games[:, 1:])
    assert {state.dtype for state in states} == {torch.bfloat16}
    assert loss.item() == pytest.approx(net(games[:, :-1], games[:, 1:])[1].item(), rel=0.02)
    assert net.residual_stream(games)[0].dtype == torch.float32


def test_loss_ignores_padding():
    net, games = new_model(), tokens(4, 12)
    games[:, 8:] = 0
    logits, loss = net(games[:, :-1], games[:, 1:])
    expected = -logits.log_softmax(2)[:, :7].gather(2, games[:, 1:8, None].long()).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_muon_has_the_matrices_of_the_layers_and_adam_the_rest():
    net = new_model()
    muon, adam = (
        [{*group["params"]} for group in one.param_groups]
        for one in net.configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cpu")
    )
    assert len(muon[0]) == 4 * net.config.n_layer
    assert adam[0] == {net.lm_head.weight, net.transformer["wte"].weight, net.transformer["wpe"].weight}
    assert {*net.parameters()} == muon[0] | adam[0] | adam[1]


def test_hook_changes_residual_stream_at_every_layer():
    net, games, seen = new_model(), tokens(2, 9), []
    logits, states = net(games)[0], net.residual_stream(games)
    assert [tuple(one.shape) for one in states] == [(2, 9, 16)] * 3
    assert torch.equal(net(games, hook=lambda layer, x: seen.append(layer) or x)[0], logits)
    assert seen == [0, 1, 2]
    for layer in range(3):  # a stored stream continues from any layer
        changed = net(games.flip(0), hook=lambda number, x: states[number] if number == layer else x)[0]  # noqa: B023
        assert torch.equal(changed, logits)


@pytest.mark.parametrize("variant", ["normal", "reversed", "both"])
def test_model_round_trips_through_file(variant, tmp_path):
    vocabulary = Vocabulary(4, variants=variant == "both", order=tuple(VOCABULARY.decode(range(12, 0, -1))))
    model = SavedGPT(vocabulary, variant, new_model(vocabulary), {"training": "none"})
    file, state = model.save_in(tmp_path), torch.random.get_rng_state()
    same = read_gpt(file)
    assert torch.equal(state, torch.random.get_rng_state())
    assert (replace(same, net=model.net), same.net.config) == (model, model.net.config)
    games = tokens(2, 7)
    assert torch.allclose(same.net(games)[0], model.net(games)[0], atol=1e-2)
    assert same.save_in(tmp_path) == file


def test_corrupted_or_mismatched_file_is_rejected(path):
    wrong = replace(read_gpt(path), vocabulary=Vocabulary(6)).save_in(path.parent).read_bytes()
    for data in (path.read_bytes()[:-1], bytes([*path.read_bytes()[:-1], 7]), wrong):
        other = path.with_name("other.safetensors")
        other.write_bytes(data)
        with pytest.raises(WeightsError, match="other"):
            read_gpt(other)


def test_agent_plays_best_legal_move_and_counts_illegal_ones(path):
    start, saved, agent = Position.initial(ON_4X4), read_gpt(path), GPTAgent(str(path))
    seen = VOCABULARY.encode([ON_4X4.action_from_name("a2")])
    logits = saved.net(torch.from_numpy(seen)[None])[0][0, -1]
    legal = start.play("a2").legal_actions()
    best = max(legal, key=lambda action: logits[VOCABULARY.encode([action])[0]])
    assert agent.choose_after(start, ["a2"]) == best
    assert play_match(agent, "random", 10, ON_4X4).games == 10
    assert 0 < agent.illegal < agent.predictions  # an untrained model predicts both


def test_agent_errors_for_missing_file_other_game_or_no_moves(path):
    with pytest.raises(TrainError, match="n_head"):
        new_model(n_head=3)
    with pytest.raises(ReversiError, match="gpt:FILE"):
        make_agent("gpt")
    for rules in (Rules(6), Rules(4, "reversed")):
        with pytest.raises(WeightsError, match="4x4 normal"):
            GPTAgent(str(path)).check(rules)
    with pytest.raises(ReversiError, match="whole games"):
        GPTAgent(str(path)).choose(Position.initial(ON_4X4).play("a2"))

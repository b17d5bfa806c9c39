"""The teacher: its games against the solver and the rules, its run in a folder, and a student."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from torch._dynamo.exc import TorchDynamoException

from models.boards import after_move, bit_counts, board_planes, board_tensor, legal_moves, turned
from models.files import WeightsError
from models.residual import ResidualNet, SavedResidual, ValueOfBoards, read_residual, square_images
from models.torch_evaluator import TorchEvaluator
from reversi_env import Position, Rules, batch, functional
from search.agents import make
from search.batch import search_batch
from search.solver import solve_batch
from train.alphazero.distil import GAMES, Lessons, distil, teacher_of
from train.alphazero.games import let_strangers_in, play, search_of, solved_moves
from train.alphazero.learner import Learner
from train.alphazero.options import SelfPlayOptions, preset
from train.alphazero.playing import Chosen, Positions, played, random_actions, searched, worth
from train.alphazero.run import STATE, SelfPlayRun
from train.checkpoints import load_checkpoint, save_checkpoint
from train.errors import TrainError
from train.fitting.options import preset as fit_preset
from train.run import Run, remembered

pytestmark = pytest.mark.usefixtures("one_torch_thread")

CPU = torch.device("cpu")
TINY = {"games": 12, "simulations": 2, "steps": 3, "last_steps": 4, "generations": 2}
TINY |= {"batch_size": 16, "channels": 4, "blocks": 1}


def boards_of(rules, count=200, seed=1):
    plies = np.arange(count) % (rules.square_count - 5)
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    return own, opp, board_tensor(own), board_tensor(opp)


def solver(rules):
    return partial(solve_batch, rules=rules, threads=1)


def discs(own, opp):
    """A network that anybody can check: own discs minus the other's, and all moves alike."""
    return torch.zeros(len(own), 36), (bit_counts(own) - bit_counts(opp)).float()


@pytest.mark.parametrize("size", [4, 6, 8])
def test_moves_on_tensors_are_those_of_the_rules(size):
    rules = Rules(size)
    own, opp, own_tensor, opp_tensor = boards_of(rules)
    children = batch.expand(own, opp, rules)
    moved = children.square < 64
    parent = torch.from_numpy(children.parent[moved].astype(np.int64))
    square = torch.from_numpy(children.square[moved].astype(np.int64))
    found = after_move(own_tensor[parent], opp_tensor[parent], square)
    assert (found[0].numpy().view(np.uint64) == children.own[moved]).all()
    assert (found[1].numpy().view(np.uint64) == children.opp[moved]).all()


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_solved_moves_are_those_of_the_solved_children(variant):
    rules = Rules(6, variant)
    own, opp = batch.random_positions(40, np.full(40, 26), rules, seed=1)
    found, shown = solved_moves(solver(rules), board_tensor(own), board_tensor(opp), rules)
    children = batch.expand(own, opp, rules)
    moved = children.square < 64
    expected = np.full((len(own), 36), -1000.0)
    scores = solve_batch(children.own, children.opp, rules, threads=1)
    for parent, square, score in zip(children.parent[moved], children.square[moved], scores[moved], strict=True):
        expected[parent, rules.action_of(int(square))] = -score
    assert (found.numpy() == expected).all()
    assert len(shown.own) == (batch.legal_moves(children.own, children.opp, rules)[moved] != 0).sum()


def test_images_of_squares_are_those_of_the_boards():
    for size in (4, 6, 8):
        rules = Rules(size)
        _, _, own, opp = boards_of(rules)
        legal = board_planes(legal_moves(own, opp, rules.playable), size).flatten(1)
        for symmetry, images in enumerate(square_images(rules)):
            image = torch.full_like(own, symmetry)
            expected = legal_moves(turned(own, image), turned(opp, image), rules.playable)
            assert (legal[:, images] == board_planes(expected, size).flatten(1)).all()


@pytest.mark.parametrize(("variant", "aside"), [("normal", 0.0), ("reversed", 0.5)])
def test_positions_are_worth_what_their_games_came_to(variant, aside):
    """Near the end that is the solver's score; before it, as nothing else counts here, what a position further on was worth."""
    options = SelfPlayOptions(
        size=6, variant=variant, games=40, exact=9, aside=aside, perfect=0.0, trace=1.0, simulations=4, strangers=0.0
    )
    rules, solve = options.rules, solver(options.rules)
    found = play(search_of(discs, options, CPU), solve, options, 3, CPU)
    own, opp = (side.numpy().view(np.uint64) for side in (found.own, found.opp))
    empties = rules.square_count - np.bitwise_count(own | opp)
    solved = empties <= 9
    assert solved.sum() > 80
    assert (found.score.numpy()[solved] == solve(own[solved], opp[solved])).all()
    assert set(np.unique(empties)) >= {8, 9, 10, 20}
    if not aside:
        assert set(np.abs(found.score.numpy()[~solved])) <= set(np.abs(found.score.numpy()[solved]))
    likely = found.policy.float().sum(1)
    assert (((likely > 240) & (likely < 270)) | (likely == 0)).all()


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_a_game_that_ends_early_is_worth_its_result(variant):
    """The side that moves last wipes the other out, with 23 empty squares; the search had thought otherwise."""
    rules, moves = Rules(6, variant), iter([22, 28, 8, 9, 10, 16, 34, 7, 0])

    def choose(state, games):
        return Chosen.nothing(1, rules, CPU)._replace(action=torch.tensor([next(moves)]), value=torch.tensor([5.0]))

    plies, last = played(functional.init(1, rules, device="cpu"), choose, rules)
    found = worth(plies, last, solver(rules), rules, exact=4, trace=1.0)
    assert found.score.tolist() == [rules.sign * 36.0 * (-1) ** number for number in range(9)]


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_strangers_take_what_they_can_and_spoil_no_values(variant):
    """Black in game 0, white in game 1, nobody in game 2. Before their moves a position is worth what came of these, or more."""
    options = SelfPlayOptions(size=6, variant=variant, games=4, strangers=0.5)
    rules, generator, taken = options.rules, torch.Generator().manual_seed(5), []

    def choose(state, games):
        found = Chosen.nothing(len(games), rules, CPU)
        found.action[:], found.value[:] = random_actions(state, generator), torch.randn(len(games), generator=generator)
        let_strangers_in(found, state, games, options, generator)
        taken.extend(
            zip(
                *(column.tolist() for column in (games, state.turn, *state[:2], found.action, found.strange)),
                strict=True,
            )
        )
        return found

    plies, last = played(functional.init(3, rules, device="cpu"), choose, rules)
    for game, turn, own, opp, action, strange in taken:
        assert strange == (game < 2 and turn == game)
        if strange:
            position = Position(rules, own, opp)
            best = max(-rules.sign * position.play(move).disc_difference() for move in position.legal_actions())
            assert -rules.sign * position.play(action).disc_difference() == best
    found = worth(plies, last, solver(rules), rules, exact=0, trace=0.9)
    scores = iter(found.score.split([int(ply.kept.sum()) for ply in reversed(plies)]))
    now = functional.score(last).float()
    for ply in reversed(plies):
        for row, score in zip(ply.kept.nonzero().squeeze(1).tolist(), next(scores).tolist(), strict=True):
            value, onward = float(ply.value[row]), -float(now[row])
            assert score == pytest.approx(
                max(value, onward) if ply.strange[row] else 0.9 * onward + 0.1 * value, abs=1e-4
            )
            now[row] = score


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_games_that_are_played_perfectly_come_to_the_score_of_perfect_play(variant):
    """One ply before positions are solved, the score of the one that the game goes on to is theirs, with the other sign."""
    options = SelfPlayOptions(
        size=6, variant=variant, games=60, exact=9, aside=0.0, perfect=1.0, trace=1.0, simulations=4
    )
    solve = solver(options.rules)
    found = play(search_of(discs, options, CPU), solve, options, 4, CPU)
    own, opp = (side.numpy().view(np.uint64) for side in (found.own, found.opp))
    rows = np.bitwise_count(own | opp) == 26
    assert rows.sum() >= 50
    assert (found.score.numpy()[rows] == solve(own[rows], opp[rows])).all()
    assert (np.sign(found.score.numpy()[rows]) != 0).any()


@pytest.mark.parametrize("method", ["gumbel", "puct"])
def test_the_lot_counts_as_much_as_the_temperature_says(method):
    """At 0 nothing is drawn, at 1 something is; the policy that is learnt of PUCT's visits stays as it is."""
    options = SelfPlayOptions(size=6, method=method, simulations=12, exact=0)
    search, states = (
        search_of(discs, options, CPU),
        functional.init(50, options.rules, seed=1, opening_plies=8, device="cpu"),
    )

    def found(temperature, seed):
        return searched(search, states, 50, torch.Generator().manual_seed(seed), temperature)

    cold = found(0.0, 1)
    if method == "gumbel":
        assert (cold.action == searched(search, states, 50).action).all()
    else:
        best = cold.policy.max(1).values
        assert (cold.policy[range(50), cold.action] == best).all()
        chilly = found(0.01, 1)  # as good as 0: nothing is lost in the power
        assert (chilly.policy[range(50), chilly.action] == best).all()
        assert (chilly.policy == cold.policy).all()
    assert (found(1.0, 1).action != found(1.0, 2).action).any()


def test_presets_are_options(tmp_path):
    """For all that is made, every board and device; whatever is made says so in its folder."""
    for kind, size, device in product(("zero", "teacher"), (4, 6, 8), ("cpu", "cuda")):
        options = preset(kind, size, device)
        assert (options.kind, options.size, options.device) == (kind, size, device)
        assert options.exact < options.rules.square_count - options.plies
    assert replace(preset("zero", 8, "cuda"), device="cpu") == SelfPlayOptions()
    Run(tmp_path, preset("teacher", 4, "cpu")).remember()
    with pytest.raises(TrainError, match="was begun with kind='teacher': expected the same, not 'zero'"):
        Run(tmp_path, replace(remembered(tmp_path, SelfPlayOptions), kind="zero")).remember()


def test_a_device_that_is_given_is_that_of_the_folder(tmp_path, reversi):
    """One that is not given is remembered, so that the default must not pass for one that is."""
    Run(tmp_path, preset("teacher", 4, "cuda", **TINY)).remember()
    status, _, told = reversi("train", "--teacher", "--out", tmp_path, "--device", "cpu")
    assert (status, "was begun with device='cuda': expected the same, not 'cpu'" in told) == (2, True)


def test_a_run_goes_on_with_its_own_options_and_state_alone(tmp_path):
    """That it ends with the same weights, whenever it is killed, is in test_kills.py."""

    def interrupt(doing, done, total):
        if doing.startswith("generation 2/2: learning"):
            raise KeyboardInterrupt

    options = preset("teacher", 4, "cpu", **TINY)
    with pytest.raises(KeyboardInterrupt):
        SelfPlayRun(tmp_path, options, progress=interrupt).run()
    with pytest.raises(TrainError, match="was begun with games=12: expected the same, not 13"):
        SelfPlayRun(tmp_path, preset("teacher", 4, "cpu", **{**TINY, "games": 13})).run()
    learner = Learner(options, CPU)
    learner.load(load_checkpoint(tmp_path / STATE))
    parameters = learner.optimiser.param_groups[0]["params"]
    assert all(learner.optimiser.state[one]["exp_avg"].stride() == one.stride() for one in parameters)
    state = load_checkpoint(tmp_path / STATE)
    state["net"]["entry.weight"] = state["net"]["entry.weight"][:, :5]
    save_checkpoint(tmp_path / STATE, state)
    with pytest.raises(TrainError, match="was begun with another kind of network: expected one of this version"):
        SelfPlayRun(tmp_path, options).run()
    (tmp_path / STATE).write_bytes(b"nothing")
    with pytest.raises(TrainError, match="cannot be read"):
        SelfPlayRun(tmp_path, options).run()


def test_a_learner_goes_on_where_torch_cannot_compile(monkeypatch):
    def refused(*_):
        raise TorchDynamoException("no compiler here")

    monkeypatch.setattr(torch, "compile", lambda function, **how: refused)
    options = preset("teacher", 4, "cpu", **TINY)
    own, opp = boards_of(options.rules, 20)[2:]
    positions = Positions(own, opp, torch.ones(20), torch.ones(20, 16, dtype=torch.uint8))
    with pytest.warns(RuntimeWarning, match="torch cannot compile _losses, which is slower without: no compiler here"):
        found = Learner(options, CPU, compiled=True).learn(positions, 2, lambda step: 1.0, seed=1)
    assert found == Learner(options, CPU).learn(positions, 2, lambda step: 1.0, seed=1)


def test_a_student_learns_from_a_teacher(tmp_path, json_lines, monkeypatch):
    sizes = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    (told,) = json_lines("train", "--teacher", "--size", "6", *sizes, "--threads", "1", "--out", tmp_path / "t")
    assert [row["empties"] for row in told["by_empties"]] == [10, 12, 14, 16, 18, 20]
    weights = teacher_of(tmp_path / "t")
    assert str(weights) == told["weights"]
    (exam,) = json_lines("exam", "--weights", weights, "--size", "6", "--positions", "10", "--empties", "10")
    assert {mark["evaluator"] for mark in exam["marks"]} > {"teacher", "six-factor"}
    monkeypatch.setitem(GAMES, "cpu", 12)
    asked = ["--distil", tmp_path / "t", "--positions", "700", "--epochs", "1", "--threads", "1"]
    (student,) = json_lines("train", *asked, "--out", tmp_path / "s")
    files = [np.load(path) for path in sorted((tmp_path / "s").glob("labels-*.npz"))]
    assert len(files) > 1
    assert (files[0]["own"][:50] != files[1]["own"][:50]).any()
    labels = {
        name: np.concatenate([file[name] for file in files]) for name in ("own", "opp", "score", "empties", "exact")
    }
    exact, rules = labels["exact"], Rules(6)
    assert 0.1 < exact.mean() < 0.9
    assert (labels["empties"][exact] <= 10).all()
    scores = solve_batch(labels["own"][exact][:50], labels["opp"][exact][:50], rules, threads=1)
    assert (labels["score"][exact][:50] == scores).all()
    boards = [board_tensor(labels[side][~exact][:50]) for side in ("own", "opp")]
    with torch.inference_mode():
        said = read_residual(weights).net(*boards)[1].numpy()
    assert np.allclose(labels["score"][~exact][:50], said, atol=1e-3)
    assert labels["empties"].min() == 1
    assert student["positions"] == 700
    with pytest.raises(TrainError, match="was made from another teacher, labeller or seed: expected the same"):
        distil(tmp_path / "t", tmp_path / "s", fit_preset(6, "deep", epochs=1, seed=1), positions=700)
    with pytest.raises(TrainError, match="is the teacher's own folder: expected another one"):
        distil(tmp_path / "t", tmp_path / "t", fit_preset(6, "deep", epochs=1))
    again = distil(tmp_path / "t", tmp_path / "s", fit_preset(6, "deep", epochs=1), positions=700)
    assert str(again.weights) != student["weights"]  # the command is part of the record …
    assert again.validation_error == pytest.approx(student["validation_error"])  # … but nothing was fitted again


def test_a_network_of_zero_teaches_too(tmp_path, monkeypatch):
    monkeypatch.setitem(GAMES, "cpu", 12)
    taught = SelfPlayRun(tmp_path / "z", preset("zero", 4, "cpu", **TINY, ladder=0)).run()
    assert not (tmp_path / "z" / "curve.svg").exists()
    assert teacher_of(tmp_path / "z") == taught.weights
    [labels] = Lessons(taught.weights, 0).read(tmp_path, 40)
    assert len(labels) == 40
    assert labels.exact.any()
    with pytest.raises(TrainError, match="labeller 'exact': expected an evaluator to search with"):
        Lessons(taught.weights, 0, labeller="exact")
    saved = SavedResidual(Rules(4), ResidualNet(4, channels=4, blocks=1), {"training": "none"})
    (tmp_path / "none.safetensors").write_bytes(saved.to_bytes())
    with pytest.raises(TrainError, match="is no teacher's: expected a file that `reversi train --teacher` or"):
        Lessons(tmp_path / "none.safetensors", 0)


def test_a_student_on_a_device_that_is_none_is_refused(tmp_path):
    teacher = tmp_path / "teacher.safetensors"
    teacher.touch()
    with pytest.raises(TrainError, match="device 'gpu': expected cpu or cuda"):
        distil(teacher, tmp_path / "student", fit_preset(6, network="linear"), device="gpu")


def test_a_search_may_label_what_a_teacher_plays(tmp_path, monkeypatch):
    """The same positions; those near the end are solved either way, the others are worth what the search finds."""
    monkeypatch.setitem(GAMES, "cpu", 12)
    weights, rules = SelfPlayRun(tmp_path / "z", preset("teacher", 6, "cpu", **TINY)).run().weights, Rules(6)
    [said] = Lessons(weights, 0).read(tmp_path / "z", 200)
    [found] = Lessons(weights, 0, labeller="discs:depth=2,mean=2").read(tmp_path, 200)
    assert (found.own == said.own).all()
    assert (found.exact == said.exact).all()
    assert (found.score == said.score)[found.exact].all()
    boards = found.own[~found.exact], found.opp[~found.exact]
    one, two = (search_batch(*boards, "discs", rules, depth, threads=1) for depth in (1, 2))
    assert (found.score[~found.exact] == (one + two) / 2).all()
    assert (found.depth[~found.exact] == 2).all()
    assert len(one) > 50
    with pytest.raises(TrainError, match="was made from another teacher, labeller or seed"):
        list(Lessons(weights, 0).read(tmp_path, 200))
    (tmp_path / "more").mkdir()
    [more] = Lessons(weights, 0, labeller="discs:depth=2,exact=12").read(tmp_path / "more", 200)
    assert (more.exact == (more.empties <= 12)).all()
    assert more.exact.sum() > found.exact.sum()
    with pytest.raises(TrainError, match="positions with 27 empties to be solved by labeller .*: expected at most 26"):
        Lessons(weights, 0, labeller="discs:depth=2,exact=27")
    monkeypatch.setattr("train.alphazero.distil.checked_device", torch.device)  # as if there were a GPU
    with pytest.raises(TrainError, match="positions with 17 empties .*: expected at most 16 on a GPU"):
        Lessons(weights, 0, "cuda", labeller="discs:depth=2,exact=17")


@pytest.mark.parametrize("options", [None, {}, {"exact": "a"}, {"exact": 60}, {"exact": True}])
def test_a_teacher_of_which_nothing_is_known_is_refused(tmp_path, options):
    path, record = tmp_path / "zero.safetensors", {"training": "zero", "options": options}
    path.write_bytes(SavedResidual(Rules(4), ResidualNet(4, channels=4, blocks=1), record).to_bytes())
    with pytest.raises(TrainError, match=r"solved positions of .* empties: expected 0 to 12"):
        Lessons(path, 0)


def test_another_teacher_of_the_same_name_is_another_one(tmp_path, monkeypatch):
    monkeypatch.setitem(GAMES, "cpu", 4)
    path, record = tmp_path / "zero.safetensors", {"training": "zero", "options": {"exact": 5}}
    for seed, expected in ((0, nullcontext()), (1, pytest.raises(TrainError, match="made from another teacher"))):
        torch.manual_seed(seed)
        path.write_bytes(SavedResidual(Rules(4), ResidualNet(4, channels=4, blocks=1), record).to_bytes())
        with expected:
            list(Lessons(path, 0).read(tmp_path, 10))


def test_labels_that_cannot_be_solved_end_the_search_beside(tmp_path, monkeypatch):
    """As Ctrl-C does: a search of millions of positions is not waited for."""

    def search_on(*boards, progress, **how):
        while True:
            progress(0)

    def fail(*boards, **how):
        raise TrainError("no device")

    monkeypatch.setattr("train.alphazero.distil.searched_scores", search_on)
    monkeypatch.setattr("train.alphazero.distil.exact_scores", fail)
    monkeypatch.setitem(GAMES, "cpu", 4)
    saved = SavedResidual(Rules(4), ResidualNet(4, channels=4, blocks=1), {"training": "zero", "options": {"exact": 5}})
    (tmp_path / "zero.safetensors").write_bytes(saved.to_bytes())
    lessons = Lessons(tmp_path / "zero.safetensors", 0, labeller="discs:depth=1")
    with pytest.raises(TrainError, match="no device"):
        list(lessons.read(tmp_path, 10))


def assert_it_plays(path, rules):
    """By its policy, one ply ahead and two, what is legal, and the same in every image of a position."""
    for own, opp in zip(*boards_of(rules, 8)[:2], strict=True):
        position = Position(rules, int(own), int(opp))
        if position.is_over():
            continue
        for depth in (0, 1, 2):
            assert make(f"teacher:{path},depth={depth},exact=0").choose(position) in position.legal_actions()
    with pytest.raises(WeightsError, match="is for 4x4 normal: expected one for 6x6 normal"):
        make(f"teacher:{path}").choose(Position.initial(Rules(6)))


def test_a_network_is_told_whether_the_number_of_empties_is_odd(tmp_path):
    """Files from before do without."""
    rules = Rules(6)
    own, opp, *boards = boards_of(rules)
    seen = []
    net = ResidualNet(6, channels=4, blocks=1)
    net.entry.register_forward_hook(lambda module, given, found: seen.append(given[0]))
    net(*boards)
    odd = torch.from_numpy(np.bitwise_count(own | opp) % 2 == 1)
    assert seen[0].shape[1] == 6
    assert (seen[0][:, 5] == odd[:, None, None]).all()
    assert 50 < odd.sum() < 150
    former = SavedResidual(rules, ResidualNet(6, channels=4, blocks=1, planes=5), {})
    data = former.to_bytes().replace(b'\\"planes\\": 5', b'\\"PLANES\\": 5')
    assert b"PLANES" in data
    path = tmp_path / former.file_name(data)
    path.write_bytes(data)
    assert read_residual(path).net.entry.in_channels == 5


def test_files_of_teachers_are_checked(tmp_path):
    rules = Rules(4)
    net = ResidualNet(4, channels=4, blocks=1)
    torch.nn.init.normal_(net.value.weight, std=0.01)
    saved = SavedResidual(rules, net, {"training": "none"})
    data = saved.to_bytes()
    path = tmp_path / saved.file_name(data)
    path.write_bytes(data)
    found = read_residual(path)
    own, opp, *_ = boards_of(rules, 20)
    evaluator = TorchEvaluator(ValueOfBoards(found.net, symmetric=True), rules, inputs="boards")
    values = evaluator.static_values(own, opp)
    images = batch.canonical(own, opp)[:2]
    assert np.allclose(values, evaluator.static_values(*images), atol=1e-4)
    assert np.ptp(values) > 0
    assert_it_plays(path, rules)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(WeightsError, match="damaged"):
        read_residual(path)
    other = tmp_path / "other.safetensors"
    other.write_bytes(
        data.replace(b'"channels\\": 4', b'"channels\\": 6', 1).replace(b'channels\\\\": 4', b'channels\\\\": 6')
    )
    with pytest.raises(WeightsError):
        read_residual(other)

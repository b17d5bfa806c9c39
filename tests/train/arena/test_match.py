"""Openings, batched games, single games, and the data of self-play."""

from itertools import islice

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules
from reversi_env.notation import Game, write_ggf
from search import evaluators
from search.agents.spec import make_agent
from search.engine.solver import solve, solve_all_moves
from studies.textbook import negamax
from tests.oracles.search import rounded, some_positions
from train import self_play
from train.arena.batch import EvaluatorPlayer, RandomPlayer, batch_player, perfect_moves, play_games
from train.arena.match import play_match
from train.arena.openings import Openings, opening_sequence, openings_of_file, random_openings
from train.arena.results import Results


@pytest.mark.parametrize(("size", "variant"), [(4, "reversed"), (6, "normal"), (8, "reversed")])
def test_random_openings_are_distinct_and_reproducible(size, variant):
    rules = Rules(size, variant)
    openings = list(islice(random_openings(rules, 4, 3), 10))
    assert openings == list(islice(random_openings(rules, 4, 3), 10))
    assert openings != list(islice(random_openings(rules, 4, 4), 10))
    assert len({opening.position.canonical() for opening in openings}) == 10
    for opening in openings:
        assert len(opening.moves) == 4
        assert opening.position == Position.initial(rules).play_all(opening.moves)
        assert not opening.position.is_over()


def test_openings_repeat_when_no_new_ones_exist():
    openings = list(islice(random_openings(Rules(4), 1, 0), 7))  # all four first moves are images of each other
    assert len(set(openings)) == 1
    assert [opening.moves for opening in islice(random_openings(Rules(), 0, 0), 3)] == [()] * 3


def test_balanced_openings_respect_the_disc_limit():
    for variant in ("normal", "reversed"):
        rules = Rules(4, variant)
        openings = list(islice(opening_sequence("balanced", rules, 4, 1), 8))
        assert all(abs(solve(opening.position).score) <= 2 for opening in openings)
        assert any(abs(solve(o.position).score) > 2 for o in islice(random_openings(rules, 4, 1), 8))
        assert len(set(islice(opening_sequence("balanced", rules), 8))) == 8  # by default there are enough
    with pytest.raises(ReversiError, match="balanced"):
        next(opening_sequence("balanced", Rules(4), 0, 1))  # white wins by ten


@pytest.mark.parametrize(
    ("name", "start"), [("lines.txt", "e6f4e3"), ("game.ggf", "e6f4e3"), ("archive.ggf", "e6f4e3"), ("board.obf", None)]
)
def test_openings_are_read_from_files(tmp_path, name, start):
    path, position = tmp_path / name, Position.initial().play_all(["e6", "f4", "e3"])
    content = {
        "lines.txt": "% two openings\ne6f4e3\n\nF5 d6 c3   % the second\n",
        "game.ggf": write_ggf(Game(Position.initial(), ("e6", "f4", "e3"))) + "\n",
        "archive.ggf": "1 " + write_ggf(Game(Position.initial(), ("e6", "f4", "e3"))) + "\n",
        "board.obf": f"{position.to_text()} O; % no moves known\n",
    }
    path.write_text(content[name])
    openings = openings_of_file(path, Rules())
    assert openings[0].position == position
    assert "".join(openings[0].moves) == (start or "")
    assert len(openings) == (2 if name == "lines.txt" else 1)
    assert [len(opening.moves) for opening in openings_of_file(path, Rules(), 1)] == (
        [1] * len(openings) if start else [0]
    )


def test_openings_of_a_wthor_file_are_truncated(external_data):
    path = sorted((external_data / "wthor").glob("*.wtb"))[0]
    openings = openings_of_file(path, Rules(), 10)
    assert {len(opening.moves) for opening in openings} <= {9, 10}
    assert openings[0].moves[0] == "f5"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        *(("", "openings"), ("e6f4e3\ne6e6\n", "line 2"), ("e6f4 zz\n", "line 1"), ("X" * 64 + " O;\n", "line 1")),
        ("X" * 36 + " O;\n", "line 1"),
        ("(;GM[Othello]TY[8a]B[d3];)\n", "game 1"),
    ],
)
def test_bad_opening_files_are_refused(tmp_path, content, place):
    path = tmp_path / "openings"
    path.write_text(content)
    with pytest.raises(ReversiError, match=place):
        openings_of_file(path, Rules())


RULES = Rules(6, "reversed")


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_chosen_squares_are_best_by_the_textbook_search(depth):
    own, opp = some_positions(RULES, 8, 14)
    player = EvaluatorPlayer("six-factor", RULES, depth, threads=1)
    squares = player.choose(own, opp, np.arange(own.size), np.arange(own.size, dtype=np.uint64))
    for mine, theirs, sq in zip(own.tolist(), opp.tolist(), squares.tolist(), strict=True):
        position = Position(RULES, mine, theirs)
        evaluator = evaluators.get_evaluator("six-factor")
        judge = rounded(evaluator) if depth > 1 else evaluator.static_value
        values = {a: -negamax(position.play(a), depth - 1, judge).value for a in position.legal_actions()}
        assert values[RULES.action_of(sq)] == pytest.approx(max(values.values()))


def test_perfect_moves_are_best_by_the_solver():
    own, opp = some_positions(RULES, 20, 24)
    squares = perfect_moves(own, opp, RULES, np.arange(own.size, dtype=np.uint64))
    for mine, theirs, sq in zip(own.tolist(), opp.tolist(), squares.tolist(), strict=True):
        values = solve_all_moves(Position(RULES, mine, theirs))
        assert values[RULES.name_of(RULES.action_of(sq))] == max(values.values())


def test_all_candidates_of_a_batch_play_the_same_games():
    first, second = (
        evaluators.get_evaluator("six-factor"),
        evaluators.get_evaluator("six-factor").with_weights(corner_weight=-800),
    )
    random_player, openings = RandomPlayer(RULES), Openings.random(RULES, 30, seed=2)
    candidates = EvaluatorPlayer([first, second], RULES, games_per_evaluator=60)
    together = play_games(candidates, random_player, openings.repeated(2), RULES, seed=9).discs
    for number, candidate in enumerate((first, second)):
        alone = play_games(EvaluatorPlayer(candidate, RULES, threads=1), random_player, openings, RULES, seed=9).discs
        assert np.array_equal(together[60 * number : 60 * (number + 1)], alone)
    assert not np.array_equal(together[:60], together[60:])


def test_swapping_the_players_negates_the_results():
    better, worse = EvaluatorPlayer("six-factor", RULES, 2), RandomPlayer(RULES)
    openings = Openings.random(RULES, 50)
    assert openings.a_moves.reshape(-1, 2).tolist() == [[True, False]] * 50
    results = play_games(better, worse, openings, RULES)
    swapped = play_games(worse, better, Openings(openings.own, openings.opp, ~openings.a_moves), RULES)
    assert results.score > 0.8
    assert np.array_equal(swapped.discs, -results.discs)


def test_batched_agents_play_the_games_of_single_agents():
    rules, spec = Rules(4), "six-factor:depth=2,seed=1"
    openings = Openings.random(rules, 3, 3, seed=4)
    player = batch_player(spec, rules)
    assert np.array_equal(
        play_games(player, batch_player("random", rules), openings, rules).discs,
        play_games(batch_player(make_agent(spec), rules), batch_player("random", rules), openings, rules).discs,
    )
    match = play_match(make_agent(spec), make_agent(spec), 2, rules, opening_plies=0)
    both = play_games(player, player, Openings.random(rules, 1, 0), rules)
    assert both.discs.tolist() == match.discs.tolist()


def test_results_count_draws_as_half_and_pair_the_games():
    discs = np.array([4, -4, 0, 2])
    results = Results(discs)
    assert (results.wins, results.draws, results.losses, results.score, results.discs_per_game) == (2, 1, 1, 0.625, 0.5)
    assert results.score_error == pytest.approx(0.125)  # pairs of 0.5 and 0.75
    assert Results(discs, paired=False).score_error == pytest.approx(np.std([1, 0, 0.5, 1], ddof=1) / 2)
    assert np.isnan(Results(discs[:2]).score_error)
    assert np.isnan(Results(discs[:3]).score_error)  # one pair, and a game without its partner
    nothing = Results(discs[:0])
    assert (nothing.score, nothing.discs_per_game, nothing.interval()) == (0, 0, (0, 1))


def test_score_interval_uses_the_variance_of_pairs():
    def width(discs, paired=True):
        low, high = Results(np.array(discs), paired).interval()
        return high - low

    alike, drawn = [2, -2] * 100, [2, 0, 0, 0, 0, -2] * 30
    assert Results(np.array(alike)).interval() == Results(np.array(alike[:100]), False).interval()  # a pair is a game
    assert width(drawn) < 0.75 * width(drawn, paired=False)
    assert width([2, 2, -2, -2] * 50) > 1.35 * width([2, -2, 2, 2, -2, -2, -2, 2] * 25)
    assert 0 < width([*drawn, 2]) - width(drawn) < 0.01  # a game without its partner
    low, high = Results(np.full(20, 4)).interval()
    assert (low < 0.8, high) == (True, 1)
    assert "100.0 % (95 % interval 72.2 to 100.0)" in str(Results(np.full(20, 4)))


def test_a_match_takes_specs_and_refuses_other_values():
    (game, _), (other, _) = play_match("random:seed=1", "greedy", 2, Rules(4)).sides
    assert [len(one.opening.moves) for one in (game, other)] == [2, 2]  # on 4x4 six plies are half the game
    with pytest.raises(ReversiError, match="agent 3"):
        play_match(3, "greedy", 2)


@pytest.mark.parametrize(
    ("agent", "rules"),
    [
        *(("random", Rules(4)), ("random", Rules(6, "reversed"))),
        *(("six-factor:depth=1,seed=1", Rules(4, "reversed")), (make_agent("greedy:seed=3"), Rules(4, "reversed"))),
    ],
)
def test_self_play_follows_the_rules_and_records_scores(agent, rules):
    played = self_play(agent, 6, rules, opening_plies=2, seed=4)
    assert set(np.unique(played.game)) == set(range(6))
    for game in range(6):
        rows = np.flatnonzero(played.game == game)
        assert played.ply[rows].tolist() == list(range(len(rows)))
        positions = [Position(rules, int(played.own[row]), int(played.opp[row])) for row in rows]
        for before, after, first, second in zip(positions, positions[1:], rows, rows[1:], strict=False):
            followers = [before.play(action) for action in before.legal_actions()]
            passes = [child.play("pass") for child in followers if child.must_pass()]
            passed = (after.own, after.opp) in {(child.own, child.opp) for child in passes}
            assert passed or (after.own, after.opp) in {(child.own, child.opp) for child in followers}
            assert played.score[second] == (1 if passed else -1) * played.score[first]
        ends = [child for child in map(positions[-1].play, positions[-1].legal_actions()) if child.is_over()]
        assert int(played.score[rows[-1]]) in {-child.score() for child in ends}


@pytest.mark.parametrize(("games", "plies", "seed"), [(0, 2, 0), (2, -1, 0), (2, 60, 0), (2, 2, -1)])
def test_bad_self_play_arguments_are_refused(games, plies, seed):
    with pytest.raises(ReversiError, match="expected|no random game"):
        self_play("random", games, Rules(4), opening_plies=plies, seed=seed)

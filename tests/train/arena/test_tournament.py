"""Tournaments: schedule, reproducible games, resumption, failures of programs, tables."""

import json
import re
import sys
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest

from reversi_env import BLACK, Position, ReversiError, Rules
from reversi_env.notation import read_ggf
from search.agents.base import Agent
from search.agents.book import UNCHECKED, Book
from tests.search.agents.test_external import FAKE
from train.arena.match import play_match
from train.arena.options import TournamentOptions
from train.arena.ratings import standings
from train.arena.sequential import Sprt
from train.arena.storage import GAMES, RECORDS
from train.arena.tournament import Tournament, read_tournament, run_tournament
from train.jobs.run import MANIFEST

#: Small boards and fixed depths: fast and deterministic.
AGENTS = ("six-factor:depth=1,table=0.1", "greedy", "random")


def options(*agents, **others):
    return TournamentOptions(agents or AGENTS, **{"games": 4, "size": 6, **others})


def program(how, after=3, limit=60):
    return f"gtp[limit={limit}]:{sys.executable} {FAKE} gtp --fail {how} --after {after}"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A complete tournament: (folder, result)."""
    folder = tmp_path_factory.mktemp("tournament")
    return folder, run_tournament(options(), folder)


def test_every_round_pairs_all_agents_with_both_colours():
    schedule = options("random", "greedy", "discs:depth=1", "mobility:depth=1", games=6)
    fixtures = [schedule.fixture(index) for index in range(schedule.total)]
    assert schedule.total == 6 * 6
    for number in range(3):
        meetings = {(f.black, f.white) for f in fixtures if f.round == number}
        assert meetings == {(a, b) for a in range(4) for b in range(4) if a != b}
    for first, second in pairwise(fixtures):
        if first.index % 2 == 0:
            assert (first.black, first.white, first.round) == (second.white, second.black, second.round)
    gauntlet = options(format="gauntlet")
    assert gauntlet.total == 2 * 4
    assert all(0 in (gauntlet.fixture(i).black, gauntlet.fixture(i).white) for i in range(gauntlet.total))


def test_equal_agents_get_numbered_names():
    assert options("greedy", "random", "greedy", "greedy").names == ("greedy", "random", "greedy #2", "greedy #3")


@pytest.mark.parametrize(
    ("agents", "others", "complaint"),
    [
        *((AGENTS, {"sprt": Sprt()}, "SPRT with 3 agents"), (AGENTS, {"plies": -1}, "plies=-1")),
        *((AGENTS, {"format": "swiss"}, "format='swiss'"), (AGENTS, {"size": 5}, "size 5")),
    ],
)
def test_bad_options_are_refused(agents, others, complaint, tmp_path):
    with pytest.raises(ReversiError, match=complaint):
        run_tournament(options(*agents, **others), tmp_path)


def test_games_are_saved_in_both_formats_and_read_back(played):
    folder, tournament = played
    lines = [json.loads(line) for line in (folder / GAMES).read_text().splitlines()]
    assert [line["game"] for line in lines] == list(range(12))
    games = list(read_ggf(folder / RECORDS))
    for line, game, record in zip(lines, games, tournament.records, strict=True):
        assert (game.black, game.white) == (line["black"], line["white"])
        assert game.start.rules == Rules(6)
        assert game.final().is_over()
        assert game.final().score(BLACK) == game.result == line["discs"] == record.game.discs
        assert len(line["seconds"]) == len(game.moves) - line["opening"]
    again = read_tournament(options(), folder)
    assert again.complete
    assert tournament.complete
    for one, other in zip(tournament.records, again.records, strict=True):
        assert (one.fixture, one.game.moves, one.game.discs) == (other.fixture, other.game.moves, other.game.discs)
        assert one.game.seconds == other.game.seconds


def test_standings_follow_from_the_records(played):
    _, tournament = played
    table = standings(tournament)
    assert table.players[0].name == AGENTS[0]
    for place, player in enumerate(table.players):
        number = AGENTS.index(player.name)
        own = [r for r in tournament.records if number in (r.fixture.black, r.fixture.white)]
        assert (player.games, player.wins + player.draws + player.losses) == (8, 8)
        assert player.score == pytest.approx(np.mean([record.points_of(number) for record in own]))
        assert len(player.seconds) > 0
        assert player.overruns == 0  # no agent has a time limit
        assert table.cross_table[place][place] is None
        assert player.rating.low <= player.rating.elo <= player.rating.high
    assert sum(player.discs_per_game for player in table.players) == pytest.approx(0)
    assert table.cross_table[0][1] == pytest.approx(1 - table.cross_table[1][0])


def test_cross_table_has_mean_points_with_draws(played):
    _, tournament = played
    records = [
        replace(record, game=replace(record.game, discs=2 * (number % 2)))
        for number, record in enumerate(tournament.records)
    ]
    table = standings(Tournament(tournament.options, records))
    places = [AGENTS.index(player.name) for player in table.players]
    for (row, own), (column, other) in permutations(enumerate(places), 2):
        met = [record for record in records if {record.fixture.black, record.fixture.white} == {own, other}]
        assert table.cross_table[row][column] == np.mean([record.points_of(own) for record in met])


def test_moves_over_the_time_limit_are_counted(tmp_path):
    chosen = options("six-factor:depth=1,table=0.1,time=1000", "random", games=2)
    tournament = run_tournament(chosen, tmp_path)
    records = list(tournament.records)
    assert [agent.time for agent in chosen.made_agents()] == [1000, None]
    slow = [2000.0] * len(records[0].game.seconds)
    object.__setattr__(records[0].game, "seconds", tuple(slow))
    by_name = {player.name: player for player in standings(tournament).players}
    own = sum(move != "pass" for move in records[0].game.moves[::2])
    assert by_name["six-factor:depth=1,table=0.1,time=1000"].overruns == own
    assert by_name["random"].overruns == 0
    assert max(by_name["random"].seconds) == 2000


def test_an_interrupted_tournament_resumes_with_missing_games(played, tmp_path):
    folder, _ = played
    numbers = []

    def note(record, done):
        numbers.append(record.fixture.index)
        if len(numbers) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tournament(options(), tmp_path, on_game=note)
    assert len(list(read_ggf(tmp_path / RECORDS))) == 5
    part = read_tournament(options(), tmp_path)
    assert (len(part.records), part.complete) == (5, False)
    lines = (tmp_path / GAMES).read_text().splitlines(keepends=True)
    (tmp_path / GAMES).write_text("".join([*lines[:1], *lines[2:4], lines[4][:40]]))
    run_tournament(options(), tmp_path, on_game=note)
    assert sorted(numbers) == sorted([*range(12), 1, 4])  # games 1 and 4 were lost, and only they were played again
    assert (tmp_path / RECORDS).read_bytes() == (folder / RECORDS).read_bytes()
    run_tournament(options(), tmp_path, on_game=note)
    assert len(numbers) == 14


def test_a_tournament_can_be_extended_by_more_games(played, tmp_path):
    folder, _ = played
    new = []
    run_tournament(options(games=2), tmp_path)
    run_tournament(options(games=4), tmp_path, on_game=lambda record, done: new.append(record.fixture.index))
    assert new == list(range(6, 12))
    assert (tmp_path / RECORDS).read_bytes() == (folder / RECORDS).read_bytes()
    with pytest.raises(ReversiError, match="games=4"):
        run_tournament(options(games=2), tmp_path)


def write_book(path, value):
    """Write a 4x4 book that contains only the start, without moves."""
    start = Position.initial(Rules(4)).canonical()
    columns = {"own": (start.own, np.uint64), "opp": (start.opp, np.uint64), "value": (value, np.int16)}
    columns |= {"depth": (1, np.uint8), "lines": (1, np.uint32), "checked": (UNCHECKED, np.int16)}
    path.write_bytes(
        Book(Rules(4), **{name: np.array([x], kind) for name, (x, kind) in columns.items()}, margin=3).to_bytes()
    )


def test_a_changed_file_of_an_agent_stops_resumption(tmp_path):
    """The agents share an evaluator and have one book each; both files are checked."""
    books = [tmp_path / name for name in ("one", "two")]
    for value, path in enumerate(books):
        write_book(path, value)
    chosen = options(*(f"{AGENTS[0]},book={path}" for path in books), size=4, games=2)
    run_tournament(chosen, tmp_path / "out")
    for path in books:
        content_before = path.read_bytes()
        write_book(path, 7)
        with pytest.raises(ReversiError, match=f"book={path}"):
            run_tournament(chosen, tmp_path / "out")
        path.write_bytes(content_before)
    weights = tmp_path / "weights"
    for name in ("zero", "rl", "rl-search"):
        hashes = []
        for content in (b"one", b"two"):
            weights.write_bytes(content)
            hashes.append(options(f"{name}:{weights}", "random").content_hashes())
        assert hashes[0] != hashes[1]
    assert options("zero", "random").content_hashes() == options("zero:simulations=2", "random").content_hashes() != {}


def test_a_folder_without_finished_games_counts_as_new(played, tmp_path):
    folder, whole = played
    first = []

    def stop(record, done):
        first.append(record.game.moves)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tournament(options(seed=7), tmp_path, on_game=stop)
    assert first[0] != whole.records[0].game.moves
    (tmp_path / GAMES).write_text((tmp_path / GAMES).read_text()[:40])  # its only line, truncated
    run_tournament(options(), tmp_path)
    assert json.loads((tmp_path / MANIFEST).read_text())["options"]["seed"] == 0
    assert (tmp_path / RECORDS).read_bytes() == (folder / RECORDS).read_bytes()


def test_unreadable_openings_create_no_folder(tmp_path):
    (tmp_path / "words.txt").write_text("no opening at all\n")
    for file in ("words.txt", "nothing.txt"):
        with pytest.raises(ReversiError, match=file):
            run_tournament(options(openings=str(tmp_path / file)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_damaged_folders_are_refused(played, tmp_path):
    folder, _ = played
    with_checksums = (folder / GAMES).read_text().splitlines(keepends=True)
    lines = [re.sub(', "crc32": [0-9]+', "", line) for line in with_checksums]
    manifest = (folder / MANIFEST).read_text()
    for content, place in (
        ([with_checksums[0].replace('"seconds": [', '"seconds": [9')], "line 1 .*CRC"),
        ([lines[0], "{]\n", lines[1]], "line 2"),
        ([lines[0], lines[0]], "line 2"),
        ([lines[0].replace("greedy", "random")], "game 0"),
        ([lines[0].replace('"moves": "', '"moves": "a1')], "line 1"),
        ([lines[0], re.sub('"discs": -?[0-9]+', '"discs": 63', lines[1])], "line 2"),
        ([re.sub('"moves": "[^"]*', '"moves": "', lines[0])], "line 1"),
    ):
        (tmp_path / MANIFEST).write_text(manifest)
        (tmp_path / GAMES).write_text("".join(content))
        with pytest.raises(ReversiError, match=place):
            run_tournament(options(), tmp_path)
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(ReversiError, match="manifest.json"):
        run_tournament(options(), tmp_path)


@pytest.mark.slow
def test_failing_programs_forfeit_and_the_tournament_continues(tmp_path):
    kinds = {program("crash"): "crash", program("hang", after=0, limit=0.1): "timeout", program("illegal"): "illegal"}
    chosen = options(*kinds, "random", games=2)
    tournament = run_tournament(chosen, tmp_path)
    assert tournament.complete
    assert len(tournament.records) == 12
    by_name = {player.name: player for player in standings(tournament).players}
    assert (by_name["random"].wins, by_name["random"].forfeits) == (6, [])
    for spec, kind in kinds.items():
        assert len(by_name[spec].forfeits) == by_name[spec].losses
        assert {forfeit.kind for forfeit in by_name[spec].forfeits} == {kind}
    forfeits = [record.game.forfeit for record in tournament.records]
    assert [record.game.forfeit for record in read_tournament(chosen, tmp_path).records] == forfeits
    assert {game.ending for game in read_ggf(tmp_path / RECORDS)} == {"timeout", "resigned"}


def test_a_program_unable_to_play_fails_before_the_first_game(tmp_path):
    positions = tmp_path / "positions.obf"
    positions.write_text("--------------OX----XX-----X-------- O;\n")
    chosen = options(f"gtp:{sys.executable} {FAKE} gtp", "random", openings=str(positions))
    with pytest.raises(ReversiError, match="opening 1 of .* is a position"):
        run_tournament(chosen, tmp_path / "out")


@pytest.mark.parametrize(("depth", "opponent", "seed", "verdict"), [(1, 1, 3, "H0"), (4, 2, 0, "H1")])
def test_an_sprt_stops_within_a_hundred_games(tmp_path, depth, opponent, seed, verdict):
    """Equally good moves are drawn at random, so with other seeds one test in twenty fails."""
    agents = [f"six-factor:depth={plies},table=0.1" for plies in (depth, opponent)]
    chosen = options(*agents, games=1000, sprt=Sprt(0, 50), seed=seed)
    tournament = run_tournament(chosen, tmp_path)
    assert (tournament.verdict, tournament.complete) == (verdict, True)
    assert len(tournament.records) <= 100
    assert tournament.pairs.sum() * 2 == len(tournament.records)
    assert Sprt(0, 50).verdict(tournament.pairs) == verdict
    again = run_tournament(chosen, tmp_path)
    assert len(again.records) == len(tournament.records) == len((tmp_path / GAMES).read_text().splitlines())


@pytest.mark.slow
def test_number_of_distinct_openings_is_reported(json_lines, tmp_path):
    """All first moves are symmetric images, so deterministic agents would repeat the same two games."""
    arguments = ("tournament", "random", "greedy", "--size", 4, "--plies", 1, "--games", 4, "--out", tmp_path)
    [result] = json_lines(*arguments, "--workers", 1)
    assert result["openings"] == 1


@pytest.mark.parametrize("wrong", [{"games": 2.0}, {"games": True}, {"seed": -1}, {"seed": 1.5}, {"opening_plies": -1}])
def test_match_options_must_be_integers_in_range(wrong):
    (name,) = wrong
    with pytest.raises(ReversiError, match=f"{name}="):
        play_match("greedy", "random", **{"games": 2, **wrong})


@pytest.mark.parametrize("answer", [None, "d3", 0, 99, -1, 1.0])
def test_an_illegal_answer_names_the_agent(answer):
    class Confused(Agent):
        def choose(self, position):
            return answer

    with pytest.raises(ReversiError, match="Confused"):
        play_match(Confused(), "greedy", 2, Rules(4), opening_plies=0)

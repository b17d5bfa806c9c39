"""What all commands have in common: what is wrong is said in one line, with status 2 and nothing on standard output.

Bad input of every command, and what is said about it. FILE is an empty file, and no other is there.
"""

import json
import shlex

import pytest

from play.cli.output import print_json
from play.cli.usage import LARGEST_NUMBER

FOUR_EMPTIES = "OXOOOOOOXXXOOXOXXXOOXXXXXXXXXXXXOXXXXXXXOOXXXOXXOOXX-OX-OXOO--XX X;"
REFUSALS = """
mtach => reversi: No such command 'mtach'
play --level 9 => reversi play: --level 9: expected 4 or less (see
play --watch --colour white => --colour white with --watch: expected one of them, agents play both
play --opponent greedy => --opponent without --watch: expected --agent
play --game 2 => --game 2 without --load: expected a file with games
play --load FILE => file 'FILE' is empty: expected a game, GGF or moves
play --agent nobody => agent 'nobody' is unknown (did you mean 'nboard'?): expected
play --size 5 => size 5 is not supported: expected
play --adviser x --watch => expected
gtp --time soon => reversi gtp: --time soon: expected a number (see
gtp nobody => agent 'nobody' is unknown
gtp six-factor:depth=0 => depth='0'
gtp network:weights=none --size 4 => none
gtp random --size 5 => size 5 is not supported: expected one of 4, 6, 8
match gredy random => agent 'gredy' is unknown (did you mean 'greedy'?)
match greedy:depth=3 random => option 'depth=3' of agent 'greedy:depth=3' is unknown
match greedy:seed=x random => seed='x' of agent 'greedy:seed=x': expected a whole number
match greedy:seed=-1 random => expected a whole number, 0 or more
match greedy random --games 3 => 3 games: expected an even number
match greedy random --size 4 --plies 40 => no opening of 40 random plies
match greedy => reversi match: Missing argument 'B'. (see reversi match --help)
match greedy random -g -2 => reversi match: --games -2: expected 2 or more (see
match greedy random --games x => reversi match: --games x: expected a whole number (see
match a b -v foo => reversi match: --variant foo: expected one of 'normal', 'reversed' (see
match greedy greedy --time -1 => --time -1: expected seconds above 0
match six-facto random => agent 'six-facto' is unknown
match six-factor:time=abc random => time='abc'
connect ftp://x => expected HOST or HOST:PORT
connect a:b => expected HOST or HOST:PORT
serve --host '' --port 0 --database out => cannot listen on
serve --host a..b --port 0 --database out => cannot listen on
serve --port 0 --database out --wthor none => no WTHOR files in 'none': expected *.wtb there
analyse start --tme 3 => reversi analyse: No such option: --tme
analyse FILE => file 'FILE' is empty: expected a game, GGF or moves
analyse gone.gff => 'gone.gff' is neither a board nor moves, and no such file is there: expected
analyse XO => board 'XO' has 2 squares: expected 16, 36 or 64
analyse 'XXXXOOOO--??----' => '?' at square c3
analyse f5f5 => move 2
analyse f5d6 X => side 'X' with the moves of a game: expected no side
analyse f5d6 --after 3 => --after 3 in a game of 2 moves
analyse start --after 3 => --after 3 with a board
analyse 4 --size 6 => --size 6 with a game on 4x4: expected the same
analyse f5d6 --game 1 => --game 1 with the moves of a game: expected a file with games
analyse start --game 1 => --game 1 with a board: expected a file with games
analyse missing.ggf => file 'missing.ggf' cannot be read
analyse start green => side 'green': expected X (black) or O (white)
analyse start X --time -1 => time=-1.0: expected seconds above 0
analyse start X --agent greedy => does not search: expected an evaluator such as six-factor
analyse start X --agent six-factor:depth=-1 => depth='-1'
analyse start X --agent six-factor:time=abc => time='abc'
analyse start --depth 1000 => --depth 1000: expected 60 or less
book build FILE --size 6 => 'FILE' is a file: expected a folder
book check --book FILE => book 'FILE' cannot be read
book show --book FILE => book 'FILE' cannot be read
book show f5 --size 4 => f5
solve --start --size 8 => --start with --size 8: expected --size 4 or --size 6; 8x8 is out of reach
solve => expected either a FILE of problems or --start
solve - --start => expected either a FILE of problems or --start
solve --start --all-moves => --all-moves is for a FILE of problems
solve --start => --start without a board size: expected --size 4 or --size 6
solve - --checkpoint job.npz => --checkpoint is for --start
solve - --size 4 => --size is for --start
solve no-such-file.obf => file 'no-such-file.obf' cannot be read, no such file or directory: expected OBF
solve . => irectory
solve - --threads 5000 => threads=5000: expected
solve - --table 9999999999 => MiB: expected a number
solve --start --size 5 => --size 5: expected --size 4 or --size 6
solve --start --size 4 --checkpoint missing/job.npz => expected a file in a folder where you may write
evaluate - --agent foo => evaluator 'foo' is unknown: expected one of cell-utility, discs,
evaluate - --agent gtp:foo => evaluator 'gtp' is unknown: expected one of cell-utility
evaluate - --agent random => agent 'random' has no evaluation: expected one of cell-utility
evaluate - --agent six-facto => evaluator 'six-facto' is unknown (did you mean 'six-factor'?)
evaluate - --agent network:depth=4 => option 'depth' of 'network:depth=4': expected none but weights, nothing is searched
evaluate missing.obf --agent discs => missing.obf
perft --size 5 => size 5 is not supported: expected one of 4, 6, 8
perft --deep 3 => reversi perft: No such option: --deep
perft --depth 61 => --depth 61: expected 60 or less (see
analyse start --nodes 99999999999999999999 => --nodes 99999999999999999999: expected a number up to 1000000000000000 (see
perft --depth => reversi perft: Option '--depth' requires an argument. (see reversi perft --help)
demo --out FILE => --out 'FILE' is a file, or in one: expected a folder
demo --out x --games 3 => --games 3: expected an even number, since every opening is played
label FILE --count 10 => 'FILE' is a file: expected a folder, or a name for a new one
label FILE/x --count 10 => folder 'FILE/x' cannot be made, not a directory: expected a place
label x --count 10 --empties 40-50 => 50 empties to be solved by labeller 'exact': expected at most 24
label x --count 10 --empties 20-30 --labeller discs:depth=2,exact=25 => 25 empties to be solved by labeller 'discs:depth=2,exact=25'
label x --count 10 --labeller gredy => evaluator 'gredy' is unknown: expected one of cell-utility
puzzles out --size 4 => puzzles on the 4x4 board, which has too few positions: expected size 6 or 8
label out --count 10 --empties ten => --empties 'ten': expected a number or a range, as in 12 or 10-14
label out --count 10 --empties 14-10 => empties=14-10: expected a range from 1 to 59
label out --count 10 --count 0 => --count 0: expected 1 or more
label out --count 10 --size 5 => size 5 is not supported
label out --count 10 --depth 4 => --depth 4 with --labeller exact: expected an evaluator to search with
label out --count 10 --labeller discs:depth=2 --depth 4 => expected the depth in one place
label out --count 10 --labeller six-facto => evaluator 'six-facto' is unknown (did you mean 'six-factor'?)
label out --count 10 --labeller discs:probcut=1 => probcut=1 with evaluator 'discs' on the 8x8 board: expected 0, or weights
label out --count 10 --labeller network:probcut=x => probcut='x' of labeller 'network:probcut=x': expected a number from 0 to 10
label out --count 10 --labeller discs --depth 99 => depth='99' of labeller 'discs:depth=99': expected
label out --count 10 --player nobody => evaluator 'nobody' is unknown
label out --count 10 --device tpu => device 'tpu': expected one of cpu, cuda
label out --count 10 --shard-rows 0 => --shard-rows 0: expected 1 or more
label out --count 10 --play-depth 0 => --play-depth 0: expected 1 or more
label out --count 10 --noise 0.1,much => --noise '0.1,much': expected numbers with commas between them
label out --count 10 --temperature -1 => expected one or more numbers from 0 to 1000
label out --count 10 --prefixes 4,0.5 => --prefixes '4,0.5': expected whole numbers with commas between them
label out --count 5 --ray --workers 2 => --workers 2 with --ray: expected one of them
label out --count 5 --ray --device cuda => --device cuda with --ray or --workers: expected cpu there
label out --count 5 --ray ray://head:10001 => Ray address 'ray://head:10001': expected HOST:PORT
train FILE --out x => LABELS 'FILE' is a file: expected a folder that `reversi label` made
train --out out => LABELS is missing: expected a folder that `reversi label` made, or --bootstrap or --probcut
train labels => --out is missing: expected a folder for weights and logs
train labels --bootstrap -o out => LABELS 'labels' with --bootstrap: expected one of them
train labels -o out => 'labels' has no manifest.json: expected a folder that `reversi label` made
train labels -o out --size 6 => --size is not for a training on LABELS: expected it with --bootstrap
train --bootstrap -o out --held-out 0.1 => --held-out is not for --bootstrap: expected it with LABELS
train --bootstrap -o out --start network => --start is not for --bootstrap: expected it with LABELS
train --bootstrap -o out --size 5 => size 5 is not supported
train --bootstrap -o out --device tpu => device 'tpu': expected cpu or cuda
train labels -o out --epochs 0 => --epochs 0: expected 1 or more
train labels -o out --loss small => --loss small: expected one of 'plain', 'structural'
train labels --probcut FILE --out out => LABELS 'labels' with --probcut: expected one of them
tune nothing --out out => expected a formula
tune six-factor --games 3 --out out => games=3: expected an even number
tune six-factor --panel nothing --size 6 --out out => evaluator 'nothing' is unknown
tune six-factor --aim error --empties x --out out => --empties 'x': expected a number or a range
tune six-factor --aim error --empties 70 --out out => empties=70-70
tune six-factor --vary corner --out out => weight 'corner' of six-factor cannot vary
rl --out x --steps 99999999999999999999 => reversi rl: --steps 99999999999999999999: expected 1e+12 or less
rl => --out is missing
rl --out out --size 5 => 5
rl --out out --algorithm a2c => --algorithm a2c: expected one of 'ppo', 'tensor-ppo'
rl --out out --steps 0 => --steps 0: expected 1 or more
rl --out out --learning-rate 7 => --learning-rate 7: expected 1 or less
rl --out out --opponent six-facto => six-facto
rl --out out --device tpu => device 'tpu': expected cpu or cuda
rl --out out --algorithm tensor-ppo --opponent random => tensor-ppo plays itself and its past, expected none
rl --out out --precision double => --precision double
rl --out out --games 7 => games=7: expected an even number
rl zero => --out is missing
rl zero --out out --trace 2 => --trace 2: expected 1 or less
rl zero --out out --simulations 0 => --simulations 0: expected 1 or more
rl zero --out out --size 4 --exact 12 => exact=12: expected a whole number from 0 to 10
match zero:device=tpu random => device='tpu' of agent 'zero:device=tpu': expected cpu or cuda
rl --out FILE => expected a folder
tournament a b -w 1000000 => reversi tournament: --workers 1000000: expected 1024 or less
tournament greedy random --out FILE/x => --out 'FILE/x' is a file, or in one
tournament greedy random --time nan => --time nan: expected seconds above 0
tournament greedy random --limit 0 => --limit 0: expected seconds above 0
tournament greedy random --errors 2 => --errors 2 without --sprt: expected both, or neither
tournament greedy --out out => 1 agent: expected two or more
tournament greedy random --games 3 --out out => expected an even number
tournament greedy random --sprt 50 --out out => --sprt '50': expected two numbers of Elo
tournament greedy random --sprt 50,0 --out out => expected two numbers, the first one smaller
tournament greedy random --openings no-such-file --out out => openings 'no-such-file' cannot be read
tournament greedy gredy --out out => did you mean
tournament greedy gtp:no-such-program --out out => was not found
winrate greedy --time 0 => --time 0: expected seconds above 0
exam -e 3 -e x => reversi exam: --empties x: expected a whole number (see
exam --plot FILE/x.svg => --plot 'FILE/x.svg': expected a file in a folder
exam --plot x.gif => plot 'x.gif': expected a name that ends in .svg, .png or .pdf
measure depth --plot FILE/x.svg => --plot 'FILE/x.svg': expected a file in a folder
measure regret greedy --csv . => --csv '.' is a folder: expected a file
measure regret greedy --cache FILE => --cache 'FILE' is a file, or in one: expected a folder
measure structural nothing => evaluator 'nothing' is unknown
measure structural network --size 4 => network for 4x4 normal: the package has no weights
measure structural --empties 70 => empties=70-70
measure depth --games 5 => games=5: expected an even number, 4 or more
measure depth --baseline nothing => evaluator 'nothing' is unknown
experiment breadht => reversi experiment: No such command 'breadht'
experiment all --out FILE => --out 'FILE' is a file, or in one: expected a folder
experiment breadth --plot FILE/x.svg => --plot 'FILE/x.svg': expected a file in a folder
experiment breadth --games 150 => games=150: expected a multiple of 100
experiment breadth --size 5 => size
experiment breadth --plot x.gif => expected a name that ends in .svg, .png or .pdf
experiment nodes --evaluator nothing => evaluator 'nothing' is unknown
experiment nodes --games 1 => --games 1: expected 2 or more
experiment winner --games 3 => games=3: expected an even number
experiment winner --player nothing --size 4 => evaluator 'nothing' is unknown
experiment branching --depth 13 => --depth 13: expected 12 or less
experiment 000 --games 3 => --games 3: expected 4 or more
experiment 001 --games 1 => --games 1
experiment 002 --games 5 => games=5
experiment 003 --deepest 9 => --deepest 9
experiment 004 --depth 1 => --depth 1: expected 3 or more
experiment tuning --empties a-b => --empties 'a-b'
experiment all --only nothing => experiment 'nothing' is unknown: expected one of breadth
""".strip().splitlines()


def check_refusal(reversi, arguments, message):
    code, out, err = reversi(*arguments, stdin=FOUR_EMPTIES)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("reversi")
    assert message in err
    assert len(err) < 450


@pytest.mark.parametrize("refusal", REFUSALS)
def test_bad_input_is_one_line(reversi, tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    command, _, message = refusal.partition(" => ")
    check_refusal(reversi, shlex.split(command), message)
    assert {path.name for path in tmp_path.iterdir()} <= {"FILE", "out"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("analyse", "X" * 5000), "5,000 squares: expected 16, 36 or 64"),
        (("perft", "--depth", "9" * 5000), "9…: expected a whole number (see"),
        (("analyse", "start", "--nodes", "9" * 20), f"expected a number up to {LARGEST_NUMBER} (see"),
    ],
)
def test_what_is_far_too_long_is_cut(reversi, arguments, message):
    check_refusal(reversi, arguments, message)


def test_what_is_not_a_number_is_null_in_json(capsys):
    print_json({"score": 1.0, "errors": [float("nan"), {"wide": float("inf")}], "games": (2, 3)})
    assert json.loads(capsys.readouterr().out) == {"score": 1.0, "errors": [None, {"wide": None}], "games": [2, 3]}

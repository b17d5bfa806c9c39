"""Errors of all commands: bad input gives status 2, one line that names the input, and no standard output.

Each row has a command, and the option or input that the error line names. FILE is an empty file.
"""

import json
import shlex

import pytest

from play.cli.output import print_json

FOUR_EMPTIES = "OXOOOOOOXXXOOXOXXXOOXXXXXXXXXXXXOXXXXXXXOOXXXOXXOOXX-OX-OXOO--XX X;"
REFUSALS = """
mtach => did you mean 'match'
play --level 11 => --level
solve ---O-X-- => 8 squares
review b1a1 => --size 4
play --level 3 --agent greedy => --level
play --watch --colour white => --colour
play --opponent greedy => --opponent
play start --game 2 => --game
play FILE => FILE
play --tiem 3 => POSITION --tiem (did you mean '--time'?): expected a position, or an option
play --watch=maybe => --watch maybe: expected no value
analyse random.txt => 'random.txt' is not a text file: expected
analyse start third => argument 'third' is one too many
match gredy random => greedy
match greedy random --games 3 => games
match greedy => B is missing: expected a value (Agent spec
serve --host a..b --port 0 --database out => a..b
serve --host 1.2.3.4 --port 0 --database out => expected an address of this machine
analyse start --tme 3 => --time
analyse gone.gff => gone.gff
analyse XO => XO
analyse f5d6 --after 3 => --after
analyse XXXXOOOO-------- --size 6 => --size
analyse start --jsonl => start
analyse start --workers 2 => --jsonl
analyse start --agent greedy => greedy
analyse start --depth 1000 => --depth
analyse start --agent network:depth=4 --depth 0 => depth
book check --book FILE => FILE
book show f5 --size 4 => f5
solve start --size 8 => --size
network FILE => safetensors
review f5 --picture game.jpg => expected a name that ends in .gif, .png or .svg
solve - --table 9999999999 => MiB
perft --depth => --depth
cache --all => --all
demo --out FILE => --out
label FILE --count 10 => FILE
label out --count 10 --labeller discs:depth=2 --depth 4 => --depth
train labels => labels
train fit labels => --out
train alphazero --out out --size 4 --exact 12 => exact
tune six-factor --vary corner --out out => corner
tournament greedy random --sprt 50 --out out => --sprt
tournament greedy gtp:no-such-program --out out => no-such-program
exam --plot x.gif => --plot
exam --wthor nowhere => nowhere
exam --out out => --out
exam --whole-games => agents
exam greedy --whole-games -n 8 => 8x8
exam greedy --whole-games -n 4 --depth 2 => --depth
exam greedy --whole-games -n 4 -w 2 --ray local => --workers
measure regret greedy --csv . => --csv
measure regret greedy greedy => greedy
experiment breadht => breadht
experiment all --only nothing => nothing
bench gpu --parts state => --parts
bench search --against nowhere => nowhere
""".strip().splitlines()

#: Files of random bytes.
RANDOM = ("random.ggf", "random.txt")


def check_refusal(reversi, arguments, message):
    code, out, err = reversi(*arguments, stdin=FOUR_EMPTIES)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("reversi")
    assert message in err
    assert len(err) < 450
    return err


@pytest.mark.parametrize("refusal", REFUSALS)
def test_bad_input_is_reported_in_one_line(reversi, tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    for name in RANDOM:
        (tmp_path / name).write_bytes(bytes(7919 * i % 256 for i in range(300)))
    command, _, message = refusal.partition(" => ")
    check_refusal(reversi, shlex.split(command), message)
    assert {path.name for path in tmp_path.iterdir()} <= {"FILE", "out", *RANDOM}


@pytest.mark.parametrize("arguments", [("analyse", "X" * 5000), ("perft", "--depth", "9" * 5000)])
def test_long_input_is_shortened_in_errors(reversi, arguments):
    check_refusal(reversi, arguments, arguments[-1][:40])


def test_nan_and_infinity_are_null_in_json(capsys):
    print_json({"score": 1.0, "errors": [float("nan"), {"wide": float("inf")}], "games": (2, 3)})
    assert json.loads(capsys.readouterr().out) == {"score": 1.0, "errors": [None, {"wide": None}], "games": [2, 3]}

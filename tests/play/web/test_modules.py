"""Run the tests of page modules without DOM in node, with games and ratings computed in Python."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from play.server.http.app import PAGE
from reversi_env import Position, Rules

TESTS = Path(__file__).with_name("modules.test.mjs")


def rating_interval(results):
    """Return the posterior mean of a rating after (opponent's rating, score) pairs, and its 95 % interval."""
    own, weights = range(-700, 3301, 5), []
    for mine in own:
        weight = 2.0**500 * 2.718281828459045 ** (-(((mine - 1300) / 500) ** 2) / 2)
        for theirs, score in results[-50:]:
            wins = 1 / (1 + 10 ** ((theirs - mine) / 400))
            weight *= wins**score * (1 - wins) ** (1 - score)
        weights.append(weight)
    total, so_far, inside = sum(weights), 0.0, []
    for mine, weight in zip(own, weights, strict=True):
        so_far += weight / total
        inside += [mine] if so_far >= 0.025 and so_far - weight / total < 0.975 else []
    mean = sum(mine * weight for mine, weight in zip(own, weights, strict=True)) / total
    return mean, inside[0], inside[-1]


def games(generator):
    for size, start in ((4, "standard"), (4, "parallel"), (6, "standard"), (8, "standard"), (8, "parallel")):
        position, steps = Position.initial(Rules(size, start=start)), []
        while not position.is_over():
            legal = position.legal_moves()
            move = generator.choice(legal)
            steps.append({"board": position.to_text(), "turn": str(position.turn), "legal": legal, "move": move})
            position = position.play(move)
        end = {"board": position.to_text(), "turn": str(position.turn), "legal": [], "move": None}
        yield {"size": size, "start": start, "steps": [*steps, end]}


def ratings(generator):
    lists = [[], [(757, 0)] * 3, [(2316, 1)] * 60]
    lists += [[(generator.randint(700, 2400), generator.choice((0, 0.5, 1))) for _ in range(n)] for n in (1, 6, 70)]
    for results in lists:
        rating, low, high = rating_interval(results)
        shown = [{"rating": theirs, "score": score} for theirs, score in results]
        yield {"results": shown, "rating": rating, "low": low, "high": high, "count": min(50, len(results))}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_page_modules_in_node(tmp_path):
    generator = random.Random(1)
    shutil.copytree(PAGE, tmp_path / "web", ignore=shutil.ignore_patterns("*.py*"))
    (tmp_path / "web" / "package.json").write_text('{"type": "module"}')
    cases = {"games": list(games(generator)), "ratings": list(ratings(generator))}
    (tmp_path / "web" / "cases.json").write_text(json.dumps(cases))
    run = subprocess.run(["node", "--test", TESTS], cwd=tmp_path / "web", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout

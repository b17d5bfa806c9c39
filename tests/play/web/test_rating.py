"""The page's arithmetic of ratings, against a slow twin."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from play import web

SOURCE = Path(web.__file__).with_name("rating.js")


def believed(results):
    """The mean of ratings, each weighed by how well it explains (opponent's rating, score), and where 95 % of the weight lies."""
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


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_ratings_are_what_their_twin_believes():
    generator = random.Random(2)
    cases = [[], [(757, 0)] * 3, [(2316, 1)] * 60]
    cases += [[(generator.randint(700, 2400), generator.choice((0, 0.5, 1))) for _ in range(n)] for n in (1, 6, 70)]
    told = json.dumps([[{"rating": rating, "score": score} for rating, score in case] for case in cases])
    script = f"{SOURCE.read_text()}\nconsole.log(JSON.stringify({told}.map(estimate)));"
    run = subprocess.run(["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    for case, found in zip(cases, json.loads(run.stdout), strict=True):
        mean, low, high = believed(case)
        assert found["rating"] == pytest.approx(mean, abs=1e-6)
        assert (found["low"], found["high"], found["count"]) == (low, high, min(50, len(case)))
        assert low < mean < high

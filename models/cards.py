"""Model cards: what a weight file says about itself, as Markdown for people.

``python -m models.cards`` writes those of the package's weights into ``docs/models.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from models.network import FOLDER
from models.networks import Network, read_weights
from search import cuts as selective
from search.cuts import Cuts, from_table

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
BEGIN, END = "<!-- cards:begin -->", "<!-- cards:end -->"
#: Numbers of empty squares that a card shows.
SHOWN = (4, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40)
#: Standard errors on either side of a mean that hold 95 % of a normal distribution.
Z_95 = 1.959964
#: Errors of a stage with fewer positions are left out: a twentieth is held out, and a hundred are wanted.
FEWEST_POSITIONS = 2000


def annotate(path: Path, folder: Path | None = None, **facts: Any) -> Path:
    """Write the weights of a file again with *facts* added to its record, and where: another hash, another name.

    For what is measured after the training, such as ``exam=`` and ``matches=`` (a mapping from opponents to results).
    """
    weights = read_weights(path)
    return replace(weights, record=weights.record | facts).save_in(folder or path.parent)


def card(path: Path) -> str:
    """The card of one weight file."""
    weights = read_weights(path)
    rules = weights.rules
    lines = [f"### {rules.size}×{rules.size} {rules.variant}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_escaped(text)} |" for name, text in _facts(path, weights)]
    if "exam" in weights.record:
        lines += _exam_tables(weights.record["exam"])
    stages = weights.record.get("figures", [])
    if stages:
        lines += ["", "| stage | positions | labels | epochs | error of held-out positions |", "|---|---|---|---|---|"]
        options = {stage["stage"]: how for stage, how in zip(stages, _stage_options(weights.record), strict=False)}
        lines += [_stage_row(stage, options.get(stage["stage"], {})) for stage in stages]
    return "\n".join(lines) + "\n"


def _facts(path: Path, weights: Network) -> Iterator[tuple[str, str]]:
    """The rows of a card; what the record does not know is left out."""
    record = weights.record
    yield "file", f"`{path.name}`, {path.stat().st_size / 1e6:.1f} MB"
    yield "architecture", weights.summary()
    if record.get("command"):
        yield "trained by", f"`{record['command']}`"
    elif record.get("training"):
        yield "trained by", f"{record['training']}, seed {record.get('seed', '?')}"
    places = [f"{name} {record[name]}" for name in ("device", "version", "commit") if record.get(name)]
    if places:
        yield "on", ", ".join(places)
    positions = record.get("positions") or sum(stage.get("positions", 0) for stage in record.get("figures", []))
    if positions:
        yield "positions", f"{positions:,}"
    if record.get("player_sha256"):
        yield "of games played by", f"the weights with SHA-256 `{record['player_sha256'][:12]}…`"
    errors = _errors(record)
    if errors:
        yield "mean absolute error of held-out positions, in discs, by empty squares", _by_empties(errors)
    if record.get("probcut"):
        yield from _probcut(from_table(record["probcut"]))
    if record.get("note"):
        yield "note", str(record["note"])
    for opponent, result in record.get("matches", {}).items():
        yield f"games: {opponent}", str(result)


def _probcut(cuts: Cuts) -> Iterator[tuple[str, str]]:
    """How well shallow searches foretell deep ones, and the end of the game, at few, at some and at many empty squares."""
    empties = (cuts.empties[0], sum(cuts.empties) // 2, cuts.empties[1])
    to_the_end = cuts.pairs[0].deep == selective.END
    pairs = [
        f"{'' if to_the_end else f'{pair.deep} '}by {pair.shallow}: "
        + " ".join(f"{cuts.deviation(pair, count):.1f}" for count in empties)
        for pair in cuts.pairs
    ]
    counts = ", ".join(str(count) for count in empties[:-1]) + f" and {empties[-1]}"
    kind = "to the end" if to_the_end else "depth by depth"
    yield f"ProbCut, {kind}: standard deviation in discs at {counts} empty squares", "; ".join(pairs)
    if cuts.ends is not None:
        yield from _probcut(cuts.ends)


def _errors(record: Mapping[str, Any]) -> dict[int, float]:
    """Error by number of empties, each by the last stage that was measured at it."""
    stages = [stage for stage in record.get("figures", []) if stage.get("positions", 0) >= FEWEST_POSITIONS]
    rows = [*(stage.get("error_by_empties", {}) for stage in stages), record.get("error_by_empties", {})]
    return {int(empties): error for row in rows for empties, error in row.items()}


def _exam_tables(exam: Mapping[str, Any]) -> Iterator[str]:
    """An exam (`train.judging.exam.Exam.as_dict`): errors of static values, and what the best move one ply ahead gives away."""
    papers = exam["papers"]
    heads = [f"{paper['empties']} empties" for paper in papers]
    command = f"reversi exam --wthor FOLDER --positions {max(paper['positions'] for paper in papers)}"
    marks = {(mark["evaluator"], mark["empties"]): mark for mark in exam["marks"]}
    names = dict.fromkeys(name for name, _ in marks)

    def row(name: str, cells: Iterable[str]) -> str:
        return f"| {' | '.join([name, *cells])} |"

    yield from ("", row(f"`{command}`: mean absolute error of the static value, discs", heads))
    yield row("---", ["---"] * len(heads))
    for name in names:
        found = [marks[name, paper["empties"]] for paper in papers]
        yield row(f"`{name}`", (f"{mark['error']:.2f} ± {Z_95 * _standard_error(mark):.2f}" for mark in found))
    yield row("always 0", (f"{paper['mean_score']:.2f}" for paper in papers))
    yield row("positions of tournament games", (f"{paper['positions']:,}" for paper in papers))
    if all("bias" in mark for mark in marks.values()):
        yield from ("", row("bias for the side to move, discs", heads))
        yield row("---", ["---"] * len(heads))
        for name in names:
            yield row(f"`{name}`", (f"{marks[name, paper['empties']]['bias']:+.2f}" for paper in papers))
    yield from ("", row("given away by the best move one ply ahead, discs (how often none)", heads))
    yield row("---", ["---"] * len(heads))
    for name in names:
        found = [marks[name, paper["empties"]] for paper in papers]
        yield row(f"`{name}`", (_given_away(mark) for mark in found))


def _standard_error(mark: Mapping[str, Any]) -> float:
    """That of a mark's error; files of version 0.2.0 and before name it a deviation."""
    return mark["error_standard_error"] if "error_standard_error" in mark else mark["error_deviation"]


def _given_away(mark: Mapping[str, Any]) -> str:
    return "–" if mark["regret"] is None else f"{mark['regret']:.2f} ({mark['best_moves']:.0%})"


def _by_empties(errors: Mapping[int, float]) -> str:
    return ", ".join(f"{empties}: {errors[empties]:.2f}" for empties in SHOWN if empties in errors)


def _stage_options(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The options of every stage of a bootstrap (`train.fitting.stages.Stage`)."""
    return list(record.get("options", {}).get("stages") or [])


def _stage_row(stage: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    kind, low, high, *_ = str(stage["stage"]).split("-")
    labels = "exact"
    if kind != "exact":
        depth, mean = int(kind.removeprefix("depth")), options.get("mean", 1)
        depths = " and ".join(str(plies) for plies in range(depth - mean + 1, depth + 1))
        labels = f"{'search' if mean == 1 else 'mean of searches'} to {depths} plies"
    error = f"{stage['validation_error']:.2f}"
    return f"| {low} to {high} empties | {stage['positions']:,} | {labels} | {stage['epochs']} | {error} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def cards(folder: Path = FOLDER) -> str:
    """The cards of all weight files of a folder, largest board first."""
    paths = sorted(folder.glob("*.safetensors"), key=lambda path: (-int(path.name[0]), path.name))
    return "\n".join(card(path) for path in paths)


def updated(page: str) -> str:
    """The text of ``docs/models.md`` with the cards of the weights that are there now."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{cards()}\n{END}", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

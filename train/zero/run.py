"""`ZeroRun`: AlphaZero's whole training in one folder (`SelfPlayRun`), measured on the ladder and in solved endgames."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import Any

from models.residual import symmetric_answers
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.judging.exact import ExactSet
from train.labels.labellers import exact_scores
from train.rl.figures import training_figure
from train.rl.ladder import Ladder
from train.teacher.playing import Positions
from train.teacher.self_play import SelfPlayRun
from train.zero.games import play, search_of
from train.zero.options import ZeroOptions
from train.zero.players import ZeroPlayer

PLOT = "curve.svg"
#: Solved positions in which the network is judged, for each number of empties.
REGRET_POSITIONS = 100


class ZeroRun(SelfPlayRun[ZeroOptions]):
    """One run in one folder."""

    kind, policy_weight = "zero", 0.5

    def __init__(self, folder: Path, options: ZeroOptions, *, cache: Path | None = None, **how: Any) -> None:
        """*cache*: where solved positions are kept, by default the user's; *how*: as `SelfPlayRun` has it."""
        super().__init__(folder, options, device=options.device, **how)
        self.cache = cache

    def _games(self, number: int) -> Positions:
        doing = f"generation {number + 1}/{self.options.generations}: playing, plies"
        solve = partial(exact_scores, rules=self.rules, device=self.device.type, threads=self.threads)
        how: Any = (solve, self.options, self._seed(number, 0), self.device, partial(self.progress, doing))
        return play(self._search, *how)

    @cached_property
    def _search(self) -> Any:
        return search_of(self.learner.answers, self.options, self.device, self.threads)

    # --- how good it is ---------------------------------------------------------------------------

    def _exam(self, where: dict[str, int]) -> dict[str, Any]:
        """The network by its policy alone: points against each rung, Elo, and what it gives away in solved endgames."""
        options = self.options
        if "generation" not in where:
            wanted = where["last_steps"] == options.last_steps
        else:
            done = where["generation"] + 1
            wanted = done % options.evaluate == 0 or (done == options.generations and not options.last_steps)
        if not wanted:
            return {}
        self.progress("on the ladder", 0, 1)
        return self._measured(ZeroPlayer(self.learner.answers, self.rules, self.device))

    def _measured(self, player: ZeroPlayer) -> dict[str, Any]:
        standing, judged = self._ladder.measure(player), self._truth.batch_regret(player).overall
        found = {"elo": standing.elo, "elo_low": standing.low, "elo_high": standing.high}
        points = {name: round(results.score, 4) for name, results in standing.scores.items()}
        figures = {name: round(value, 1) for name, value in found.items()}
        return {**figures, "regret": round(judged.regret, 3), "optimal": round(judged.optimal, 4), "points": points}

    def examined(self) -> dict[str, dict[str, Any]]:
        """The finished network as the agent ``zero`` plays: by its policy, seen in eight images, and with a search."""
        answers = self.learner.answers
        players = {
            "policy": ZeroPlayer(symmetric_answers(answers, self.rules), self.rules, self.device),
            f"{self.options.simulations} simulations": ZeroPlayer(answers, self.rules, self.device, self._search),
        }
        found = {}
        for number, (name, player) in enumerate(players.items()):
            self.progress("examining", number, len(players))
            found[name] = self._measured(player)
        return found

    @cached_property
    def _ladder(self) -> Ladder:
        return Ladder(self.rules, self.options.ladder, self.options.seed)

    @cached_property
    def _truth(self) -> ExactSet:
        positions = EndgameOptions(self.options.size, self.options.variant, REGRET_POSITIONS)
        return noisy_endgames(positions, self.cache, threads=self.threads, progress=self.progress)

    # --- figures ----------------------------------------------------------------------------------

    def _log_rows(self) -> list[dict[str, Any]]:
        """The points of an evaluation in columns of their own."""
        return [
            {**{name: value for name, value in row.items() if name != "points"}, **row.get("points", {})}
            for row in self.figures
        ]

    def _draw(self) -> None:
        """Points and Elo over the generations, where there is matplotlib."""
        measured = [(number, row) for number, row in enumerate(self.figures, 1) if "points" in row]
        rows = [
            {**row, "steps": number, "rungs": {name: {"points": of} for name, of in row["points"].items()}}
            for number, row in measured
        ]
        if rows:
            game = f"{self.rules.size}x{self.rules.size} {self.rules.variant}"
            over = "generations, then pieces of the last steps"
            training_figure(rows, game, over).save(self.folder / PLOT, optional=True)

"""The options of all studies; nothing heavy is imported, because help reads them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from reversi_env.errors import TrainError
from reversi_env.options import GameOptions, option, option_fields
from reversi_env.rules import Variant

#: Number of groups of random games; the spread between groups gives the standard error.
GAME_GROUPS = 100


@dataclass(frozen=True)
class StudyOptions(GameOptions):
    """Options of a study, in the order of its command."""

    #: The command after ``reversi``; the class argument *study*.
    study: ClassVar[str]

    def __init_subclass__(cls, study: str = "") -> None:
        cls.study = study

    @property
    def command(self) -> str:
        words = ["reversi", self.study]
        for one in option_fields(type(self)):  # type: ignore[arg-type]  # mypy: no Hashable of a frozen class's type
            value, name = getattr(self, one.name), f"--{one.name.replace('_', '-')}"
            if not one.help:  # the names of evaluators are arguments
                words[2:2] = value
            else:
                words += [name, "-".join(map(str, value)) if one.is_tuple else str(value)]
        return " ".join(words)

    def measured(self, **values: Any) -> dict[str, Any]:
        """Return *values* with the game, the options and the command that repeats the measurement."""
        game, command = {"size": self.size, "variant": self.variant}, {"command": self.command}
        return {**game, **values, **command, "options": self.as_dict()}


@dataclass(frozen=True)
class BreadthOptions(StudyOptions, study="experiment breadth"):
    """Which game, and how many random games."""

    games: int = option(20_000, "Random games, a multiple of 100.")
    seed: int = option(0, "Random seed.", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.games < GAME_GROUPS or self.games % GAME_GROUPS:
            raise TrainError(f"games={self.games}: expected a multiple of {GAME_GROUPS}, the number of groups")


@dataclass(frozen=True)
class GammaOptions(StudyOptions, study="experiment 000"):
    """Which game; games against each opponent, for each γ; plies searched."""

    variant: Variant = option("reversed", "Rules: normal (most discs win) or reversed (fewest discs win).")
    games: int = option(100, "Games against each opponent.", low=4, even=True)
    depth: int = option(3, "Plies searched.", low=1, high=6)
    seed: int = option(0, "Random seed.", low=0)


@dataclass(frozen=True)
class LevelOptions(StudyOptions, study="experiment 001"):
    """Which game, and games between each pair of levels."""

    games: int = option(200, "Games of each pair of levels.", low=4, even=True)
    seed: int = option(0, "Random seed.", low=0)


@dataclass(frozen=True)
class GreedyOptions(StudyOptions, study="experiment 002"):
    """Which game; games for every figure; and the budget of a tuning."""

    variant: Variant = option("reversed", "Rules: normal (most discs win) or reversed (fewest discs win).")
    games: int = option(1000, "Games for each figure.", low=4, even=True)
    generations: int = option(30, "Rounds of a tuning.", low=1)
    population: int = option(24, "Candidates per generation.", low=4)
    tuning_games: int = option(500, "Games of a candidate.", low=2)
    seed: int = option(0, "Random seed.", low=0)


@dataclass(frozen=True)
class PlyOptions(StudyOptions, study="experiment 003"):
    """Which game; games for each ply and colour; the deepest search."""

    games: int = option(100, "Games for each ply and colour.", low=2)
    deepest: int = option(6, "Most plies searched.", low=1, high=8)
    seed: int = option(0, "Random seed.", low=0)


@dataclass(frozen=True)
class PruningOptions(StudyOptions, study="experiment 004"):
    """Which game; random games that positions are taken from, one per round; the deepest search with pruning."""

    games: int = option(4, "Random games, with a position from each round.", low=1)
    depth: int = option(7, "Deepest search, in plies.", low=3, high=10)
    seed: int = option(0, "Random seed.", low=0)


@dataclass(frozen=True)
class LabelTuningOptions(StudyOptions, study="experiment tuning"):
    """Which game; exact scores tuned against, and as many to measure on; empty squares; budget; runs with other seeds."""

    positions: int = option(4000, "Exact scores.", low=10)
    empties: tuple[int, int] = option((8, 12), "Empty squares, as in 8-12.")
    generations: int = option(40, "Rounds of a tuning.", low=1)
    population: int = option(16, "Candidates per generation.", low=4)
    seeds: int = option(2, "Runs of each optimiser.", low=1)
    seed: int = option(0, "Random seed.", low=0)


@dataclass(frozen=True)
class DepthOptions(StudyOptions, study="measure depth"):
    """Which evaluators, by default the published ones; positions; seconds and plies of a search; the baseline and games.

    Plies gained are measured at ``play_depth``: the evaluator searches to this depth, and the baseline ever deeper until both
    score equally (or the other way round).
    """

    names: tuple[str, ...] = ()
    positions: int = option(12, "Positions searched.", low=2)
    seconds: float = option(0.1, "Seconds per position.", low=0.01)
    depth: int = option(8, "Depth at which nodes are counted, in plies.", low=1)
    baseline: str = option("cell-utility", "Evaluator played against.")
    play_depth: int = option(2, "Plies searched in games.", low=1, high=6)
    games: int = option(80, "Games for each number of additional plies of the baseline.", low=4, even=True)
    seed: int = option(0, "Random seed.", low=0)

    def __post_init__(self) -> None:
        from search import evaluators

        object.__setattr__(self, "names", self.names or evaluators.published_names())
        super().__post_init__()
        for name in (*self.names, self.baseline):
            evaluators.get_evaluator(name).record(self.rules)  # refuses an evaluator without weights for the game

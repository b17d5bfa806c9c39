"""The stages of a bootstrap and its options: which positions, how they are labelled, and how the network is fitted to them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from reversi_env.errors import TrainError
from reversi_env.options import GameOptions, option
from train.fitting.options import FitOptions, preset

#: How games are played: as for labels by default, with more large errors. Positions of strong play resemble those of real games,
#: the others those inside a search tree. Keys are field names of `LabelOptions`.
GAMES: dict[str, Any] = {"temperature": (0.5, 1.0, 2.0, 4.0), "prefixes": (4, 8, 12, 20, 40)}
#: For a trained player, with smaller errors and shorter random openings: 0.03 discs less error than GAMES on tournament positions.
GAMES_DEEP: dict[str, Any] = {"temperature": (0.25, 0.5, 1.0, 2.0), "noise": (0.0, 0.02), "prefixes": (4, 8, 12, 20)}
#: The first moves: random games reach most of their few positions, and a search may meet any of them.
GAMES_OPENING: dict[str, Any] = {"noise": (0.1, 0.5, 1.0), "prefixes": (1, 4)}
#: The 4x4 board has so few positions that only random games find them.
GAMES_4X4: dict[str, Any] = {"noise": (0.5, 1.0), "prefixes": (1, 4)}


@dataclass(frozen=True)
class Stage:
    """``count`` positions with ``low`` to ``high`` empties, solved (``depth`` 0) or searched, and the options of their fit.

    The label is the mean of the ``mean`` deepest searches (`train.labels.labellers.LabellerPlan`). ``joint`` fits all phases to
    all labels so far; otherwise only the phases of the stage are fitted, starting from the weights of the phase below. ``games``
    are options of `train.labels.LabelOptions`.
    """

    low: int
    high: int
    count: int
    depth: int = 0
    mean: int = 1
    joint: bool = False
    fit: FitOptions = field(default_factory=FitOptions)
    games: dict[str, Any] = field(default_factory=lambda: dict(GAMES))

    @property
    def name(self) -> str:
        kind = f"depth{self.depth}" if self.depth else "exact"
        return f"{kind}-{self.low}-{self.high}{'-joint' if self.joint else ''}"


#: Maximum empties of solved positions, by board size: as many as a GPU can solve. Maximum empties of training positions.
EXACT = {8: 14, 6: 13}
LAST, LAST_DEEP = {8: 50, 6: 25}, {8: 47, 6: 25}
#: Further stages of a deep network: thousands of positions for every three more empties.
OPENING = {8: (600, 300, 5, 0.3), 6: (5, 0.3)}


def stages_of(size: int, scale: float = 1.0, network: str = "linear", exact: int | None = None) -> tuple[Stage, ...]:
    """Return the stages for a board and a kind of network.

    *scale* multiplies the numbers of positions; positions up to *exact* empties are solved, by default as many as a GPU can.
    """

    def stage(low: int, high: int, thousands: float, depth: int = 0, **more: Any) -> Stage:
        return Stage(low, high, max(100 * (high - low + 1), int(1000 * scale * thousands)), depth, **more)

    if size == 4:  # no more than a few hundred positions with 5 empties exist, and hardly any with more
        return (Stage(1, 5, 1500, games=dict(GAMES_4X4), fit=preset(size, network=network)),)
    from models.patterns import NETWORKS

    kind = NETWORKS[network]
    fits = {part: preset(size, network=network, **kind.stage_presets.get(part, {})) for part in PARTS}
    return CURRICULA[kind.curriculum](stage, size, exact or EXACT[size], fits)


def _joint(stage: Callable[..., Stage], size: int, exact: int, fits: dict[str, FitOptions]) -> tuple[Stage, ...]:
    """Return stages of four plies, each with its own phases, and a last one for all phases."""
    last = LAST[size]
    return (
        stage(1, exact - 2, 1200, fit=fits["solved"]),
        stage(min(8, exact - 1), exact, 5600, fit=fits["solved"]),
        *(stage(low, low + 3, 1200, 4, fit=fits["searched"]) for low in range(exact + 1, last, 4)),
        stage(exact + 1, last, 360, 6, joint=True, fit=fits["joint"]),
    )


def _opening(stage: Callable[..., Stage], size: int, exact: int, fits: dict[str, FitOptions]) -> tuple[Stage, ...]:
    """Return stages with millions of positions, up to the first moves; both searches of a stage end in trained phases."""
    last, opening = LAST_DEEP[size], OPENING[size]
    solved = {"fit": fits["solved"], "games": dict(GAMES_DEEP)}
    searched = {"mean": 2, "fit": fits["searched"], "games": dict(GAMES_DEEP)}
    first = {**searched, "games": dict(GAMES_OPENING)}
    return (
        stage(1, exact - 5, 3000, **solved),
        stage(exact - 4, exact, 12_500, **solved),
        *(stage(low, min(low + 2, last), 2000, 4, **searched) for low in range(exact + 1, last + 1, 3)),
        *(stage(last + 3 * k + 1, last + 3 * k + 3, count, 4, **first) for k, count in enumerate(opening)),
    )


#: Orders of the stages by name (`Network.curriculum`), and the parts whose fits may differ.
CURRICULA = {"joint": _joint, "opening": _opening}
PARTS = ("solved", "searched", "joint")


@dataclass(frozen=True)
class BootstrapOptions(GameOptions):
    """The game, network and size of a training from scratch.

    A ``scale`` of 1 is meant for a GPU and many cores; on two cores 0.004 takes 17 s on 6x6. With a ``player``, such as the
    network of an earlier run, all stages with the same settings of games take their positions from the same games, which is much
    faster. Without one, games are played by a heuristic at first, and then by the network of the stage before.
    """

    scale: float = option(
        1.0, "Factor on the numbers of positions of all stages; 1 is for a GPU and many cores.", low=1e-6, high=1000
    )
    seed: int = option(0, "Random seed of the games and the fits.", low=0, high=(1 << 32) - 1)
    network: Literal["linear", "deep"] = option(
        "linear",
        "Network type: linear (one weight per state of a pattern) or deep (a vector per state and a small head).",
    )
    player: str | None = option(
        None, "Evaluator that plays the games, such as network (default: a heuristic, then the network in training)."
    )
    exact: int | None = option(
        None, "Solve positions with at most this many empties (default: 14 on 8x8, 13 on 6x6).", low=8, high=20
    )
    stages: tuple[Stage, ...] | None = option(None, "Stages that replace those of the board size.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.player is not None:
            import models.evaluator  # noqa: F401 - registers the evaluator `network`
            from search import evaluators

            evaluators.get_evaluator(self.player)
        if self.exact is not None and self.size == 4:
            raise TrainError("exact for the 4x4 board: expected none, all of it is solved")
        if self.stages is None:
            object.__setattr__(self, "stages", stages_of(self.size, self.scale, self.network, self.exact))
        if not self.stages:
            raise TrainError("no stages: expected one or more")

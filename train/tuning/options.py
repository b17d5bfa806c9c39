"""`TuneOptions`; the help of `reversi tune` reads them, so imports are light."""

from dataclasses import dataclass
from typing import Any

from reversi_env.options import Options, option


@dataclass(frozen=True)
class TuneOptions(Options):
    """The weights to tune, and the optimiser."""

    formula: str = option("ten-weight", "Heuristic evaluator, with or without initial weights of a file.")
    varied: tuple[str, ...] | None = option(
        None, "Name of a weight to tune; repeat for more (default: those that its authors tuned)."
    )
    optimiser: str = option("cma", "Optimiser: genetic or cma.", choices=("genetic", "cma"))
    generations: int = option(60, "Number of generations.", low=1)
    population: int = option(24, "Candidates per generation.", low=4)
    seed: int = option(0, "Random seed.", low=0)
    from_published: bool = option(False, "Start from the published weights instead of random ones.")

    def described(self) -> dict[str, Any]:
        """Return the options as JSON, without the number of generations."""
        content = self.as_dict()
        del content["generations"]
        return content

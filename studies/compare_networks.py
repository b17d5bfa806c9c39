"""The networks beside each other: same labels, several seeds, and the dense one also without augmentation.

    python -m studies.compare_networks --size 6 --empties 6-10 --positions 20000 --seeds 3

Every seed plays its own games, solves the positions and fits every network to them with the options of `reversi train`. They
are measured as in `studies.compare_losses`, on positions of other games that none has seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from models.networks import NETWORKS
from models.trainable import Trainable
from studies.compare_losses import EXAM_SEED, CompareOptions, Measured, Way, measure, range_of, table, unseen
from train.fitting.fit import FitOptions, fit, preset
from train.fitting.trees import grow, single_nodes


def compare(options: CompareOptions, epochs: int | None = None) -> list[Way]:
    """All networks, measured with all seeds; *epochs* instead of those of `reversi train`."""
    found: dict[str, list[Measured]] = {}
    for seed in range(options.seeds):
        labels = single_nodes(options.labels(seed, options.positions))
        exam = unseen(grow(options.labels(EXAM_SEED + seed, options.exam)), labels)
        for name, net, how in _networks(options, seed):
            fit(net, labels, replace(how, epochs=epochs or how.epochs))
            found.setdefault(name, []).append(measure(net, exam))
    return [Way(name, tuple(measured)) for name, measured in found.items()]


def _networks(options: CompareOptions, seed: int) -> Iterator[tuple[str, Trainable, FitOptions]]:
    """Every network with the options of its fit."""
    size, variant = options.size, options.variant
    for network, kind in NETWORKS.items():
        for augment in (True,) if kind.symmetric else (True, False):
            name = network if augment else f"{network}, not augmented"
            how = preset(size, variant, network, seed=seed, augment=augment)
            yield name, Trainable(network, size, 0 if kind.symmetric else seed), how


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.compare_networks", description=__doc__.split("\n")[0])
    defaults = CompareOptions()
    parser.add_argument("--size", type=int, choices=[4, 6, 8], default=defaults.size)
    parser.add_argument("--variant", choices=["normal", "reversed"], default=defaults.variant)
    parser.add_argument("--empties", default="6-10", help="lowest and highest number of empty squares")
    parser.add_argument("--epochs", type=int, help="instead of those of reversi train")
    for name in ("positions", "exam", "seeds"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    given = vars(parser.parse_args(arguments))
    empties, epochs = range_of(parser, given.pop("empties")), given.pop("epochs")
    print(table(compare(CompareOptions(empties=empties, **given), epochs), "network"), flush=True)


if __name__ == "__main__":
    main()

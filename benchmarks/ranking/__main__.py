"""Ranking MQ2007-agg: precision, recall and NDCG of the first documents by every loss.

Every loss is trained on every fold; a run that is there is not repeated.

``python -m benchmarks.ranking`` takes about fifteen minutes of one core, ``--quick`` one minute.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.common import results
from benchmarks.ranking.boosting import lambdamart
from benchmarks.ranking.data import Documents, Fold, fold
from benchmarks.ranking.losses import BASELINES
from benchmarks.ranking.metrics import KS, RESULTS
from benchmarks.ranking.training import Loss, steps_of, train
from setpoint import Implicit, precision_at_k

RATES = {"linear": (0.02, 0.005), "mlp": (0.005, 0.002)}
EPOCHS, SEEDS = 12, 3


def ours(k: int, steps: int) -> Loss:
    """Our default for the precision of the first ``k``."""
    criterion = Implicit(precision_at_k(k).per("query"), steps=steps)
    return lambda scores, batch: criterion(scores, batch.labels, queries=batch.queries)


def baseline(name: str) -> Loss:
    """A loss of others."""

    def loss(scores: Tensor, batch: Documents) -> Tensor:
        return BASELINES[name](scores, batch.grades, batch.queries)

    return loss


def losses(data: Fold, epochs: int) -> dict[str, Loss]:
    """Every method by name; ours is trained once for every k."""
    steps = steps_of(data, epochs)
    mine = {f"setpoint k={k}": ours(k, steps) for k in KS}
    return {**{name: baseline(name) for name in BASELINES}, **mine}


def main() -> None:
    parser = results.parser(__doc__, quick="one fold, linear, 3 passes", seeds=SEEDS)
    parser.add_argument("--folds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--models", nargs="+", default=["mlp", "linear"])
    parser.add_argument("--rates", type=int, default=2, help="learning rates tried, at most 2")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.quick:
        options.folds, options.models, options.rates, options.epochs = [1], ["linear"], 1, 3
        options.seeds = 1
    torch.set_num_threads(1)
    done = {tuple(row["run"]) for row in results.read(options.out)}
    for seed in range(1, options.seeds + 1):
        for number in options.folds:
            for run, make in runs(fold(number), number, seed, options):
                if run not in done:
                    _write(options.out, {"run": run, **make()})


def runs(
    data: Fold, number: int, seed: int, options: argparse.Namespace
) -> Iterator[tuple[tuple[object, ...], Callable[[], dict[str, object]]]]:
    """What is run on a fold, by its name; LightGBM beside the neural scorers."""
    epochs = options.epochs
    for kind in options.models:
        for rate in RATES[kind][: options.rates]:
            for name in losses(data, epochs):

                def one(kind: str = kind, rate: float = rate, name: str = name) -> dict:
                    loss = losses(data, epochs)[name]  # anew: a criterion counts its steps
                    return train(data, loss, kind, learning_rate=rate, epochs=epochs, seed=seed)

                yield (name, kind, number, rate, epochs, seed), one
    if not options.quick:
        run = ("LightGBM lambdarank", "trees", number, 0.05, 0, seed)
        yield run, lambda: lambdamart(data, seed)


def _write(path: Path, row: dict[str, object]) -> None:
    results.append(path, row, packages=("lightgbm",))
    print(row["run"], round(float(row["seconds"]), 1), flush=True)


if __name__ == "__main__":
    main()

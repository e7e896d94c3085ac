"""Train every loss on every fold and append one row a run; a run that is there is not repeated.

``python -m benchmarks.ranking`` takes about ten minutes of one core, ``--quick`` one minute.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.ranking.boosting import lambdamart
from benchmarks.ranking.data import Documents, Fold, fold
from benchmarks.ranking.losses import BASELINES
from benchmarks.ranking.metrics import KS, RESULTS
from benchmarks.ranking.training import Loss, steps_of, train
from setpoint import Implicit, precision_at_k

RATES = {"linear": (0.02, 0.005), "mlp": (0.005, 0.002)}
EPOCHS, SEED = 12, 1


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--models", nargs="+", default=["mlp", "linear"])
    parser.add_argument("--rates", type=int, default=2, help="learning rates tried, at most 2")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--quick", action="store_true", help="one fold, linear, 3 passes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.quick:
        options.folds, options.models, options.rates, options.epochs = [1], ["linear"], 1, 3
    torch.set_num_threads(1)
    done = set()
    if options.out.exists():
        done = {tuple(json.loads(line)["run"]) for line in options.out.open()}
    for place in range(options.rates):
        for number in options.folds:
            data = fold(number)
            for kind in options.models:
                rate = RATES[kind][place]
                for name in losses(data, options.epochs):
                    run = (name, kind, number, rate, options.epochs, SEED)
                    if run not in done:
                        loss = losses(data, options.epochs)[name]
                        row = train(
                            data,
                            loss,
                            kind,
                            learning_rate=rate,
                            epochs=options.epochs,
                            seed=SEED,
                        )
                        _write(options.out, {"run": run, **row})
            run = ("LightGBM lambdarank", "trees", number, 0.05, 0, SEED)
            if place == 0 and run not in done and not options.quick:
                _write(options.out, {"run": run, **lambdamart(data, SEED)})


def _write(path: Path, row: dict[str, object]) -> None:
    with path.open("a") as file:
        file.write(json.dumps({**row, "torch": torch.__version__}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    print(row["run"], round(float(row["seconds"]), 1), flush=True)


if __name__ == "__main__":
    main()

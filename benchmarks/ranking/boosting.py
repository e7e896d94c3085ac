"""LightGBM's lambdarank: trees, not a neural scorer, as the reference from outside."""

from time import process_time

import lightgbm
import numpy as np

from benchmarks.ranking.data import Documents, Fold
from benchmarks.ranking.metrics import KS, metrics

TREES = 150


def lambdamart(fold: Fold, seed: int) -> dict[str, object]:
    """For each k the number of trees with the best validation precision, and its test metrics."""
    started = process_time()
    train = lightgbm.Dataset(fold.train.x.numpy(), fold.train.grades.numpy(), group=_sizes(fold[0]))
    settings = {
        "objective": "lambdarank",
        "learning_rate": 0.05,
        "num_leaves": 15,
        "min_data_in_leaf": 50,
        "num_threads": 1,
        "seed": seed,
        "verbose": -1,
    }
    model = lightgbm.train(settings, train, num_boost_round=TREES)
    seen = {n: _measure(model, fold.validation, n) for n in range(10, TREES + 1, 10)}
    row: dict[str, object] = {}
    for k in KS:
        best = max(seen, key=lambda n: seen[n][f"P@{k}"])
        row[str(k)] = {
            "validation": seen[best][f"P@{k}"],
            "epoch": best,
            "chosen": seen[best],
            "test": _measure(model, fold.test, best),
        }
    return {**row, "seconds": process_time() - started}


def _sizes(documents: Documents) -> np.ndarray:
    return np.unique(documents.queries.numpy(), return_counts=True)[1]


def _measure(model: lightgbm.Booster, documents: Documents, trees: int) -> dict[str, float]:
    scores = model.predict(documents.x.numpy(), num_iteration=trees, num_threads=1)
    return metrics(scores, documents.grades.numpy(), documents.queries.numpy())

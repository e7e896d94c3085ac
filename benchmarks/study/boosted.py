"""What many users would take instead: LightGBM, stopped early, and a threshold moved by hand."""

from typing import Any

import lightgbm

from benchmarks.study.metrics import judged, metrics
from setpoint.datasets import DataSplit

NAME = "LightGBM"
SETTINGS = {"objective": "binary", "learning_rate": 0.05, "num_leaves": 31, "num_threads": 1}
TREES, PATIENCE = 500, 30


def train(parts: DataSplit, seed: int) -> list[dict[str, Any]]:
    """One row for every goal."""
    first = lightgbm.Dataset(parts.train.x, parts.train.y)
    second = lightgbm.Dataset(parts.validation.x, parts.validation.y, reference=first)
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    options = SETTINGS | {"seed": seed, "verbosity": -1}
    trees = lightgbm.train(options, first, TREES, valid_sets=[second], callbacks=[stop])
    seen, tests = (
        metrics(trees.predict(part.x), part.y) for part in (parts.validation, parts.test)
    )
    return [
        {
            "goal": goal,
            "method": NAME,
            "validation": round(seen[goal], 4),
            "test": round(tests[goal], 4),
            "step": trees.best_iteration,
        }
        for goal in judged(parts.test.y)
    ]

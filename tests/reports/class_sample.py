"""A run for several classes to report on."""

import numpy as np

from setpoint.results import RunResult

NAMES = ("cat", "dog", "bird")


def draw(n=400, seed=0, count=3):
    """Scores in which a frequent class is too high, and labels."""
    rng = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(count)
    labels = np.concatenate(
        [np.arange(count), rng.choice(count, n - count, p=shares / shares.sum())]
    )
    scores = rng.normal(size=(n, count)) + np.log(shares / shares.sum())
    scores[np.arange(n), labels] += 2
    return scores, labels


def class_result(**changes):
    parts = ("train", "validation", "calibration", "test")
    splits = {name: draw(seed=i) for i, name in enumerate(parts)}
    given = {
        "goal": 'maximize macro(recall) subject to recall of "bird" >= 0.6',
        "classes": NAMES,
        "splits": splits,
        "threshold": (0.5, 0.0, -0.5),
        "certificate": {
            "status": "certified",
            "confidence": 0.95,
            "claims": [{"bound": 'recall of "bird" >= 0.6', "proved": 0.71}],
        },
        "label": "kind",
        "method": "implicit",
        "seed": 3,
        "versions": {"setpoint": "0.1.0"},
        "history": [{"epoch": i, "loss": 1 / (1 + i), "status": "held"} for i in range(5)],
        "baseline": {name: s + np.sin(99 * s) for name, (s, _) in splits.items()},
        "columns": ["a", "b"],
    }
    return RunResult(**{**given, **changes})

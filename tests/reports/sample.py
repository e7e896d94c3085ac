"""A run to report on, and the words an attacker would use."""

import numpy as np

from setpoint.results import RunResult

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)> ' & &lt; <!-- ]]>",
    "long " + "x" * 5000,
    "emoji 🦄 and \u202eright to left, \x00 \x1b \ud800 odd",
)


def draw(n, seed, shift=2.5):
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.2
    return random.normal(size=n) + shift * y, y, np.where(random.random(n) < 0.3, "a", "b")


def certificate(status="certified", **more):
    return {"status": status, "confidence": 0.95, "guarantee": "pac", **more}


def result(**changes):
    parts = ("train", "validation", "calibration", "test")
    splits = {name: draw(1500, i) for i, name in enumerate(parts)}
    worse = {name: (s + np.sin(99 * s), y) for name, (s, y, _) in splits.items()}
    given = {
        "goal": "maximize recall subject to fpr <= 0.02",
        "splits": splits,
        "threshold": 2.4,
        "certificate": certificate(claims=[{"bound": "fpr <= 0.02", "proved": 0.0191}]),
        "positive": "fraud",
        "method": "Implicit",
        "seed": 3,
        "versions": {"setpoint": "0.1.0"},
        "history": [{"epoch": i, "loss": 1 / (1 + i), "status": "held"} for i in range(5)],
        "baseline": worse,
        "columns": ["age", "income"],
    }
    return RunResult(**{**given, **changes})

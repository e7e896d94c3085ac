"""Where it pays: the gain over the best baseline against what might explain it."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.points.tables import best_baseline, cells

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {"linear": "#0b6e4f", "mlp": "#c05621", "cnn": "#2b4c9b", "cnn-tiny": "#8b5fbf"}
RATES = {"fnr01": 0.001, "fnr1": 0.01, "pauc": 0.025, "prauc": 0.025, "pr95": 0.05, "f1": 0.5}
"""How extreme a goal is: the rate it is held at, or the middle of its range."""


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Three panels: capacity, rate, examples at the operating point."""
    facts = [fact for fact in _facts(rows) if fact]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
    for axis, (key, title, log) in zip(axes, PANELS, strict=True):
        for model in dict.fromkeys(f["model"] for f in facts):
            mine = [f for f in facts if f["model"] == model]
            x = np.array([f[key] for f in mine])
            if key == "rate":  # spread the few values a little, so that points can be told apart
                x = x * np.exp(np.random.default_rng(0).normal(0, 0.08, len(x)))
            y = [f["gain"] for f in mine]
            axis.scatter(x, y, s=14, alpha=0.7, color=COLOURS[model], label=model, lw=0)
        axis.axhline(0, color="0.6", lw=0.8, zorder=0)
        axis.set_xlabel(title)
        axis.set_xscale("log" if log else "linear")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("points over the best baseline")
    axes[0].legend(frameon=False)
    figure.savefig(file, dpi=150)
    plt.close(figure)


PANELS = (
    ("learnt", "cross-entropy's error: training / new data", False),
    ("rate", "rate the goal is held at", True),
    ("effective", "effective examples of the scarcer class", True),
)


def _facts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    return [_fact(key, seeds) for key, seeds in cells(rows).items()]


def _fact(key: tuple[Any, ...], seeds: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """One cell: its gain, and what cross-entropy's scores say of it."""
    both = (m for m in seeds.values() if "default" in m and "cross-entropy" in m)
    known = [m for m in both if m["cross-entropy"].get("train")]
    if not known:
        return None
    plain = [m["cross-entropy"] for m in known]
    left = [max(100 - p["validation"], 0.5) for p in plain]
    return {
        "data": key[0],
        "model": key[1],
        "goal": key[-1],
        "rate": RATES[key[-1]],
        "gain": float(np.mean([m["default"]["test"] - best_baseline(m)["test"] for m in known])),
        "learnt": float(
            np.mean([(100 - p["train"]) / rest for p, rest in zip(plain, left, strict=True)])
        ),
        "effective": float(np.mean([max(min(p["effective"]), 0.5) for p in plain])),
    }

"""What the demo leaves behind: every number as JSON, and the picture."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from setpoint._version import __version__
from setpoint.demo.plan import CORNER, GOALS, HELD_FPR, MODELS, Plan
from setpoint.demo.rows import Row
from setpoint.demo.trials import CROSS_ENTROPY, IMPLICIT, Trial
from setpoint.report import Panel, Series, draw_roc
from setpoint.results import mean_curve

SHOWN_FPR = (0.001, 0.1)


def write_results(path: Path, plan: Plan, trials: Sequence[Trial], rows: Sequence[Row]) -> None:
    """Versions, settings, every single trial, and the rows of the table."""
    content = {
        "versions": {
            "setpoint": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "data": "Letter (UCI, D. Slate 1991, CC BY 4.0), U against the other letters, 50/25/25",
        "seeds": list(range(plan.seeds)),
        "steps": plan.steps,
        "batch_size": plan.batch_size,
        "threads": torch.get_num_threads(),
        "learning_rates": {model.name: model.learning_rate for model in MODELS},
        "problems": {goal.name: str(goal.problem) for goal in GOALS},
        "trials": [
            {k: v for k, v in asdict(t).items() if k not in ("curve", "scores")} for t in trials
        ],
        "rows": [_plain(row) for row in rows],
    }
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _plain(row: Row) -> dict[str, Any]:
    """A row as JSON knows it: what is undefined for a single seed is null."""
    plain = asdict(row)
    for part in (value for value in plain.values() if isinstance(value, dict)):
        part.update({k: None for k, v in part.items() if not math.isfinite(v)})
    return plain


def write_picture(
    paths: Sequence[Path], plan: Plan, trials: Sequence[Trial], rows: Sequence[Row]
) -> None:
    """The ROC curves of the first goal, zoomed at the rate that is held."""
    drawn = [t for t in trials if t.goal == CORNER.name]
    gains = {row.model: row.gain.mean for row in rows if row.goal == CORNER.name}
    draw_roc(
        paths,
        [
            Panel(
                f"{model.title}: {_in_words(gains[model.name])}",
                (_series(CROSS_ENTROPY, model.name, drawn), _series(IMPLICIT, model.name, drawn)),
            )
            for model in MODELS
        ],
        held=HELD_FPR,
        title="Judged at 1 % false alarms, trained for 1 % false alarms",
        note=f"UCI Letter, U against the other letters, test part. Thin lines: {plan.seeds} seeds; "
        f"bold: their mean. {plan.steps:,} steps of {plan.batch_size} for both.",
        fpr=SHOWN_FPR,
        lowest_tpr=_lowest(drawn),
    )


def _series(method: str, model: str, trials: Sequence[Trial]) -> Series:
    curves = [t.curve for t in trials if (t.method, t.model) == (method, model) and t.curve]
    levels = np.geomspace(*SHOWN_FPR, 500)
    held = mean_curve(curves, HELD_FPR)
    return Series(method, curves, mean_curve(curves, levels), float(held.tpr[0]))


def _lowest(trials: Sequence[Trial]) -> float:
    """The round figure below the lowest curve at the left end."""
    starts = [float(mean_curve([t.curve], SHOWN_FPR[0]).tpr[0]) for t in trials if t.curve]
    return min(math.floor(10 * min(starts)) / 10, 0.9)


def _in_words(points: float) -> str:
    text = f"{points:+.1f}".replace("-", "\N{MINUS SIGN}")
    return "level" if round(points, 1) == 0 else f"{text} points"

"""One training run for two classes: all a report or a comparison needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setpoint.batch import check_labels, check_scores
from setpoint.results.described import Described, Scored, checked, read_groups

Threshold = float | Mapping[Any, float] | None


@dataclass(frozen=True)
class RunResult(Described):
    """What a run asked for, what it was given and what it scored.

    Args:
        goal: The sentence, ``minimize fnr subject to fpr <= 0.01``, or bounds alone.
        splits: Scores, 0/1 labels and groups (or None), ``[n]`` each, by name.
        threshold: Decisions are ``score > threshold``. One for each group as a mapping; None if
            there is none (infeasible); minus infinity accepts everyone.
        positive: What the positive class is called.
        baseline: Scores and labels of another model on the same splits, row by row.
        baseline_threshold: Its threshold; None: the best one on validation (or calibration) data.

    The rest is as in :class:`setpoint.results.described.Described`.
    """

    threshold: Threshold
    positive: str = field(default="1", kw_only=True)
    baseline_threshold: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", checked(self.splits, "splits", _scored))
        if self.baseline:
            object.__setattr__(self, "baseline", checked(self.baseline, "baseline", _scored))
            for name, theirs in self.baseline.items():
                if name not in self.splits:
                    raise ValueError(f"The baseline has a split {name!r} that the run has not.")
                if not np.array_equal(theirs.labels, self.splits[name].labels):
                    raise ValueError(
                        f"The baseline must be scored on the same rows; the labels of {name!r} "
                        "differ from the run's."
                    )


def _scored(scores: Any, labels: Any, groups: Any = None) -> Scored:
    s, y = np.asarray(scores), np.asarray(labels)
    check_scores(s)
    check_labels(y, s)
    if s.ndim != 1 or s.size == 0:
        raise ValueError(f"A split has one score an example, at least one; got shape {s.shape}.")
    return Scored(s, y == 1, read_groups(groups, s))

"""One training run for several classes: all a report needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from setpoint.axes.class_data import check_class_labels
from setpoint.batch import check_length, check_scores
from setpoint.results.described import Described, Scored, checked, read_groups


@dataclass(frozen=True)
class ClassRun(Described):
    """What a run for several classes asked for, what it was given and what it scored.

    Args:
        goal: The sentence, ``maximize macro(recall)``.
        splits: Scores ``[n, K]``, the column of the true class ``[n]`` and groups (or None).
        names: What the classes are called, in the order of the columns of the scores.
        shifts: Decisions are the highest ``score - shift``; one for each class.
        baseline: Scores of another model on the same splits, row by row.
        baseline_shifts: Its shifts; None: the highest score decides.

    The rest is as in :class:`setpoint.results.described.Described`.
    """

    names: Sequence[str]
    shifts: Sequence[float]
    baseline_shifts: Sequence[float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        names = tuple(map(str, self.names))
        shifts = tuple(float(t) for t in self.shifts)
        if len(names) < 2 or len(set(names)) < len(names) or len(shifts) != len(names):
            raise ValueError(
                "A run for several classes has two names at least, all different, and a shift for "
                f"each; got {len(set(names))} names and {len(shifts)} shifts."
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "shifts", shifts)
        parts = checked(self.splits, "splits", partial(_scored, len(names)))
        object.__setattr__(self, "splits", parts)
        for name, theirs in (self.baseline or {}).items():
            if name not in parts or np.shape(theirs) != parts[name].scores.shape:
                raise ValueError(
                    f"The baseline must be scored on the same rows; its scores of {name!r} have "
                    f"the shape {np.shape(theirs)}."
                )


def _scored(count: int, scores: Any, labels: Any, groups: Any = None) -> Scored:
    s, y = np.asarray(scores), np.asarray(labels)
    check_scores(s)
    if s.ndim != 2 or s.shape[1] != count or s.size == 0:
        raise ValueError(
            f"A split has a score for each of {count} classes and at least one example; got the "
            f"shape {s.shape}."
        )
    check_length(y, s[:, 0], "labels")
    check_class_labels(y, count)
    return Scored(s, y.astype(np.int64), read_groups(groups, s[:, 0]))

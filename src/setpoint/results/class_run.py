"""One training run for several classes as plain data: all a report needs, and no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_length, check_scores
from setpoint.problems.classes.data import check_class_labels
from setpoint.results.run import SPLITS, nearest_to_new


class ClassScored(NamedTuple):
    """Scores ``[n, K]``, the column of the true class ``[n]``, and (or None) groups ``[n]``."""

    scores: NDArray[Any]
    labels: NDArray[np.int64]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class ClassRun:
    """What a run for several classes asked for, what it was given and what it scored.

    Args:
        goal: The sentence, ``maximize macro(recall)``.
        names: What the classes are called, in the order of the columns of the scores.
        splits: Scores, labels and groups (or None) of train, validation, calibration and test;
            any may be absent, and plain tuples will do.
        shifts: Decisions are the highest ``score - shift``; one for each class.
        certificate: As from ``ClassCertificate.to_json``, as a dict; None if there is none.
        label: The column that was learned.
        method: What it was trained with, ``implicit``.
        model: What was trained, ``mlp``.
        seed: What all randomness came from.
        versions: Of the libraries, by name.
        created: When, in ISO format.
        history: One dict an epoch: epoch, loss, metrics by name.
        baseline: Scores of another model on the same splits, row by row.
        baseline_shifts: Its shifts; None: the highest score decides.
        baseline_name: What to call it.
        columns: The features used.
        group: The column that groups come from.
        notes: What was done to the data, in sentences.
    """

    goal: str
    names: Sequence[str]
    splits: Mapping[str, Any]
    shifts: Sequence[float]
    certificate: Mapping[str, Any] | None = None
    label: str = "label"
    method: str = ""
    model: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    history: Sequence[Mapping[str, Any]] = ()
    baseline: Mapping[str, Any] | None = None
    baseline_shifts: Sequence[float] | None = None
    baseline_name: str = "cross-entropy"
    columns: Sequence[str] = ()
    group: str = "group"
    notes: Sequence[str] = ()

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
        unknown = [name for name in self.splits if name not in SPLITS]
        if unknown or not self.splits:
            got = repr(unknown[0]) if unknown else "none"
            raise ValueError(f"splits are some of {', '.join(SPLITS)}; got {got}.")
        parts = {n: _scored(len(names), *self.splits[n]) for n in SPLITS if n in self.splits}
        object.__setattr__(self, "splits", parts)
        for name, theirs in (self.baseline or {}).items():
            if name not in parts or np.shape(theirs) != parts[name].scores.shape:
                raise ValueError(
                    f"The baseline must be scored on the same rows; its scores of {name!r} have "
                    f"the shape {np.shape(theirs)}."
                )

    @property
    def judged(self) -> str:
        """The split nearest to new data: test, or the best there is."""
        return nearest_to_new(self.splits)


def _scored(count: int, scores: Any, labels: Any, groups: Any = None) -> ClassScored:
    s, y = np.asarray(scores), np.asarray(labels)
    check_scores(s)
    if s.ndim != 2 or s.shape[1] != count or s.size == 0:
        raise ValueError(
            f"A split has a score for each of {count} classes and at least one example; got the "
            f"shape {s.shape}."
        )
    check_length(y, s[:, 0], "labels")
    check_class_labels(y, count)
    g = None if groups is None else np.asarray(groups)
    if g is not None:
        check_length(g, s[:, 0], "groups")
    return ClassScored(s, y.astype(np.int64), g)

"""One training run as plain data: all a report or a comparison needs, and no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_labels, check_length, check_scores

SPLITS = ("train", "validation", "calibration", "test")
Threshold = float | Mapping[Any, float] | None


class Scored(NamedTuple):
    """Scores, 0/1 labels and (or None) group values of the examples of one split, ``[n]`` each."""

    scores: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class RunResult:
    """What a run asked for, what it was given and what it scored.

    Args:
        goal: The sentence, ``minimize fnr subject to fpr <= 0.01``, or bounds alone.
        splits: Scores, labels and groups (or None) of train, validation, calibration and test;
            any may be absent, and plain tuples will do.
        threshold: Decisions are ``score > threshold``. One for each group as a mapping; None if
            there is none (infeasible); minus infinity accepts everyone.
        certificate: As from ``Certificate.to_json``, as a dict; None if nothing was certified.
        label: The column that was learned.
        positive: What the positive class is called.
        method: What it was trained with, ``implicit``.
        model: What was trained, ``mlp``.
        seed: What all randomness came from.
        versions: Of the libraries, by name.
        created: When, in ISO format.
        history: One dict an epoch: epoch, loss, metrics by name.
        baseline: Scores and labels of another model on the same splits, row by row.
        baseline_threshold: Its threshold; None: the best one on validation (or calibration) data.
        baseline_name: What to call it.
        columns: The features used.
        group: The column that groups come from.
        notes: What was done to the data, in sentences.
    """

    goal: str
    splits: Mapping[str, Any]
    threshold: Threshold
    certificate: Mapping[str, Any] | None = None
    label: str = "label"
    positive: str = "1"
    method: str = ""
    model: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    history: Sequence[Mapping[str, Any]] = ()
    baseline: Mapping[str, Any] | None = None
    baseline_threshold: float | None = None
    baseline_name: str = "cross-entropy"
    columns: Sequence[str] = ()
    group: str = "group"
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", _checked(self.splits, "splits"))
        if not self.splits:
            raise ValueError("A run needs at least one split with scores and labels.")
        if self.baseline is not None:
            object.__setattr__(self, "baseline", _checked(self.baseline, "baseline"))
            for name, theirs in self.baseline.items():
                if name not in self.splits:
                    raise ValueError(f"The baseline has a split {name!r} that the run has not.")
                if not np.array_equal(theirs.labels, self.splits[name].labels):
                    raise ValueError(
                        f"The baseline must be scored on the same rows; the labels of {name!r} "
                        "differ from the run's."
                    )

    @property
    def judged(self) -> str:
        """The split nearest to new data: test, or the best there is."""
        return nearest_to_new(self.splits)


def nearest_to_new(splits: Mapping[str, Any]) -> str:
    """The split whose rows the model knows least."""
    return next(name for name in reversed(SPLITS) if name in splits)


def _checked(splits: Mapping[str, Any], what: str) -> dict[str, Scored]:
    unknown = [name for name in splits if name not in SPLITS]
    if unknown:
        raise ValueError(f"{what} are named {', '.join(SPLITS)}; got {unknown[0]!r}.")
    return {name: _scored(*splits[name]) for name in SPLITS if name in splits}


def _scored(scores: Any, labels: Any, groups: Any = None) -> Scored:
    s, y = np.asarray(scores), np.asarray(labels)
    check_scores(s)
    check_labels(y, s)
    if s.ndim != 1 or s.size == 0:
        raise ValueError(f"A split has one score an example, at least one; got shape {s.shape}.")
    g = None if groups is None else np.asarray(groups)
    if g is not None:
        check_length(g, s, "groups")
    return Scored(s, y == 1, g)

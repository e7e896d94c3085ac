"""A goal as users write it: a problem, a sentence, or only what must hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from setpoint._checks import share
from setpoint.certificates.goals import read_goal as read_promise
from setpoint.problems import Problem
from setpoint.rates import Bound, fnr, fpr, npv, recall, tpr
from setpoint.train.loop import group_columns

Goal = str | Problem | Bound | Sequence[Bound]
_BOUND = re.compile(r"\s*(?!minimize|maximize).*(<=|>=)")
FLOORS = {recall, tpr, fnr, npv}
"""Rates whose bound asks for alerts: what is left to wish for is that they are few."""


def as_problem(goal: Goal) -> Problem:
    """Bounds alone become a problem: find the most, or where recall is bounded, alarm the least.

    >>> print(as_problem("fpr <= 0.01"))
    maximize recall subject to fpr <= 0.01
    >>> print(as_problem(recall >= 0.95))
    minimize fpr subject to recall >= 0.95
    """
    if isinstance(goal, Problem):
        return goal
    if isinstance(goal, str) and not _BOUND.match(goal):
        return Problem.parse(goal)
    if not isinstance(goal, (str, Bound, tuple, list)):
        raise TypeError(
            "goal must be a Problem, a sentence such as 'minimize fnr subject to fpr <= 0.01', or "
            f"a bound such as 'fpr <= 0.01'; got {goal!r}."
        )
    bounds = read_promise(goal).bounds
    if all(bound.expression in FLOORS for bound in bounds):
        return Problem(minimize=fpr, subject_to=bounds)
    return Problem(maximize=recall, subject_to=bounds)


# ------------------------------------------------------------------------------------------------
# What ``fit`` is given, checked: two classes, weights that count, groups where the goal asks.


Array = NDArray[Any]
Labels = NDArray[np.int64]


SHOWN = 5  # labels in an error


def read_classes(y: Array, pos_label: Any = None) -> tuple[Array, Labels]:
    """Both classes in sorted order, and 1 for every row of the positive one, else the second."""
    classes, labels = np.unique(y, return_inverse=True)
    seen = ", ".join(repr(label) for label in classes.tolist()[:SHOWN])
    seen += ", ..." if len(classes) > SHOWN else ""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y has {len(classes)} classes ({seen})."
        )
    if len(classes) < 2:
        found = f"all labels are {classes.tolist()[0]!r}" if len(classes) else "there are 0 samples"
        raise ValueError(
            "Classifier can't train when only one class is present: "
            f"{found} (rows whose sample_weight is 0 are absent)."
        )
    labels = labels.astype(np.int64)
    if pos_label is None:
        return classes, labels
    if not any(label == pos_label for label in classes.tolist()):
        raise ValueError(f"pos_label={pos_label!r} is not in y, whose labels are {seen}.")
    return classes, labels if classes.tolist()[1] == pos_label else 1 - labels


def refuse_label(pos_label: Any, problem: Problem) -> None:
    """A goal about several classes has no positive one."""
    if pos_label is not None:
        raise ValueError(
            f"pos_label={pos_label!r} is for two classes, and `{problem}` is about each of "
            "several; leave it out."
        )


def check_device(device: Any) -> None:
    """Somewhere that this torch can compute."""
    import torch

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be a device of torch, such as 'cpu' or 'cuda'; got {device!r}."
        ) from None
    backend = getattr(torch, kind, None)
    if kind != "cpu" and backend is not None and not backend.is_available():
        raise ValueError(
            f"device={device!r}: torch {torch.__version__} finds no such device here. Train with "
            "device='cpu', or install a build of torch for it (https://pytorch.org/get-started)."
        )


def read_weights(given: Any, x: Array, labels: Labels) -> NDArray[np.float64] | None:
    """The weights, or None if all are the same."""
    if given is None:
        return None
    weights = np.asarray(_check_sample_weight(given, x, ensure_non_negative=True), np.float64)
    if len(np.unique(labels[weights > 0])) < 2:
        raise ValueError("Only one class has rows with a positive sample_weight; both need some.")
    return None if np.all(weights == weights[0]) and weights[0] > 0 else weights


def read_groups(groups: Any, problem: Problem, count: int) -> Any:
    """The group columns a goal looks at, or None if it looks at none."""
    asked = sorted({column for where in problem.slices for column, _ in where})
    if not asked:
        if groups is not None:
            raise ValueError(
                f"groups= was given, and `{problem}` looks at no group. Name them in the goal, as "
                'in abs(tpr.on(sex="f") - tpr.on(sex="m")) <= 0.05, or leave groups= out.'
            )
        return None
    if groups is None:
        raise ValueError(f"`{problem}` needs groups: pass fit(X, y, groups={{{asked[0]!r}: ...}}).")
    named = groups if isinstance(groups, Mapping) else {asked[0]: groups}
    missing = [column for column in asked if column not in named]
    if missing:
        raise ValueError(f"`{problem}` needs the group column {missing[0]!r}; pass it in groups=.")
    return group_columns({column: named[column] for column in asked}, count)


def check_both(labels: Labels, parts: Mapping[str, Array]) -> None:
    """Every part that is split off must hold both classes, or there is nothing to judge by."""
    for name, rows in parts.items():
        positives = int(labels[rows].sum())
        if len(rows) and positives in (0, len(rows)):
            raise ValueError(
                f"The {name} part has {len(rows):,} rows, all of one class: raise "
                f"{name}_fraction, or pass more rows of the rarer class."
            )


# ------------------------------------------------------------------------------------------------
# Labels of several classes, as the user calls them and as columns of scores.


def read_many(y: Array) -> tuple[Array, Labels]:
    """All classes in sorted order, and for every row the number of its own."""
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        found = f"all labels are {classes[0]!r}" if len(classes) else "there are 0 samples"
        raise ValueError(f"Classifier can't train when only one class is present: {found}.")
    return classes, labels.astype(np.int64)


def numbers_of(y: Any, classes: Array) -> Labels:
    """For every label the number of its class; a class that is not known is an error."""
    labels = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    strange = np.asarray(y) != classes[labels]
    if strange.any():
        raise ValueError(f"y has a class that was not there in fit: {np.asarray(y)[strange][0]!r}.")
    return np.asarray(labels, np.int64)


# ------------------------------------------------------------------------------------------------
# Three parts of the data with three jobs: to learn from, to choose by, to promise on.


Rows = NDArray[np.int64]
FEWEST = 20
"""With fewer of a class than this, nothing is split off: there is hardly enough to learn from."""


def three_parts(
    labels: NDArray[np.int64],
    validation: float,
    calibration: float,
    random: np.random.RandomState,
    fewest: int = FEWEST,
) -> dict[str, Rows]:
    """Rows of the parts ``train``, ``validation`` and ``calibration``, class by class.

    Data with fewer than ``fewest`` rows of a class are not split: then ``train`` and ``validation``
    are all rows, and ``calibration`` is empty.
    """
    shares = (
        share(validation, "validation_fraction"),
        share(calibration, "calibration_fraction"),
    )
    if sum(shares) >= 1:
        raise ValueError(
            "validation_fraction and calibration_fraction leave nothing to train on: "
            f"{shares[0]:g} + {shares[1]:g} must be below 1."
        )
    everyone = np.arange(len(labels))
    counts = np.bincount(labels, minlength=2)
    if counts.min() < fewest:
        return {"train": everyone, "validation": everyone, "calibration": everyone[:0]}
    parts: list[list[Rows]] = [[], [], []]
    for value in range(len(counts)):
        rows = random.permutation(np.flatnonzero(labels == value))
        ends = np.round(np.cumsum(shares) * len(rows)).astype(int)
        for part, piece in zip(parts, np.split(rows, ends), strict=True):
            part.append(piece)
    chosen, promised, learnt = (np.sort(np.concatenate(part)) for part in parts)
    if not len(chosen):
        chosen = learnt
    return {"train": learnt, "validation": chosen, "calibration": promised}

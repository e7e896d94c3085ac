"""What ``fit`` is given, checked: two classes, weights that count, groups where the goal asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from setpoint.problems import Problem
from setpoint.train.groups import columns_of

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
    return columns_of({column: named[column] for column in asked}, count)


def check_both(labels: Labels, parts: Mapping[str, Array]) -> None:
    """Every part that is split off must hold both classes, or there is nothing to judge by."""
    for name, rows in parts.items():
        positives = int(labels[rows].sum())
        if len(rows) and positives in (0, len(rows)):
            raise ValueError(
                f"The {name} part has {len(rows):,} rows, all of one class: raise "
                f"{name}_fraction, or pass more rows of the rarer class."
            )

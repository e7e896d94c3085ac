"""Labels of several classes, as the user calls them and as columns of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.estimators.inputs import Array, Labels


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

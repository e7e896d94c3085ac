"""Decisions between classes, and by how much they were made."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.problems.classes.data import Floats, Whole


def decide(scores: Any, shifts: Any) -> Whole:
    """``argmax(score - shift)`` in float64, ``[n]``; of equal ones the first."""
    return np.asarray(np.argmax(np.asarray(scores, np.float64) - np.asarray(shifts), axis=1))


def traits(scores: Floats) -> Floats:
    """A number of each class to tell equal ones apart by, ``[K]``.

    Neither the order of the classes nor a constant added to the scores of one changes it.
    """
    return np.asarray((scores - scores.mean(1, keepdims=True)).var(0))


def rivals(shifted: Floats, column: int) -> tuple[Floats, Whole]:
    """The highest shifted score beside ``column``, and whose it is: ``[n]`` both."""
    others = shifted.copy()
    others[:, column] = -np.inf
    best = np.argmax(others, axis=1)
    return others[np.arange(len(others)), best], best


def all_rivals(shifted: Floats) -> Floats:
    """For every class the highest shifted score of the others, ``[n, K]``."""
    rows = np.arange(len(shifted))
    first = np.argmax(shifted, axis=1)
    top = shifted[rows, first]
    rest = shifted.copy()
    rest[rows, first] = -np.inf
    best = np.repeat(top[:, None], shifted.shape[1], axis=1)
    best[rows, first] = rest.max(axis=1)
    return best

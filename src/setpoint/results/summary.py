"""A few runs in two numbers: how good on average, and how sure one can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    """The mean of some runs with their standard deviation and the standard error of the mean.

    The last two are NaN for a single run: it says nothing about its spread.
    """

    mean: float
    spread: float
    standard_error: float
    count: int


def summarize(values: Sequence[float]) -> Summary:
    """Mean and spread of one value a seed.

    Example:
        >>> summarize([1.0, 2.0, 3.0])
        Summary(mean=2.0, spread=1.0, standard_error=0.577..., count=3)
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"A summary needs one value a run, at least one; got {values!r}.")
    spread = float(x.std(ddof=1)) if x.size > 1 else float("nan")
    return Summary(float(x.mean()), spread, spread / x.size**0.5, x.size)


def gain(ours: Sequence[float], theirs: Sequence[float], *, higher_is_better: bool) -> Summary:
    """How much better ``ours`` is than ``theirs``, run by run; below zero, it is worse.

    Runs with the same seed share data, batches and initial weights, so their differences vary less
    than the values themselves; the standard error is that of the mean difference.

    Example:
        >>> gain([28, 29, 27], [38, 35, 36], higher_is_better=False).mean
        8.333...
    """
    if len(ours) != len(theirs):
        raise ValueError(
            f"Paired runs come in pairs; got {len(ours)} of ours and {len(theirs)} of theirs."
        )
    sign = 1.0 if higher_is_better else -1.0
    return summarize([sign * (a - b) for a, b in zip(ours, theirs, strict=True)])

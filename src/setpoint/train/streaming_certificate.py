"""A certified threshold for more scores than fit into memory, on any number of processes.

The threshold that proves a bound on one kind of examples is a score of known rank among them, so
the scores need not be sorted, only that one found: see :mod:`setpoint.distributed.selection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.certificates.certification import risk_of
from setpoint.certificates.decisions import below, halfway
from setpoint.certificates.goals import inequalities
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES
from setpoint.certificates.tails import allowed, lower, needed, upper
from setpoint.distributed import Selected, rank_of, select, sum_tensors, workers
from setpoint.rates import Bound

Chunks = Callable[[], Iterable[tuple[NDArray[Any], NDArray[Any]]]]
"""Yields this process's scores and labels in chunks; it is called several times."""


@dataclass(frozen=True)
class StreamedThreshold:
    """What :func:`certified_threshold` found.

    Attributes:
        threshold: Accept what scores above it; None if the examples cannot prove the bound.
        proved: What is proved of the bound's rate, with the confidence asked for.
        examples: How many there are of the kind that the bound counts, in all processes.
        allowed: How many of them may be on the wrong side.
        accepted: How many of them are accepted.
        note: In words.
    """

    threshold: float | None
    proved: float | None
    examples: int
    allowed: int
    accepted: int
    note: str


def certified_threshold(
    read: Chunks, bound: Bound, *, confidence: float = 0.95
) -> StreamedThreshold:
    """The threshold that :func:`setpoint.certify` gives, in bounded memory.

    Args:
        read: This process's calibration scores (float32 or float64) and labels, in chunks; it is
            called three to five times.
        bound: A bound on one kind of examples: ``fpr``, ``tnr``, ``recall``, ``fnr``, ``coverage``.
        confidence: The bound fails for at most ``1 - confidence`` of all calibration samples.

    Examples:
        >>> import numpy as np
        >>> from setpoint.rates import fpr
        >>> scores, labels = np.arange(1000.0), np.zeros(1000)
        >>> certified_threshold(lambda: [(scores, labels)], fpr <= 0.01).threshold
        995.5
    """
    found = inequalities([bound], None)
    share = found[0].share if len(found) == 1 else None
    if (
        share is None
        or share.subset.where
        or share.subset.kind not in (POSITIVES, NEGATIVES, EVERYONE)
    ):
        raise ValueError(
            f"`{bound}` is not about one kind of examples (fpr, tnr, recall, fnr, coverage), so "
            "its threshold is not a score of known rank; use certify with a sample that fits."
        )
    subset, caps, dtypes = share.subset, share.at_most, [""]
    tail, risk = risk_of(confidence), share.limit if share.at_most else 1 - share.limit

    def scores() -> Iterable[NDArray[Any]]:
        for chunk, labels in read():
            dtypes[0] = str(chunk.dtype)
            yield (
                chunk if subset.kind == EVERYONE else chunk[labels == (subset.kind == POSITIVES)]
            )

    def rank(n: int) -> int | None:
        m = allowed(n, risk, tail)
        return None if m < 0 else m if caps else n - m - 1

    here = select(scores, rank)
    if not isinstance(here, Selected):
        note = f"`{bound}` needs {needed(risk, tail):,} {subset.kind}, you have {here:,}"
        return StreamedThreshold(None, None, here, -1, 0, note)
    m = allowed(here.size, risk, tail)
    reached = upper(m, here.size, tail) if caps else lower(here.size - m, here.size, tail)
    dtype = dtypes[0] or "float64"
    threshold = here.score if caps else below(here.score, dtype)
    threshold = halfway(threshold, _neighbours(read, threshold), dtype)
    side = "above" if caps else "at or below"
    note = f"at most {m:,} of {here.size:,} {subset.kind} may lie {side} the threshold"
    accepted = here.above if caps else here.reaching
    return StreamedThreshold(threshold, share.value(float(reached)), here.size, m, accepted, note)


def _neighbours(read: Chunks, value: float) -> NDArray[Any]:
    """The nearest scores at or below ``value`` and above it, among those of all processes."""
    low, high = -np.inf, np.inf
    dtype: Any = np.float64
    for chunk, _ in read():
        dtype = chunk.dtype
        above = chunk > value
        low = max(low, float(np.max(chunk, initial=-np.inf, where=~above)))
        high = min(high, float(np.min(chunk, initial=np.inf, where=above)))
    if workers() > 1:
        ends = torch.zeros(workers(), 2, dtype=torch.float64)
        ends[rank_of()] = torch.tensor([low, high])
        ends = sum_tensors(ends)
        low, high = float(ends[:, 0].max()), float(ends[:, 1].min())
    found = np.array([low, high], dtype)
    return np.asarray(found[np.isfinite(found)])

"""Precision where positives are rarer or more frequent than in the data at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

COMMON = (0.5, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Mix:
    """What the same recall and FPR come to when a share ``prevalence`` of the cases is positive."""

    prevalence: float
    precision: float
    alerts_per_1000: float
    own: bool


def at_prevalences(recall: float, fpr: float, own: float) -> list[Mix]:
    """The data's ``own`` prevalence among common ones, from frequent to rare.

    Example:
        >>> [round(m.precision, 2) for m in at_prevalences(0.57, 0.01, 0.5)]
        [0.98, 0.86, 0.37, 0.05]
    """
    if math.isnan(recall) or math.isnan(fpr):
        return []
    shares = sorted({own, *(p for p in COMMON if abs(math.log(p / own)) > 0.1)}, reverse=True)
    mixes = []
    for share in shares:
        found, alarms = share * recall, (1 - share) * fpr
        flagged = found + alarms
        mixes.append(
            Mix(share, found / flagged if flagged else math.nan, 1000 * flagged, share == own)
        )
    return mixes

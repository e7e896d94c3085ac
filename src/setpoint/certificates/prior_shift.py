"""Another share of positives than in the calibration rows: declared, or bounded by scores to come.

Scores within a class keep their law, and only the mix of the classes changes (label shift). Rates
of one class (fpr, recall) do not depend on the mix; precision, error, coverage and costs do. Given
the accepted shares of both classes, each of them is a quotient of two functions that are linear in
the share of positives, so it is largest and smallest at the ends of an interval.

**The interval.** At a cut ``x`` a share ``q = prior a + (1 - prior) b`` of the rows to come lies
above, where ``a`` and ``b`` are the shares of the positives and of the negatives. Cuts are scores
at ranks of the unlabelled rows that are fixed in advance: ``q`` follows Beta with the quantiles
that Clopper and Pearson use, and given the cuts the counts of the calibration rows are binomial.
Each of the ``m`` cuts has six limits, each wrong with probability ``gamma / (6 m)``; what they
leave of ``prior = (q - b) / (a - b)`` at every cut is the interval, wrong with probability
``gamma``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.certificates.sample import (
    NEGATIVES,
    POSITIVES,
    CalibrationSample,
    CannotPromise,
    Subset,
    scores_and_precision,
)
from setpoint.certificates.tails import lower, upper

SHARE_OF_PRIOR = 0.1
"""The part of the risk that the interval of the share of positives may spend."""
_CUTS = 2.0 ** -np.arange(1, 10)
"""The shares of unlabelled rows above the cuts; ends of small samples leave some out."""


def prevalence_now(sample: CalibrationSample, unlabelled: Any, gamma: float) -> tuple[float, float]:
    """The shares of positives that unlabelled scores leave possible, wrong with ``gamma``.

    Raises:
        CannotPromise: No share is possible: the scores within a class have changed, too.
    """
    rising = np.sort(scores_and_precision(unlabelled)[0])
    size = len(rising)
    ranks = np.unique((size * _CUTS).astype(int))  # how many scores lie at or above the cut
    ranks = ranks[ranks >= 5]
    if not len(ranks):
        raise ValueError(f"unlabelled= has {size} scores; pass 10 of the rows to come at least.")
    cuts = rising[size - ranks]
    tail = gamma / 6 / len(ranks)
    above, reaching = (size - np.searchsorted(rising, cuts, side) for side in ("right", "left"))
    q = lower(above, size, tail), upper(reaching, size, tail)
    a, b = (
        [end(sample.above(subset, cuts), sample.size(subset), tail) for end in (lower, upper)]
        for subset in (Subset((), POSITIVES), Subset((), NEGATIVES))
    )
    with np.errstate(all="ignore"):
        low = np.where(a[1] > b[1], (q[0] - b[1]) / (a[1] - b[1]), 0.0)
        high = np.where(a[0] > b[0], (q[1] - b[0]) / (a[0] - b[0]), 1.0)
    least, most = max(0.0, float(low.max())), min(1.0, float(high.min()))
    if least > most:
        raise CannotPromise(
            "The unlabelled scores fit no share of positives: scores within a class are not what "
            "they were. Label some of the new rows and certify these."
        )
    return least, most

"""What a metric made of counts says of every number of misses and false alarms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.rates import Counts, Expression, Tables

TOGETHER = 2**20
"""How many pairs of counts are looked at together,"""
AT_MOST = 2**31
"""and how many at most: some minutes."""


@dataclass(frozen=True)
class Mistakes:
    """The table of all mistakes of a batch: misses by row, false alarms by column.

    Args:
        metric: What is measured.
        misses: Running sums of the weights of missed positives, from zero to all.
        alarms: Running sums of the weights of false alarms.
        miss: What a unit of misses costs near perfection,
        alarm: and a unit of false alarms.
    """

    metric: Expression
    misses: Tensor
    alarms: Tensor
    miss: float
    alarm: float

    @classmethod
    def of(cls, metric: Expression, misses: Tensor, alarms: Tensor) -> Mistakes:
        """The table with its prices; raises if it is too large to look at."""
        if len(misses) * len(alarms) > AT_MOST:
            raise ValueError(
                f"{len(misses) - 1:,} positives and {len(alarms) - 1:,} negatives have too many "
                "pairs of counts for the structural hinge; use smaller batches."
            )
        return cls(metric, misses, alarms, *_prices(metric, float(misses[-1]), float(alarms[-1])))

    def regret(self, rows: slice = slice(None)) -> Tensor:
        """How far from perfect the metric is; 0/0 is as far as the farthest of these rows."""
        positives, negatives = self.misses[-1], self.alarms[-1]
        missed, alarms = self.misses[rows, None], self.alarms
        counts = (positives - missed, alarms, missed, negatives - alarms, positives, negatives)
        perfect = self.metric.of(_perfect(float(positives), float(negatives)))
        regret = (self.metric.of({(): Counts(*counts)}) - perfect).abs()
        worst = torch.where(regret.isfinite(), regret, 0.0).amax()
        return torch.where(regret.isfinite(), regret, worst)

    def worth(self, missed: Tensor, alarmed: Tensor, rows: slice = slice(None)) -> Tensor:
        """The regret less what the scores say against it, by running sums of weighted scores."""
        return self.regret(rows) - self.miss * missed[rows, None] + self.alarm * alarmed

    def parts(self) -> Iterator[slice]:
        """Rows in groups of bounded size."""
        size = max(1, TOGETHER // len(self.alarms))
        for start in range(0, len(self.misses), size):
            yield slice(start, start + size)


def check_metric(metric: object) -> None:
    """An expression of rates of everyone."""
    if not isinstance(metric, Expression):
        raise TypeError(f"metric must be made of rates, such as f_score(1); got {metric!r}.")
    if any(rate.where for rate in metric.rates()):
        raise ValueError(f"The structural hinge knows no slices; got {metric}.")


def _prices(metric: Expression, positives: float, negatives: float) -> tuple[float, float]:
    """What one miss and one false alarm cost near perfection; a free one costs like the other."""
    miss, alarm = (abs(slope) for slope in price(metric, positives, negatives))
    if not 0 < max(miss, alarm) < float("inf"):
        raise ValueError(f"{metric} does not change when a perfect classifier errs once.")
    return miss or alarm, alarm or miss


def price(metric: Expression, positives: float, negatives: float) -> tuple[float, float]:
    """How the metric of perfect decisions changes with a miss, and with a false alarm."""
    slopes = metric.gradient(_perfect(positives, negatives))
    tp, fp, fn, tn = (float(slopes.get(((), i), 0.0)) for i in range(4))
    return fn - tp, fp - tn


def _perfect(positives: float, negatives: float) -> Tables:
    """The counts when every decision is right."""
    return {(): Counts(positives, 0.0, 0.0, negatives, positives, negatives)}

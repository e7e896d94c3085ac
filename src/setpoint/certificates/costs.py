"""Costs in money, with amounts that differ by row: a miss costs what the transaction was worth.

The mean cost of a row is bounded by betting (:mod:`setpoint.certificates.betting`): rows are
independent, and no row costs more than a declared most. It is no share, so thresholds are selected
on a quarter of the rows, by what the goal prefers, and every bound of the goal is tested on the
others (:mod:`setpoint.certificates.selection`).

Of clusters the mean over their rows is what is paid: means of different clusters are independent,
and no larger than the declared most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import number
from setpoint.axes.arrays import Floats, to_numpy
from setpoint.axes.sample import read_amounts
from setpoint.batch import check_length
from setpoint.certificates.betting import upper_mean
from setpoint.certificates.clusters import ClusterSample
from setpoint.certificates.goals import CertificateGoal
from setpoint.certificates.regions import weights
from setpoint.certificates.sample import CalibrationSample, CannotPromise
from setpoint.rates import Expression, Rate, is_cost


@dataclass(frozen=True)
class PaidRows:
    """All rows of a sample, with the place of the row (or cluster) that each belongs to."""

    scores: NDArray[Any]
    labels: Any
    amounts: Floats
    codes: NDArray[np.int64]

    def of(self, chosen: NDArray[Any]) -> PaidRows:
        """Those of some rows (or clusters), in this order."""
        places = np.full(self.codes.max(initial=-1) + 1, -1)
        numbers = np.arange(len(places))[chosen]
        places[numbers] = np.arange(len(numbers))
        codes = places[self.codes]
        kept = codes >= 0
        return PaidRows(
            self.scores[kept], np.asarray(self.labels)[kept], self.amounts[kept], codes[kept]
        )

    @cached_property
    def shares(self) -> Floats:
        """What each row counts in a mean; all rows of a cluster count like one."""
        sizes = np.bincount(self.codes)
        return 1 / (sizes[self.codes] * len(sizes))


class CostSample(CalibrationSample):
    """Rows with an amount each: what it costs to miss it, in units of the goal's ``miss``.

    Args:
        rows: All rows, or one of each cluster, with labels.
        paid: All rows with their amounts.
        largest: The largest amount that a row can have.
    """

    def __init__(self, rows: CalibrationSample, paid: PaidRows, largest: float) -> None:
        super().__init__(rows.scores, rows.labels, rows.slices, rows.precision, rows.prevalence)
        self.inherit(rows)
        self.paid, self.largest_amount = paid, largest
        self.amounts = paid.amounts[np.unique(paid.codes, return_index=True)[1]]
        self.clusters, self.drawn, self._mark = rows.clusters, rows.drawn, rows.fingerprint

    @property
    def fingerprint(self) -> str:
        """That of the rows without amounts."""
        return self._mark

    def rows(self, chosen: NDArray[Any]) -> CalibrationSample:
        """Some of the rows, with their amounts."""
        assert self.largest_amount is not None
        return CostSample(super().rows(chosen), self.paid.of(chosen), self.largest_amount)

    def prices(self, expression: Expression) -> bool:
        """Whether an expression is a cost: money over all rows, which amounts enter."""
        return is_cost(expression) and not any(rate.where for rate in expression.rates())

    def values(self, expression: Expression, thresholds: Any) -> Floats:
        """The mean cost of a row at each threshold, exactly; of other rates what is measured."""
        if not isinstance(expression, Rate) or not self.prices(expression):
            return super().values(expression, thresholds)
        paid, order = self.paid, np.argsort(self.paid.scores, kind="stable")
        costs = cell_costs(expression, np.asarray(paid.labels), paid.amounts)
        rejected, accepted = (np.append(0.0, np.cumsum((c * paid.shares)[order])) for c in costs)
        places = np.searchsorted(
            paid.scores[order], np.asarray(thresholds, self.scores.dtype), "right"
        )
        return np.asarray(rejected[places] + accepted[-1] - accepted[places])

    def cost_bounds(
        self, expression: Expression, threshold: float, tail: float
    ) -> tuple[float, float]:
        """Bounds of the mean cost at a threshold that was fixed before, by betting."""
        assert isinstance(expression, Rate)
        assert self.largest_amount is not None
        rows = self.paid
        each = row_costs(expression, rows.scores, rows.labels, rows.amounts, threshold)
        paid = np.bincount(rows.codes, each) / np.bincount(rows.codes)
        tp, fp, fn, tn = weights(expression)[0]
        most = max(tp * self.largest_amount, fn * self.largest_amount, fp, tn)
        return most - upper_mean(most - paid, most, tail), upper_mean(paid, most, tail)


def cell_costs(cost: Rate, labels: Any, amounts: Any) -> tuple[Floats, Floats]:
    """What each row costs if it is rejected, and if it is accepted; amounts are of positives."""
    tp, fp, fn, tn = weights(cost)[0]
    return np.where(labels, fn * amounts, tn), np.where(labels, tp * amounts, fp)


def row_costs(cost: Rate, scores: Any, labels: Any, amounts: Any, threshold: float) -> Floats:
    """What each row costs at a threshold."""
    rejected, accepted = cell_costs(cost, labels, amounts)
    return np.where(np.asarray(scores) > threshold, accepted, rejected)


def with_amounts(
    sample: CalibrationSample, goal: CertificateGoal, amounts: Any, largest: float | None
) -> CostSample:
    """The rows with their amounts, checked.

    Raises:
        CannotPromise: The goal has no cost.
        ValueError: Amounts are missing, negative, all zero or larger than the largest.
    """
    if not any(map(is_cost, goal.expressions)):
        raise CannotPromise(
            f"`{goal.text}` has no cost that amounts enter: write cost(miss=1, false_alarm=5) <= 8."
        )
    every = sample.all_rows if isinstance(sample, ClusterSample) else sample
    array = to_numpy(amounts, "amounts")
    check_length(array, every.scores if sample.kept is None else sample.kept, "amounts")
    array = read_amounts(array if sample.kept is None else array[sample.kept])
    if not array.any():
        raise ValueError("All amounts are 0, so no miss costs anything: nothing to certify.")
    most = float(array.max()) if largest is None else number(largest, "largest_amount")
    if most < array.max():
        raise ValueError(
            f"largest_amount is {most:g}, and a row has {array.max():g}: name the most that a row "
            "to come can have."
        )
    codes = np.arange(len(array))
    if isinstance(sample, ClusterSample):
        codes = np.argsort(sample.codes[sample.drawn])[sample.codes]
    return CostSample(sample, PaidRows(every.scores, every.labels, array, codes), most)

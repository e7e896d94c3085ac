"""What a bound on classes limits, at shifts that were fixed on other data: shares and mean costs.

Whether an example counts in a rate of a class is one binomial trial, and Clopper and Pearson's
limit is exact; what an example costs by a matrix of costs is bounded, and its mean is proved by
betting. A bound on the worst class limits one share per class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from setpoint.axes.arrays import Floats
from setpoint.axes.class_data import read_data
from setpoint.axes.confusion import hard_tables
from setpoint.batch import ScoredExamples
from setpoint.certificates.betting import FINE_STAKES, log_capital, upper_mean
from setpoint.certificates.regions import is_plain_share
from setpoint.certificates.tails import allowed, lower, needed, prob_at_least, prob_at_most, upper
from setpoint.problems import Problem
from setpoint.rates import Across, Bound, Cost, numeral, quote


@dataclass(frozen=True)
class ClassShare:
    """One share that a bound limits: ``count`` of ``total``."""

    bound: Bound
    whose: str
    count: int
    total: int

    def __str__(self) -> str:
        return f"{self.bound.expression}{self.whose} {self.bound.sense} {numeral(self.bound.level)}"

    @property
    def at_most(self) -> bool:
        """Whether the bound is one from above."""
        return self.bound.sense == "<="

    @property
    def risk(self) -> float:
        """The largest share of unwanted outcomes."""
        return self.bound.level if self.at_most else 1 - self.bound.level

    @property
    def measured(self) -> float | None:
        """The share itself; None if there is no example of it."""
        return self.count / self.total if self.total else None

    def proved(self, tail: float) -> float:
        """The Clopper-Pearson limit of the share, wrong with probability at most ``tail``."""
        return float((upper if self.at_most else lower)(self.count, self.total, tail))

    def is_proved(self, tail: float) -> bool:
        """Whether the limit is within the bound, and there are examples of it."""
        value = self.proved(tail)
        within = value <= self.bound.level if self.at_most else value >= self.bound.level
        return self.total > 0 and within

    def provable(self, tail: float) -> float | None:
        """The worst share of so many examples that proves the bound; None if not even the best."""
        wrong = allowed(self.total, self.risk, tail)
        if wrong < 0 or not self.total:
            return None
        return (wrong if self.at_most else self.total - wrong) / self.total

    def needed(self, tail: float) -> int | None:
        """The fewest examples that can prove the bound; None if no number can."""
        return needed(self.risk, tail)

    def chance(self) -> float:
        """How likely counts are as bad as these if the bound is true."""
        if not self.total:
            return 1.0
        side = prob_at_least if self.at_most else prob_at_most
        return float(side(self.count, self.total, self.bound.level))

    @property
    def counts(self) -> str:
        """``12 of 400``."""
        return f"{self.count:,} of {self.total:,}"

    def displayed(self, tail: float, *, sure: bool) -> float:
        """The limit at ``tail``; no worse than the bound if that is certified (``sure``)."""
        limit, level = self.proved(tail), self.bound.level
        return limit if not sure else min(limit, level) if self.at_most else max(limit, level)

    def why_not(self, tail: float, together: float) -> str:
        """What a proof lacks, in numbers; limits are displayed at the tail ``together``."""
        if self.provable(tail) is None:
            enough = self.needed(tail)
            why = "no number of examples can" if enough is None else f"it takes {enough:,} at least"
            return f"`{self}` cannot be proved by {self.total:,} examples: {why}"
        side = "at most" if self.at_most else "at least"
        return f"`{self}` is not proved: {side} {self.proved(together):.4g} is"


@dataclass(frozen=True)
class ClassCost(ClassShare):
    """The mean of what ``total`` examples cost: between the least and the most of a matrix."""

    paid: tuple[tuple[float, int], ...] = ()
    """What examples cost, and how many cost so much; every entry of the matrix is there."""

    @classmethod
    def read(cls, bound: Bound, matrix: Any) -> ClassCost:
        """From the counts of all decisions, ``[true, predicted]``."""
        assert isinstance(bound.expression, Cost)
        counts = np.asarray(matrix).astype(int).ravel().tolist()
        paid = tuple(zip(np.ravel(bound.expression.costs).tolist(), counts, strict=True))
        return cls(bound, "", 0, sum(counts), paid)

    @property
    def measured(self) -> float | None:
        """The mean cost; None if there is no example."""
        return float(self._values.mean()) if self.total else None

    @property
    def counts(self) -> str:
        """``400 examples``."""
        return f"{self.total:,} examples, {self._least:g} to {self._most:g} each"

    def proved(self, tail: float) -> float:
        """An upper bound of the mean cost, wrong with probability at most ``tail``."""
        values = self._values - self._least
        return self._least + upper_mean(values, self._most - self._least, tail)

    def provable(self, tail: float) -> float | None:
        """The bound with as much room below it as the proof takes here."""
        if self.bound.level <= self._least or not self._enough(tail, self.total):
            return None
        return self.bound.level - (self.proved(tail) - float(self._values.mean()))

    def needed(self, tail: float) -> int | None:
        """The fewest examples that can prove the bound, if each of them costs the least."""
        if self.bound.level <= self._least:
            return None
        low, high = 0, 1
        while not self._enough(tail, high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._enough(tail, middle) else (middle, high)
        return high

    def chance(self) -> float:
        """How likely costs are as bad as these if the bound is true, at most."""
        loss = self.bound.level - self._least
        if not self.total or loss <= 0:
            return 1.0
        capital = log_capital(self._values - self.bound.level, loss, FINE_STAKES)
        return float(np.exp(min(0.0, -capital)))

    def _enough(self, tail: float, count: int) -> bool:
        """Whether so many examples at the least cost prove the bound."""
        room = self._most - self.bound.level
        gain = (self.bound.level - self._least) / room if room > 0 else math.inf
        capital = count * np.log1p(np.array(FINE_STAKES) * gain)
        return bool(logsumexp(capital) - math.log(len(capital)) >= -math.log(tail))

    @property
    def _values(self) -> Floats:
        costs, counts = zip(*self.paid, strict=True)
        return np.repeat(np.array(costs), counts)

    @property
    def _least(self) -> float:
        return min(cost for cost, _ in self.paid)

    @property
    def _most(self) -> float:
        return max(cost for cost, _ in self.paid)


def class_shares(
    problem: Problem,
    scores: Any,
    labels: Any,
    shifts: Any,
    *,
    classes: Sequence[Any],
    groups: Any = None,
) -> dict[Bound, list[ClassShare]]:
    """For every bound that can be proved, the shares (or costs) it limits, on these examples."""
    data = read_data(problem, ScoredExamples(scores, labels, groups=groups, classes=classes))
    tables = hard_tables(data, data.scores - np.asarray(shifts, np.float64))
    return {
        target: list(_shares_of(target, tables, data.names))
        for target in problem.subject_to
        if isinstance(target, Bound) and is_provable(target)
    }


def is_provable(bound: Bound) -> bool:
    """Whether a bound is one on a share of examples, on that of every class, or on a mean cost."""
    expression = bound.expression
    if isinstance(expression, Across):
        worst = {"lowest": ">=", "highest": "<="}.get(expression.kind)
        return bound.sense == worst and is_plain_share(expression.inner)
    if isinstance(expression, Cost):
        return bound.sense == "<="
    return is_plain_share(expression)


def _shares_of(bound: Bound, tables: Any, names: tuple[Any, ...]) -> Iterator[ClassShare]:
    expression = bound.expression
    if isinstance(expression, Cost):
        yield ClassCost.read(bound, tables[expression.where].classes.matrix)
        return
    for rate in expression.rates():
        table, whose = tables[rate.where], [""]
        if isinstance(expression, Across):
            table, whose = table.classes.each(), [f" of {quote(str(name))}" for name in names]
        elif rate.classes:
            table = table.classes.against_rest(rate.classes)
        counts, sizes = (np.atleast_1d(x.of(table)) for x in (rate.numerator, rate.denominator))
        for text, count, n in zip(whose, counts, sizes, strict=True):
            yield ClassShare(Bound(rate, bound.sense, bound.level), text, int(count), int(n))

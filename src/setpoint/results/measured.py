"""How sure a counted share is: Clopper and Pearson's interval, exact for every sample size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from setpoint._checks import share, whole
from setpoint.certificates.regions import interval_at, is_plain_share
from setpoint.problems import Problem
from setpoint.rates import Bound, Counts, Expression, Setpoint, Where
from setpoint.results.run import Scored, Threshold


class Interval(NamedTuple):
    """From ``low`` to ``high``; each end by itself is wrong at most ``1 - confidence`` often."""

    low: float
    high: float


def clopper_pearson(count: int, total: int, confidence: float = 0.95) -> Interval:
    """The interval of a share, ``count`` of ``total``.

    Each end is a one-sided bound with the given confidence, so that the upper end on calibration
    data is the very number a certificate proves. Both ends together hold with ``2 confidence - 1``.

    Example:
        >>> low, high = clopper_pearson(0, 299)
        >>> low, round(high, 4)                  # 299 is the least number that shows "below 1 %"
        (0.0, 0.01)
    """
    n = whole(total, "total", least=0)
    k = whole(count, "count", least=0)
    if k > n:
        raise ValueError(f"count is a part of total; got {k} of {n}.")
    risk = 1 - share(confidence, "confidence", ends=False)
    low = float(betaincinv(k, n - k + 1, risk)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - risk)) if k < n else 1.0
    return Interval(low, high)


# ------------------------------------------------------------------------------------------------
# A rate as it was measured: value, interval, and the counts behind both.


Masks = Mapping[Where, NDArray[np.bool_]]


@dataclass(frozen=True)
class Measured:
    """A value with its interval; ``count`` of ``total`` if it is a share of examples.

    ``value`` is NaN for 0/0, and ``interval`` None where there is none (0/0, a number of heads).
    """

    value: float
    interval: Interval | None
    count: int | None
    total: int | None

    def against(self, bound: Bound) -> str:
        """What the data say about ``bound``: ``holds``, ``met``, ``missed`` or ``broken``.

        The outer two are beyond chance (the whole interval lies on one side), the inner two not.
        """
        if math.isnan(self.value):
            return "missed"
        sign = 1.0 if bound.sense == "<=" else -1.0
        low, high = self.interval or (self.value, self.value)
        nearest, farthest = sorted((sign * low, sign * high))
        if self.interval is not None and farthest <= sign * bound.level:
            return "holds"
        if self.interval is not None and nearest > sign * bound.level:
            return "broken"
        return "met" if sign * self.value <= sign * bound.level + 1e-12 else "missed"


def tables_of(
    accepted: NDArray[np.bool_], labels: NDArray[np.bool_], slices: Masks
) -> dict[Where, Counts]:
    """The four counts on everyone, ``()``, and on each of ``slices`` (masks of rows)."""
    everyone: Masks = {(): np.ones(len(labels), dtype=bool)}
    tables = {}
    for where, rows in {**everyone, **slices}.items():
        positives, negatives = int((rows & labels).sum()), int((rows & ~labels).sum())
        tp = int((rows & labels & accepted).sum())
        fp = int((rows & ~labels & accepted).sum())
        tables[where] = Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)
    return tables


def measure(
    expression: Expression, tables: Mapping[Where, Counts], confidence: float = 0.95
) -> Measured:
    """The value of ``expression`` on ``tables``, with an interval that holds for every sample size.

    Of a plain share, an F score, an error it is that of Clopper and Pearson; of a gap or another
    combination it is made of those of its parts.

    Example:
        >>> from setpoint.rates import fpr
        >>> m = measure(fpr, {(): Counts(7, 0, 3, 299, 10, 299)})
        >>> m.value, round(m.interval.high, 4), m.total
        (0.0, 0.01, 299)
    """
    if not is_plain_share(expression):
        with np.errstate(all="ignore"):
            value = float(expression.of(tables))
        ends = interval_at(expression, tables, 1 - confidence) if np.isfinite(value) else None
        return Measured(value, None if ends is None else Interval(*ends), None, None)
    table = tables[expression.where]
    count, total = int(expression.numerator.of(table)), int(expression.denominator.of(table))
    if total == 0:
        return Measured(math.nan, None, 0, 0)
    return Measured(count / total, clopper_pearson(count, total, confidence), count, total)


# ------------------------------------------------------------------------------------------------
# Which examples a threshold accepts, also when every group has its own.


class Margins(NamedTuple):
    """Values to compare with one ``cut``: the scores, or how far each is above its threshold."""

    values: NDArray[Any]
    cut: float

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """The decisions: strictly above."""
        return np.asarray(self.values > self.cut)


def margins(split: Scored, threshold: Threshold) -> Margins:
    """What ``threshold`` is compared with; without one nobody is accepted.

    Example:
        >>> part = Scored(np.array([0.5, 0.5]), np.array([1, 0]), np.array(["a", "b"]))
        >>> margins(part, {"a": 0.4, "b": 0.6}).accepted.tolist()
        [True, False]
    """
    if threshold is None:
        return Margins(split.scores, np.inf)
    if not isinstance(threshold, Mapping):
        return Margins(split.scores, float(threshold))
    if split.groups is None:
        raise ValueError("One threshold per group needs the groups of every split.")
    mine = np.empty_like(split.scores, dtype=np.result_type(split.scores, np.float32))
    known = {str(key): value for key, value in threshold.items()}
    for group in np.unique(split.groups):
        if str(group) not in known:
            raise ValueError(f"No threshold for group {str(group)!r}; add it to threshold=.")
        mine[split.groups == group] = known[str(group)]
    # s - t > 0 exactly where s > t: floats underflow gradually
    return Margins(split.scores - mine, 0.0)


# ------------------------------------------------------------------------------------------------
# A goal in words, taken apart: what is made good, and the bounds that must hold.


@dataclass(frozen=True)
class GoalParts:
    """The bounds of a sentence and, unless it had bounds alone, its problem."""

    sentence: str
    problem: Problem | None
    bounds: tuple[Bound | Setpoint, ...]

    @property
    def objective(self) -> Expression | None:
        """What is made large or small; None for bounds alone, or for an area under a curve."""
        one = self.problem is not None and self.problem.swept is None
        return self.problem.objective if one and self.problem is not None else None

    @property
    def slices(self) -> set[Where]:
        """The slices of the data that it looks at, everyone aside."""
        bounded = {rate.where for bound in self.bounds for rate in bound.expression.rates()}
        if self.objective is not None:
            bounded |= {rate.where for rate in self.objective.rates()}
        return bounded - {()}


def read_goal(sentence: str) -> GoalParts:
    """Take a sentence apart: a whole problem, or bounds joined by ``and``.

    Example:
        >>> read_goal("fpr <= 0.01").bounds
        (fpr <= 0.01,)
        >>> read_goal("maximize recall subject to fpr <= 0.01").objective
        recall
    """
    if sentence.split()[:1] in (["minimize"], ["maximize"]):
        problem = Problem.parse(sentence)
        return GoalParts(sentence, problem, problem.points[0] if problem.swept is None else ())
    bounds = Problem.parse(f"minimize error subject to {sentence}").points[0]
    return GoalParts(sentence, None, bounds)


def goal_tables(
    goal: GoalParts, accepted: NDArray[np.bool_], labels: NDArray[np.bool_], groups: Any
) -> dict[Where, Counts]:
    """The tables that ``goal`` is measured on; a slice that cannot be told apart is left out."""
    inside: dict[Where, NDArray[np.bool_]] = {}
    for where in goal.slices:
        if groups is not None and len(where) == 1:
            same = np.asarray(groups == where[0][1])
            inside[where] = (
                same if same.any() else np.asarray(groups.astype(str) == f"{where[0][1]}")
            )
    return tables_of(accepted, labels, inside)


def measure_known(
    expression: Expression, tables: Mapping[Where, Counts], confidence: float
) -> Measured:
    """As :func:`measure`, NaN if a slice is missing."""
    if any(rate.where not in tables for rate in expression.rates()):
        return Measured(float("nan"), None, None, None)
    return measure(expression, tables, confidence)

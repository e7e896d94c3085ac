"""Rates as they were measured: value, interval and counts, at a threshold, for a goal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share, whole
from setpoint.certificates.regions import interval_at, is_plain_share
from setpoint.certificates.tails import lower, upper
from setpoint.problems import Problem
from setpoint.rates import Bound, Counts, Expression, Setpoint, Where, is_cost
from setpoint.results.run import Scored, Threshold


class Interval(NamedTuple):
    """From ``low`` to ``high``, a two-sided confidence interval.

    It misses the truth at most ``1 - confidence`` often, half of that on either side: the one
    convention of certificates, pages, cards and loggers.
    """

    low: float
    high: float


def clopper_pearson(count: int, total: int, confidence: float = 0.95) -> Interval:
    """The two-sided interval of Clopper and Pearson for a share, ``count`` of ``total``.

    Examples:
        >>> low, high = clopper_pearson(5, 100)
        >>> round(low, 4), round(high, 4)
        (0.0164, 0.1128)
    """
    n = whole(total, "total", least=0)
    k = whole(count, "count", least=0)
    if k > n:
        raise ValueError(f"count is a part of total; got {k} of {n}.")
    tail = (1 - share(confidence, "confidence", ends=False)) / 2
    return Interval(float(lower(k, n, tail)), float(upper(k, n, tail)))


@dataclass(frozen=True)
class Measured:
    """A value with its interval; ``count`` of ``total`` if it is a share of examples.

    ``value`` is NaN for 0/0, and ``interval`` None where there is none (0/0, a number of heads).
    """

    value: float
    interval: Interval | None = None
    count: int | None = None
    total: int | None = None

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


UNKNOWN = Measured(math.nan)
"""A rate that these data do not have."""


def count_decisions(accepted: NDArray[np.bool_], labels: NDArray[np.bool_]) -> Counts:
    """The confusion counts of decisions ``[n]`` on labels ``[n]``, both booleans."""
    positives, negatives = int(labels.sum()), int((~labels).sum())
    tp, fp = int((labels & accepted).sum()), int((~labels & accepted).sum())
    return Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)


def measure(
    expression: Expression, tables: Mapping[Where, Counts], confidence: float = 0.95
) -> Measured:
    """The value of ``expression`` on ``tables``, with an interval that holds for every sample size.

    For a plain share, an F score or an error it is the interval of Clopper and Pearson; for a gap
    or another combination it is made of those of its parts. A slice that ``tables`` does not have
    gives :data:`UNKNOWN`.

    Examples:
        >>> from setpoint.rates import fpr
        >>> m = measure(fpr, {(): Counts(7, 0, 3, 299, 10, 299)})
        >>> m.value, round(m.interval.high, 4), m.total
        (0.0, 0.0123, 299)
    """
    if any(rate.where not in tables for rate in expression.rates()):
        return UNKNOWN
    if not is_plain_share(expression):
        with np.errstate(all="ignore"):
            value = float(expression.of(tables))
        ends = interval_at(expression, tables, (1 - confidence) / 2) if np.isfinite(value) else None
        return Measured(value, None if ends is None else Interval(*ends))
    table = tables[expression.where]
    count, total = int(expression.numerator.of(table)), int(expression.denominator.of(table))
    if total == 0:
        return Measured(math.nan, None, 0, 0)
    return Measured(count / total, clopper_pearson(count, total, confidence), count, total)


class Margins(NamedTuple):
    """Values to compare with one ``cut``: the scores, or how far each is above its threshold."""

    values: NDArray[Any]
    cut: float

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """The decisions: strictly above."""
        return np.asarray(self.values > self.cut)


def margins(split: Scored, threshold: Threshold) -> Margins:
    """What ``threshold`` is compared with on a split; without a threshold nobody is accepted.

    Raises:
        ValueError: A threshold per group, and a group without one or a split without groups.

    Examples:
        >>> part = Scored(np.array([0.5, 0.5]), np.array([1, 0]), np.array(["a", "b"]))
        >>> margins(part, {"a": 0.4, "b": 0.6}).accepted.tolist()
        [True, False]
    """
    if threshold is None:
        return Margins(split.scores, np.inf)
    if not isinstance(threshold, Mapping):
        return Margins(split.scores, float(np.asarray(threshold)))
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


@dataclass(frozen=True)
class GoalParts:
    """A goal taken apart: its bounds and, unless it had bounds alone, its problem."""

    problem: Problem | None
    bounds: tuple[Bound | Setpoint, ...]
    by_amounts: bool = False
    """Whether costs go by amounts, which scored rows do not tell."""

    def measure(
        self, expression: Expression, tables: Mapping[Where, Counts], confidence: float
    ) -> Measured:
        """See :func:`measure`; a cost by amounts is unknown."""
        unknown = self.by_amounts and is_cost(expression)
        return UNKNOWN if unknown else measure(expression, tables, confidence)

    @property
    def objective(self) -> Expression | None:
        """What is made large or small; None for bounds alone, or for an area under a curve."""
        if self.problem is None or self.problem.swept is not None:
            return None
        return self.problem.objective

    def tables(
        self, accepted: NDArray[np.bool_], labels: NDArray[np.bool_], groups: Any
    ) -> dict[Where, Counts]:
        """The counts it is measured on; a slice that cannot be told apart is left out."""
        expressions = [bound.expression for bound in self.bounds]
        if self.objective is not None:
            expressions.append(self.objective)
        tables: dict[Where, Counts] = {(): count_decisions(accepted, labels)}
        for where in {rate.where for one in expressions for rate in one.rates()} - {()}:
            if groups is not None and len(where) == 1:
                value = where[0][1]
                same = np.asarray(groups == value)
                same = same if same.any() else np.asarray(groups.astype(str) == str(value))
                tables[where] = count_decisions(accepted[same], labels[same])
        return tables


def read_goal(sentence: str) -> GoalParts:
    """Take a sentence apart: a whole problem, or bounds joined by ``and``.

    Examples:
        >>> read_goal("fpr <= 0.01").bounds
        (fpr <= 0.01,)
        >>> read_goal("maximize recall subject to fpr <= 0.01").objective
        recall
    """
    if sentence.split()[:1] in (["minimize"], ["maximize"]):
        problem = Problem.parse(sentence)
        return GoalParts(problem, problem.points[0] if problem.swept is None else ())
    return GoalParts(None, Problem.parse(f"minimize error subject to {sentence}").points[0])

"""What a three-way certificate does to scored rows: accepted, reviewed and rejected cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates import ThreeWayCertificate
from setpoint.certificates.decisions import exceeds
from setpoint.certificates.three_way import ACCEPT, REJECT, REVIEW
from setpoint.rates import Bound, Counts, Where
from setpoint.results.curves import Histogram, histogram
from setpoint.results.measured import (
    Measured,
    clopper_pearson,
    count_decisions,
    measure,
    read_goal,
)
from setpoint.results.points import OperatingPoint, usual_rates
from setpoint.results.rows import group_masks, period_masks

DECISIONS = (ACCEPT, REVIEW, REJECT)


@dataclass(frozen=True)
class DecisionRow:
    """The cases that get one decision.

    Attributes:
        decision: ``accept``, ``review`` or ``reject``.
        cases: Their share of all cases.
        positives: The share of positives among them.
    """

    decision: str
    cases: Measured
    positives: Measured


@dataclass(frozen=True)
class ThreeWayFindings:
    """All numbers of the page of a three-way certificate, each computed when it is asked for.

    Args:
        certificate: What :func:`setpoint.certificates.certify_three_way` found.
        scores: One score per row.
        labels: Whether each row is positive.
        groups: The group of each row, if there are groups.
        times: When each row came, as dates or numbers of numpy, if that is known.
        by: The length of a period.
        costs: What a miss (a rejected positive) and a false alarm (an accepted negative) cost.
    """

    certificate: ThreeWayCertificate
    scores: NDArray[Any]
    labels: NDArray[np.bool_]
    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    by: str | None = None
    costs: tuple[float, float] | None = None

    @property
    def own(self) -> bool:
        """Whether these are the rows the certificate rests on: they give its own counts."""
        if len(self.scores) != self.certificate.examples:
            return False
        reviewed = [row.cases.count for row in self.rows if row.decision == REVIEW]
        return reviewed in ([], [self.certificate.reviews])

    @cached_property
    def rows(self) -> tuple[DecisionRow, ...]:
        """One row for each decision; none if nothing is certified."""
        return self._rows(np.ones(len(self.scores), bool))

    @cached_property
    def by_group(self) -> Mapping[str, Sequence[DecisionRow]]:
        """The decisions in each of the largest groups."""
        masks = {} if self.groups is None else group_masks(self.groups)
        return {name: self._rows(mine) for name, mine in masks.items()}

    @cached_property
    def by_period(self) -> Mapping[str, Sequence[DecisionRow]]:
        """The decisions in each of the latest periods."""
        masks = {} if self.times is None else period_masks(self.times, self.by)
        return {name: self._rows(mine) for name, mine in masks.items()}

    @property
    def days(self) -> int | None:
        """How many days the rows span, if their dates are known."""
        if self.times is None or self.times.dtype.kind != "M":
            return None
        first, last = (end.astype("datetime64[D]") for end in (self.times.min(), self.times.max()))
        return int((last - first).astype(int)) + 1

    @property
    def sides(self) -> tuple[tuple[Bound, Measured | None], ...]:
        """The bound on what is accepted, then that on what is rejected, as measured here."""
        found = self.certificate
        goals = [read_goal(text).bounds[0] for text in (found.accept, found.reject)]
        cuts = (found.upper, found.lower)
        return tuple(
            (bound, None if cut is None else measure(bound.expression, self._at(cut), self._sure))
            for bound, cut in zip(goals, cuts, strict=True)
            if isinstance(bound, Bound)
        )

    @property
    def cost(self) -> Measured | None:
        """What a case costs on average without its review, if costs are known."""
        found = self.certificate
        if self.costs is None or found.upper is None or found.lower is None:
            return None
        above, over = (usual_rates(self._at(t)[()], self._sure) for t in (found.upper, found.lower))
        both = above._replace(recall=over.recall)  # alarms above upper, misses up to lower
        return OperatingPoint(found.upper, *both, chosen=True).cost(self.costs, self._sure)

    @property
    def histogram(self) -> Histogram:
        """How the scores of both classes are spread."""
        return histogram(self.scores, self.labels, show=self.certificate.upper)

    @property
    def _sure(self) -> float:
        return self.certificate.confidence

    def _at(self, cut: float) -> dict[Where, Counts]:
        """The counts of the decision ``score > cut``, compared in the certified precision."""
        above = np.asarray(exceeds(self.scores, cut, self.certificate.dtype))
        return {(): count_decisions(above, self.labels)}

    @cached_property
    def _decided(self) -> NDArray[np.str_]:
        return self.certificate.decide(self.scores)

    def _rows(self, mine: NDArray[np.bool_]) -> tuple[DecisionRow, ...]:
        if not self.certificate.certified:
            return ()
        every = int(mine.sum())
        rows = []
        for decision in DECISIONS:
            given = mine & (self._decided == decision)
            count, positives = int(given.sum()), int((given & self.labels).sum())
            rows.append(
                DecisionRow(decision, self._share(count, every), self._share(positives, count))
            )
        return tuple(rows)

    def _share(self, count: int, total: int) -> Measured:
        if total == 0:
            return Measured(np.nan, None, 0, 0)
        return Measured(count / total, clopper_pearson(count, total, self._sure), count, total)

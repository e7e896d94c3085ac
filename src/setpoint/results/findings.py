"""Everything the report and the model card say about a run, computed from its scores.

A new plot or table of the report starts here, as a property of :class:`Findings` that computes its
numbers; :mod:`setpoint.reports.charts` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setpoint.axes.class_data import decide
from setpoint.certificates.classes import ASSUMED
from setpoint.rates import Bound
from setpoint.results.bootstrap import AgainstBaseline, against_baseline
from setpoint.results.confusion import Confusions
from setpoint.results.curves import (
    Curve,
    Histogram,
    PrecisionRecall,
    TrainingSeries,
    histogram,
    pr_curve,
    roc_curve,
    training_series,
)
from setpoint.results.measured import GoalParts, Interval, Margins, Measured, margins, read_goal
from setpoint.results.points import OperatingPoint, sensitivity, stops
from setpoint.results.rows import (
    Mix,
    SliceRow,
    SplitRow,
    at_prevalences,
    class_rates,
    class_split_row,
    group_rates,
    period_rates,
    split_row,
    widest_gap,
)
from setpoint.results.run import RunResult, Scored, Verdict, read_verdict, sentences
from setpoint.tables.values import days_of

MOST_GROUPS_TO_MOVE = 6
"""Of more groups the largest have thresholds that can be moved on the page."""
MOST_CHECKS = 60
"""Of more checks the latest are shown."""
ASSUMPTIONS = (
    "The calibration cases were drawn like the cases to come, independently of each other.",
    "Neither training nor the choice of the model has looked at the calibration data.",
    "Scores are computed in the same way and precision as here, and compared with a strict >.",
)


@dataclass(frozen=True)
class Curves:
    """The curves of one model on the judged split."""

    name: str
    roc: Curve
    pr: PrecisionRecall


@dataclass(frozen=True)
class Findings:
    """All numbers of a report, each computed when it is first asked for.

    What a run does not have (curves of several classes, a confusion matrix of two) is empty or
    None.

    Args:
        run: For two classes, with or without groups, or for several.
    """

    run: RunResult

    @cached_property
    def goal(self) -> GoalParts:
        """Objective and bounds."""
        return replace(read_goal(self.run.goal), by_amounts=self.verdict.by_amounts)

    @cached_property
    def verdict(self) -> Verdict:
        """What the certificate says."""
        return read_verdict(self.run.certificate)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the certificate assumes."""
        return ASSUMED if self.run.classes else self.verdict.assumptions or ASSUMPTIONS

    @cached_property
    def splits(self) -> tuple[SplitRow, ...]:
        """The goal, and the usual rates, on every split."""
        if self.run.classes:
            return tuple(class_split_row(self.run, name, self.goal) for name in self.run.splits)
        given = (self.run.threshold, self.goal, self.verdict.confidence)
        rows = (split_row(name, split, *given) for name, split in self.run.splits.items())
        return tuple(self._as_certified(row) if row.name == "calibration" else row for row in rows)

    def _as_certified(self, row: SplitRow) -> SplitRow:
        """The calibration row with the certificate's own interval of what it shows.

        The threshold was found on these rows, which the certificate's interval allows for. Of
        clusters and of costs by amounts its values are the certificate's, too: they are means over
        all rows of each cluster, and amounts are not kept.
        """
        bounds, told = self.goal.bounds, self.verdict.measured
        known = (told.get(str(bound), math.nan) for bound in bounds)
        row = replace(
            row,
            bounds=tuple(
                Measured(value, total=rate.total)
                if self._is_told(rate) and value == value
                else rate
                for value, rate in zip(known, row.bounds, strict=True)
            ),
        )
        recall = self._own("recall", row.recall)
        if row.objective is None:
            return replace(row, recall=recall)
        own = self._own(str(self.goal.objective), row.objective)
        return replace(row, objective=own, recall=own if row.recall == row.objective else recall)

    def _own(self, name: str, rate: Measured) -> Measured:
        """A rate with the certificate's interval, if it is the rate that the certificate shows."""
        if name not in self.verdict.intervals:
            return rate
        value, *ends = self.verdict.intervals[name]
        if self._is_told(rate):
            return Measured(value, Interval(*ends), total=rate.total)
        same = np.isclose(value, rate.value, rtol=1e-9)
        return replace(rate, interval=Interval(*ends)) if same else rate

    def _is_told(self, rate: Measured) -> bool:
        """Whether the certificate alone knows the value."""
        by_amounts = self.goal.by_amounts and math.isnan(rate.value)
        return by_amounts or self.verdict.by_cluster

    def says(self, row: SplitRow, place: int) -> str:
        """What a split says about the bound at ``place``: ``proved`` on the rows that proved it.

        On test rows :meth:`Measured.against`; empty for rows that cannot judge, and for an exact
        value.
        """
        bound = self.goal.bounds[place]
        if row.name not in ("calibration", "test") or not isinstance(bound, Bound):
            return ""
        if row.name == "calibration" and self.verdict.status == "certified":
            return "proved"
        if self.goal.by_amounts and math.isnan(row.bounds[place].value):
            return ""
        return row.bounds[place].against(bound)

    @property
    def judged(self) -> SplitRow:
        """The row of the split nearest to new data."""
        return next(row for row in self.splits if row.name == self.run.judged)

    @property
    def contradicted(self) -> tuple[Bound, Measured] | None:
        """A certified bound that the test data break beyond chance, and the rate there."""
        if self.judged.name != "test" or self.verdict.status != "certified":
            return None
        for bound, rate in zip(self.goal.bounds, self.judged.bounds, strict=True):
            if isinstance(bound, Bound) and rate.against(bound) == "broken":
                return bound, rate
        return None

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why a certificate that is certified must not be relied on; each completes "but ..."."""
        said = self.verdict.caveats if self.verdict.status == "certified" else ()
        return said or (("the test data contradict it",) if self.contradicted else ())

    @cached_property
    def curves(self) -> tuple[Curves, ...]:
        """Curves on the judged split, ours first; none if it has one class only, or several."""
        split = self._split
        if self.run.classes or not 0 < split.labels.sum() < split.labels.size:
            return ()
        named = [(self.run.method or "this model", self._margins.values)]
        if self.run.baseline is not None and self.run.judged in self.run.baseline:
            named.append((self.run.baseline_name, self.run.baseline[self.run.judged].scores))
        return tuple(
            Curves(name, roc_curve(s, split.labels), pr_curve(s, split.labels)) for name, s in named
        )

    @cached_property
    def sensitivity(self) -> tuple[OperatingPoint, ...]:
        """What neighbouring thresholds would do."""
        return self._moved(sensitivity)

    @cached_property
    def stops(self) -> tuple[OperatingPoint, ...]:
        """What thresholds between the highest score and the lowest would do."""
        return self._moved(stops)

    def _moved(self, points: Callable[..., list[OperatingPoint]]) -> tuple[OperatingPoint, ...]:
        if self.run.classes or self._margins.cut == -np.inf:
            return ()
        found = points(self._margins, self._split.labels, confidence=self.verdict.confidence)
        recall = self.judged.recall
        if recall.count is None:  # a mean over clusters: here rows are counted
            return tuple(found)
        return tuple(replace(point, recall=recall) if point.chosen else point for point in found)

    @property
    def safe_side(self) -> str:
        """Where the bounds hold, too, if they hold at the threshold: stricter, looser, or empty.

        A rate that only falls as fewer are flagged keeps its upper bound at stricter thresholds.
        """
        sides = {b.caps if isinstance(b, Bound) else None for b in self.goal.bounds}
        return "stricter" if sides == {True} else "looser" if sides == {False} else ""

    @cached_property
    def histogram(self) -> Histogram | None:
        """How the scores of both classes are spread."""
        if self.run.classes:
            return None
        cut = self._margins.cut if np.isfinite(self._margins.cut) else None
        return histogram(self._margins.values, self._split.labels, show=cut)

    @cached_property
    def comparison(self) -> AgainstBaseline | None:
        """The baseline on the same rows."""
        if self.run.classes:
            return None
        return against_baseline(self.run, self.goal, self.verdict.confidence)

    @cached_property
    def groups(self) -> tuple[SliceRow, ...]:
        """Rates by group."""
        split = self._split
        if split.groups is None or self.run.classes:
            return ()
        given = (self._margins.accepted, split.labels, split.groups)
        return tuple(group_rates(*given, confidence=self.verdict.confidence))

    @cached_property
    def by_group(self) -> Mapping[str, Findings]:
        """The findings on the rows of each of the largest groups, at the threshold it has."""
        run, split = self.run, self._split
        if not self.groups or run.threshold is None:
            return {}
        largest = sorted(self.groups, key=lambda row: -row.count)[:MOST_GROUPS_TO_MOVE]
        names, found = np.asarray(split.groups).astype(str), {}
        for name in sorted(row.name for row in largest):
            mine, own = names == name, run.threshold
            if isinstance(own, Mapping):
                own = {str(group): cut for group, cut in own.items()}[name]
            found[name] = Findings(
                replace(
                    run,
                    splits={run.judged: tuple(c[mine] for c in split if c is not None)},
                    threshold=own,
                    baseline=None,
                    times=None if run.times is None else run.times[mine],
                )
            )
        return found

    @property
    def proves_groups(self) -> bool:
        """Whether the certificate is about single groups, and not only about everyone."""
        bounds = self.goal.bounds
        named = any(rate.where for bound in bounds for rate in bound.expression.rates())
        return named or bool((self.run.certificate or {}).get("column"))

    @cached_property
    def periods(self) -> tuple[SliceRow, ...]:
        """Rates by period, in the order of time."""
        run = self.run
        if run.times is None or run.classes:
            return ()
        given = (self._margins.accepted, self._split.labels, run.times)
        return tuple(period_rates(*given, by=run.by, confidence=self.verdict.confidence))

    @property
    def dates(self) -> tuple[str, ...]:
        """The days of the first and the last row of the judged split, if they are known."""
        times = self.run.times
        if times is not None and times.dtype.kind == "M":
            return tuple(str(end.astype("datetime64[D]")) for end in (times.min(), times.max()))
        period = sentences((self.run.certificate or {}).get("period"))
        dated = len(period) == 2 and None not in map(days_of, period)
        return period if dated and self.run.judged == "calibration" else ()

    @property
    def days(self) -> int | None:
        """How many days the rows of the judged split span, if their dates are known."""
        ends = [days_of(date) for date in self.dates]
        return None if len(ends) < 2 else int(ends[1] or 0) - int(ends[0] or 0) + 1

    @property
    def shown(self) -> OperatingPoint | None:
        """The stop of the threshold; if there is none, one with as many alerts as positives."""
        if not self.stops:
            return None
        positives = self.judged.positives
        gaps = [abs((stop.coverage.count or 0) - positives) for stop in self.stops]
        nearest = self.stops[gaps.index(min(gaps))]
        return next((stop for stop in self.stops if stop.chosen), nearest)

    def cost(self, point: OperatingPoint) -> Measured | None:
        """What an example costs on average at a threshold, if costs are known."""
        costs = self.run.costs
        return None if costs is None else point.cost(costs, self.verdict.confidence)

    @property
    def gaps(self) -> dict[str, Measured]:
        """The widest difference between two groups, by rate."""
        columns = {
            "false positive rate": [g.fpr for g in self.groups],
            "recall": [g.recall for g in self.groups],
            "alert rate": [g.coverage for g in self.groups],
        }
        sure = self.verdict.confidence
        found = {name: widest_gap(rates, sure) for name, rates in columns.items()}
        return {name: gap for name, gap in found.items() if gap is not None}

    @cached_property
    def confusions(self) -> Confusions | None:
        """For several classes, what each is taken for before the shifts and with them."""
        if not self.run.classes:
            return None
        split, names = self._split, tuple(self.run.classes)
        before, after = (decide(split.scores, t) for t in (np.zeros(len(names)), self.run.shifts))
        return Confusions.of(names, split.labels, before, after)

    @cached_property
    def classes(self) -> tuple[SliceRow, ...]:
        """For several classes, each against the rest."""
        if self.confusions is None:
            return ()
        return tuple(class_rates(self.run, self.confusions, self.verdict.confidence))

    @property
    def least_found(self) -> SliceRow:
        """Of several classes that are there, the one with the lowest recall."""
        return min((row for row in self.classes if row.count), key=lambda row: row.recall.value)

    @cached_property
    def history(self) -> tuple[TrainingSeries, ...]:
        """The numbers noted in training."""
        return tuple(training_series(self.run.history))

    @property
    def checks(self) -> tuple[Mapping[str, Any], ...]:
        """What later checks of this certificate found, from the first to the last."""
        own = (self.run.certificate or {}).get("checksum")
        mine = [check for check in self.run.checks if check.get("certificate", own) == own]
        return tuple(mine[-MOST_CHECKS:])

    @property
    def prevalence(self) -> list[Mix]:
        """Precision at other shares of positives than the judged split has."""
        row = self.judged
        if not row.positives or not row.negatives:
            return []
        return at_prevalences(row.recall.value, row.fpr.value, row.positives / row.count)

    @property
    def one_threshold(self) -> bool:
        """Whether everyone has the same threshold; if not, scores are shown as margins to it."""
        return not isinstance(self.run.threshold, Mapping)

    @property
    def cut(self) -> float | None:
        """Where the threshold stands among the values of the histogram, if anywhere."""
        if self.run.threshold is None or not np.isfinite(self._margins.cut):
            return None
        return float(self._margins.cut)

    @property
    def bound(self) -> Bound | None:
        """The first bound of the goal: the one that pictures mark."""
        return next((b for b in self.goal.bounds if isinstance(b, Bound)), None)

    @property
    def _split(self) -> Scored:
        found: Scored = self.run.splits[self.run.judged]
        return found

    @cached_property
    def _margins(self) -> Margins:
        return margins(self._split, self.run.threshold)

"""One threshold per query (ICO, section 6.3): no multiplier for any, all held at once.

A query's threshold depends on its own documents only, so the systems are 1 x 1, one per query and
operating point. The documents of all queries lie end to end; a query takes the place that an
output has on the axis of everyone: what is ``[c, m, k]`` there is ``[q, m, k]`` here. Whole queries
are taken some at a time, so that memory stays bounded. The objective is the mean over the queries
that have both relevant and other documents: the rest have nothing to rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.axes.axis import Outcome
from setpoint.axes.choice import Infeasible
from setpoint.axes.everyone import Separable
from setpoint.axes.order_statistics import QUANTILES
from setpoint.axes.query_choice import choose_queries
from setpoint.axes.sample import Sample, exact, read_sample
from setpoint.axes.scan import TOLERANCE, place
from setpoint.axes.segments import (
    EXAMPLES_AT_ONCE,
    Grouped,
    QueryCuts,
    Segments,
    queries_among,
    query_column,
)
from setpoint.axes.soft_counts import SoftCounts
from setpoint.axes.specification import Specification
from setpoint.batch import check_scores
from setpoint.rates import Array, Bound, Where
from setpoint.steps import Step

Rows = slice | NDArray[np.int64]


class QuerySample(Sample):
    """Documents in the order of their queries: scores ``[n]``, columns ``[n, k]``."""

    def __init__(
        self, scores: Array, columns: Array, slices: tuple[Where, ...], *, queries: Segments
    ) -> None:
        self.queries = queries
        self.by_column = np.ascontiguousarray(columns.T)  # each column in one piece, [k, n]
        super().__init__(scores, columns, slices, totals=queries.total(self.by_column).T)

    @cached_property
    def query_cuts(self) -> QueryCuts:
        """The sorted scores of every query with the counts at every cut."""
        by = self.by_column
        pairs = {where: (by[2 * i], by[2 * i + 1]) for i, where in enumerate(self.slices)}
        return QueryCuts.sort(self.scores, self.queries, pairs)


@dataclass(frozen=True)
class QueryBatch:
    """A batch of whole queries, one score per document, and their order."""

    scores: Floats
    given: dict[str, Any]  # labels, weights, groups, queries, as they were handed in
    grouped: Grouped
    slices: tuple[Where, ...]
    size: int  # documents to take at once

    def parts(self) -> Iterator[tuple[Rows, QuerySample]]:
        """Some whole queries at a time: their rows, and the checked sample they make."""
        for part in self.grouped.parts(self.size):
            rows = self.grouped.rows(part)
            ids, count = self.grouped.ids(part), part.stop - part.start
            labels, weights, groups = (
                _of(self.given[name], rows) for name in ("labels", "weights", "groups")
            )
            read = read_sample(self.slices, self.scores[rows], labels, weights, groups)
            queries = Segments.of(ids, count)
            sample = QuerySample(read.scores[0], read.columns[0], self.slices, queries=queries)
            yield rows, sample


class Queries(Separable[QueryBatch]):
    """One threshold per query; see :class:`setpoint.axes.axis.Axis`."""

    name = "queries"
    advice = "Use queries with more documents, loosen the target, or drop strict=True."

    def read(
        self,
        scores: Any,
        labels: Any,
        weights: Any = None,
        groups: Any = None,
        queries: Any = None,
    ) -> QueryBatch:
        """A batch of whole queries; labels and weights are checked as they are taken."""
        s = exact(scores)
        if s.ndim not in (1, 2) or (s.ndim == 2 and s.shape[1] != 1):
            raise ValueError(
                f"Queries take one score per document, [n] or [n, 1]; got the shape {s.shape}."
            )
        s = s.reshape(-1)
        check_scores(s)
        name = self.problem.query
        found = queries_among(name, queries, groups)
        grouped = Grouped.by(query_column(name, found, s))
        given = {"labels": labels, "weights": weights, "groups": groups, "queries": found}
        size = max(1, EXAMPLES_AT_ONCE // len(self.problem.points))
        return QueryBatch(s, given, grouped, self.slices, size)

    def hold(self, whole: QueryBatch, own: QueryBatch, step: Step, widening: float) -> QueryOutcome:
        """Choose and hold the thresholds of all queries."""
        gradient = np.zeros(len(whole.scores))
        thresholds, marginals, found = [], [], []
        with np.errstate(all="ignore"):  # 0/0 is a value here, not an accident
            for rows, sample in whole.parts():
                cuts = sample.query_cuts
                placed = place(cuts, self.problem, self.targets)
                width = step.width_of(spread_within(cuts)) * widening
                width = np.where(width > 0, width, 1.0)[:, None]
                width = np.broadcast_to(width, placed.marginal.shape)
                counts = QuerySoftCounts(step, placed.marginal, width, sample, sample)
                part = self.held(counts, placed)
                judged = sample.both_classes & np.isfinite(part.value)
                judged &= np.isfinite(sample.queries.total(part.gradient))
                gradient[rows] = np.where(sample.queries.each(judged), part.gradient, 0.0)
                missed = judged & (placed.violation.max(-1) > TOLERANCE)
                here = cuts.present > 0
                found.append((part.value[judged].sum(), judged.sum(), here.sum(), missed.sum()))
                thresholds.append(placed.threshold)
                marginals.append(placed.marginal)
        value, judged_, present, missed_ = np.sum(found, axis=0)
        value, gradient = value / max(judged_, 1), gradient / max(judged_, 1)
        bounded = any(isinstance(t, Bound) for point in self.problem.points for t in point)
        return QueryOutcome(
            np.array([value]),
            gradient[None],
            np.ones(1, dtype=bool),
            self.problem,
            whole,
            (np.concatenate(thresholds), np.concatenate(marginals)),
            int(present),
            int(judged_),
            int(missed_) if bounded else 0,
        )


@dataclass(frozen=True)
class QuerySoftCounts(SoftCounts):
    """Soft counts around the thresholds of every query; ``at`` and ``width`` are ``[q, m]``."""

    whole: QuerySample
    batch: QuerySample

    def counts(self) -> tuple[Array, Array]:
        """See :meth:`SoftCounts.counts`: accepted weight and its slope, ``[q, m, k]``."""
        u = self._distance()
        value, kernel = self.step.value_and_slope(u)
        values, slopes = [self._total(value)], [self._total(kernel)]
        if self.step.complementary:
            self._kernels.append(kernel)
        else:
            values.append(self._total(self.step.value(-u)))
            slopes.append(-self._total(self.step.slope(-u)))
        return np.concatenate(values, -1), np.concatenate(slopes, -1) / -self.width[..., None]

    def pull(self, by_count: Array) -> Array:
        """The gradient on the scores ``[n]`` from that on the counts ``[q, m, k]``."""
        by, k = (by_count / self.width[..., None]).transpose(1, 2, 0), len(self.whole.by_column)
        if self._kernels:
            return self._pulled(self._kernels[0], by)
        u = self._distance()
        pulls = self._pulled(self.step.slope(u), by[:, :k])
        return pulls - self._pulled(self.step.slope(-u), by[:, k:])

    def _pulled(self, kernel: Array, by: Array) -> Array:
        """``sum_m kernel (columns @ by)``, ``[n]``."""
        each = self.whole.queries.each(by)
        return (kernel * (each * self.whole.by_column).sum(1)).sum(0)

    def _distance(self) -> Array:
        """``(score - threshold) / width``, ``[m, n]``."""
        at, width = (self.whole.queries.each(x.T) for x in (self.at, self.width))
        return (self.whole.scores - at) / width

    def _total(self, values: Array) -> Array:
        """``values`` [m, n] times the weights, added up in every query: ``[q, m, k]``."""
        each = values[:, None] * self.whole.by_column
        return self.whole.queries.total(each).transpose(2, 0, 1)


@dataclass(eq=False)
class QueryOutcome(Outcome):
    """A batch of queries; see :class:`setpoint.axes.axis.Outcome`."""

    problem: Specification
    batch: QueryBatch
    placed: tuple[Array, Array]  # thresholds [q, m], and the scores that they sit on in training
    present: int  # queries with documents
    judged: int  # with relevant and other documents
    missed: int  # of these, those that miss a bound

    @property
    def threshold(self) -> Array:
        """The thresholds that decide, ``[q, m]``."""
        return self.placed[0]

    @property
    def marginal(self) -> Array:
        """The scores that they sit on in training."""
        return self.placed[1]

    def trouble(self) -> str:
        """Nothing to rank, or bounds that are missed."""
        if not self.judged:
            return "no query has both relevant and other documents"
        if self.missed:
            targets = " and ".join(map(str, self.problem.subject_to))
            return (
                f"infeasible: `{targets}` is not met in {self.missed:,} of {self.present:,} queries"
            )
        return ""

    def numbers(self) -> dict[str, Any]:
        """Plain numbers; rates are means over queries."""
        found = {
            "queries": self.present,
            "judged": self.judged,
            "soft_objective": float(self.value[0]) * (-1 if self.problem.maximize else 1),
        }
        if self.problem.swept is not None:
            return found
        try:
            choice = choose_queries(self.problem, self.batch.scores, **self.batch.given)
        except (Infeasible, ValueError):
            return {**found, "hard_objective": None, "held_rate": None}
        held = [choice.rates[str(target.expression)] for target in self.problem.subject_to[:1]]
        return {**found, "hard_objective": choice.value, "held_rate": held[0] if held else None}


def spread_within(cuts: QueryCuts) -> Array:
    """The deviation of the scores in every query, ``[q]``, as :func:`setpoint.axes.spread`.

    What other queries score does not matter, nor what is added to all scores of one.
    """
    queries, scores = cuts.examples, cuts.scores
    running = sum(cuts.accepted[()])
    total = queries.total(cuts.weights)
    total = total + (total == 0)
    shares = running / cuts.cuts.each(total)
    ranks = (cuts.cuts.total((shares < share) * 1)[:, None] - 1 for share in QUANTILES)
    low, high = (cuts.score(rank) for rank in ranks)
    reach = high - low
    reach = np.where(reach > 0, reach, np.inf)  # almost all tied: no fence
    bottom, top = cuts.score(cuts.present[:, None] - 1), cuts.score(cuts.present[:, None] * 0)
    bottom, top = np.maximum(low - reach, bottom)[:, 0], np.minimum(high + reach, top)[:, 0]
    clipped = np.minimum(np.maximum(scores, queries.each(bottom)), queries.each(top))
    weights = cuts.weights / queries.each(total)
    centre = queries.total(weights * clipped)
    variance = queries.total(weights * (clipped - queries.each(centre)) ** 2)
    noise = 1e-26 * np.maximum(top**2, bottom**2)
    return np.sqrt(variance * (variance > noise))


def _of(values: Any, rows: Rows) -> Any:
    """The values of some rows, of a column or of several by name."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: _of(column, rows) for name, column in values.items()}
    return exact(values)[rows] if hasattr(values, "detach") else np.asarray(values)[rows]

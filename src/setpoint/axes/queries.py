"""One threshold per query (ICO, section 6.3): no multiplier for any, all held at once.

A query's threshold depends on its own documents only, so the systems are 1 x 1, one per query and
operating point. The documents of all queries lie end to end; a query takes the place that an
output has on the axis of everyone: what is ``[c, m, k]`` there is ``[q, m, k]`` here. Whole queries
are taken some at a time, so that memory stays bounded. The objective is the mean over the queries
that have both relevant and other documents: the rest have nothing to rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.axis import Outcome
from setpoint.axes.choice import Infeasible
from setpoint.axes.everyone import Separable
from setpoint.axes.order_statistics import QUANTILES
from setpoint.axes.query_choice import choose_queries
from setpoint.axes.query_data import EXAMPLES_AT_ONCE, QueryBatch, QueryCuts, QuerySample
from setpoint.axes.sample import read_sample
from setpoint.axes.scan import TOLERANCE, place
from setpoint.axes.soft_counts import SoftCounts
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import Array, Bound
from setpoint.steps import Step


class Queries(Separable[QueryBatch]):
    """One threshold per query; see :class:`setpoint.axes.axis.Axis`."""

    advice = "Use queries with more documents, loosen the target, or drop strict=True."

    def read(self, examples: ScoredExamples) -> QueryBatch:
        """A checked batch of whole queries, one score per document."""
        sample = read_sample(self.slices, *examples[:4])
        if len(sample.scores) > 1:
            raise ValueError(
                "Queries take one score per document, [n] or [n, 1]; "
                f"got the shape {tuple(examples.scores.shape)}."
            )
        if sample.unlabelled:  # documents without a label weigh nothing
            labels, weights = sample.positive[0] * 1.0, sample.weights[0]
            examples = examples._replace(labels=labels, weights=weights)
        size = max(1, EXAMPLES_AT_ONCE // len(self.problem.points))
        return QueryBatch.of(self.problem, sample, examples, size)

    def hold(self, whole: QueryBatch, own: QueryBatch, step: Step, widening: float) -> QueryOutcome:
        """Choose and hold the thresholds of all queries."""
        gradient = np.zeros(whole.sample.scores.shape[1])
        thresholds, marginals, found = [], [], []
        for _, rows, sample in whole.parts():
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
        numbers = np.array([value]), gradient[None], np.ones(1, dtype=bool)
        seats = np.concatenate(thresholds), np.concatenate(marginals)
        sizes = int(present), int(judged_), int(missed_) if bounded else 0
        return QueryOutcome(*numbers, *seats, self.problem, whole, *sizes)


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
    present: int  # queries with documents
    judged: int  # with relevant and other documents
    missed: int  # of these, those that miss a bound

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
            choice = choose_queries(self.problem, self.batch.examples)
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

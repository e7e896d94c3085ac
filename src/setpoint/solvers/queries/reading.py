"""How the documents of many queries are read: soft counts around the thresholds of each.

The ragged counterpart of :class:`setpoint.thresholds.Reading`. A query takes the place of an
output: what was ``[c, m, k]`` there is ``[q, m, k]`` here, so that the same algebra holds both.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from setpoint.axes.query_cuts import QueryCuts
from setpoint.axes.segments import Segments
from setpoint.rates import Where
from setpoint.thresholds import Reading, Sample


@dataclass(frozen=True)
class QuerySample(Sample):
    """Documents in the order of their queries: scores ``[n]``, columns ``[n, k]``."""

    queries: Segments = field(kw_only=True)
    ids: Tensor = field(init=False)  # [n]
    rows: Tensor = field(init=False)  # [k, n] the columns, each in one piece

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "rows", self.columns.T.contiguous())
        set_(self, "totals", per_query(self.queries, self.rows).T)
        set_(self, "ids", torch.as_tensor(self.queries.ids))

    def query_cuts(self, slices: tuple[Where, ...]) -> QueryCuts:
        """The sorted scores of every query, in numpy or torch."""
        xp = self.queries.xp
        scores, rows = (x if xp is torch else x.numpy() for x in (self.scores, self.rows))
        masks = {where: (rows[2 * i], rows[2 * i + 1]) for i, where in enumerate(slices)}
        return QueryCuts.sort(xp, scores, self.queries, masks)


@dataclass(frozen=True)
class QueryReading(Reading):
    """A step of some ``width`` around the thresholds ``at`` of every query, both ``[q, m]``."""

    whole: QuerySample
    batch: QuerySample

    def counts(self) -> tuple[Tensor, Tensor]:
        """See :meth:`Reading.counts`: accepted weight and its slope, ``[q, m, k]``."""
        u = self._distance()
        value, kernel = self.step.value_and_slope(u)
        values, slopes = [self._total(value)], [self._total(kernel)]
        if self.step.complementary:
            self._kernels.append(kernel)
        else:
            values.append(self._total(self.step.value(-u)))
            slopes.append(-self._total(self.step.slope(-u)))
        return torch.cat(values, -1), torch.cat(slopes, -1) / -self.width[..., None]

    def pull(self, by_count: Tensor) -> Tensor:
        """The gradient on the scores ``[n]`` from that on the counts ``[q, m, k]``."""
        rows, k = self.whole.rows, len(self.whole.rows)
        by_count = (by_count / self.width[..., None]).permute(1, 2, 0)

        def pulled(kernel: Tensor, by: Tensor) -> Tensor:
            return kernel * (by[..., self.whole.ids] * rows).sum(1)

        if self._kernels:
            return pulled(self._kernels[0], by_count).sum(0)
        u = self._distance()
        pulls = pulled(self.step.slope(u), by_count[:, :k])
        if not self.step.complementary:
            pulls = pulls - pulled(self.step.slope(-u), by_count[:, k:])
        return pulls.sum(0)

    def _distance(self) -> Tensor:
        """``(score - threshold) / width``, ``[m, n]``."""
        at, width = (x.T[:, self.whole.ids] for x in (self.at, self.width))
        distance: Tensor = (self.whole.scores - at) / width
        return distance

    def _total(self, values: Tensor) -> Tensor:
        """``values`` [m, n] times the weights, added up in every query: ``[q, m, k]``."""
        each = values[:, None] * self.whole.rows
        return per_query(self.whole.queries, each).permute(2, 0, 1)


def per_query(queries: Segments, values: Tensor) -> Tensor:
    """Tensors added up query by query, ``[..., n]`` to ``[..., q]``."""
    if queries.xp is torch:
        summed: Tensor = queries.total(values)
        return summed
    return torch.from_numpy(queries.total(values.contiguous().numpy()))

"""Which rows are held out: whole clusters, and the latest rows.

Rows of one cluster (a customer, a patient) stay together: whole clusters are drawn by lot, so that
those of the calibration part are a random sample of clusters that nothing else has seen. Rows with
times are cut: the past trains, the latest rows certify, and rows of equal time stay on one side.

With both, the latest rows of some clusters certify, drawn by lot among those that have late rows,
and the past of the *other* clusters trains. If a share ``r`` of the late clusters has earlier rows
too, a share ``1 - r / 2`` of them is drawn: all if no cluster comes back, half if all do. The other
rows are used by nobody.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.batch import check_length
from setpoint.certificates.clusters import cluster_codes
from setpoint.certificates.copies import AnyArray
from setpoint.certificates.times import read_times

RowPair = tuple[AnyArray, AnyArray]
"""The rows to learn from, and those that are held out."""


class Related(NamedTuple):
    """What rows have to do with each other: the number of each row's cluster, and its time."""

    clusters: NDArray[np.int64] | None = None
    times: AnyArray | None = None

    @classmethod
    def read(cls, clusters: Any, order: Any, labels: AnyArray) -> Related:
        """Clusters and times of the rows that have these labels.

        Raises:
            ValueError: There is not one id or time for each row, one is missing or cannot be read,
                or all are the same.
        """
        codes = None if clusters is None else cluster_codes(clusters)
        if codes is not None:
            check_length(codes, labels, "clusters")
        times = None if order is None else read_times(order, labels, "order")
        if times is not None and len(times) and times.min() == times.max():
            raise ValueError("order has the same time in all rows: there is no past to train on.")
        return cls(codes, times)

    @property
    def independent(self) -> bool:
        """Whether nothing is known that relates the rows."""
        return self.clusters is None and self.times is None

    def part(self, rows: AnyArray) -> Related:
        """What is known of some of the rows."""
        return Related(*(None if known is None else known[rows] for known in self))

    def hold_out(self, fraction: float, random: np.random.RandomState) -> RowPair:
        """Rows to learn from and about a ``fraction`` to hold out; see the module.

        Raises:
            ValueError: Clusters and times leave nothing to learn from.
        """
        everyone = np.arange(len(self.clusters if self.times is None else self.times))  # type: ignore[arg-type]
        if fraction == 0:
            return everyone, everyone[:0]
        late = np.ones(len(everyone), bool) if self.times is None else _late(self.times, fraction)
        if self.clusters is None:
            return everyone[~late], everyone[late]
        names = np.unique(self.clusters[late])
        if self.times is not None:
            returning = np.isin(names, self.clusters[~late]).mean()
            fraction = 1 - returning / 2
        count = int(np.clip(round(fraction * len(names)), 1, len(names)))
        held_out = np.isin(self.clusters, random.permutation(names)[:count])
        past = ~held_out if self.times is None else ~held_out & ~late
        if not past.any():
            late_rows, options = " with late rows", "clusters= or order="
            if self.times is None:
                late_rows, options = "", "clusters="
            raise ValueError(
                f"Of {plural(len(names), 'cluster')}{late_rows} {count:,} must be held out, and no "
                f"row is left to train on: pass more clusters, or leave {options} out."
            )
        return everyone[past], everyone[held_out & late]

    def halves(self, count: int, random: np.random.RandomState) -> RowPair:
        """Rows to choose by and rows to prove on: half of each by lot if nothing relates them.

        Every other row would not do: in a file that is sorted by score the two would be alike.
        """
        if self.independent:
            chosen = random.permutation(count) % 2 == 0
            return chosen, ~chosen
        return self.hold_out(0.5, random)


UNRELATED = Related()


def _late(times: AnyArray, fraction: float) -> AnyArray:
    """About the latest ``fraction`` of the rows, cut between two different times."""
    ordered = np.sort(times)
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if not len(cuts):
        raise ValueError(
            "Too few different times: training, choosing and certifying each need later rows "
            "than the step before. Pass finer times (dates, not years), or leave them out."
        )
    cut = cuts[np.argmin(np.abs(cuts - (1 - fraction) * len(times)))]
    return np.asarray(times >= ordered[cut])

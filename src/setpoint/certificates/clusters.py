"""Rows that belong together: several rows of a customer, a patient or a camera.

Rows of one cluster are alike, so they are fewer draws than they look. Clusters are independent
draws, and a certificate is then about **a random row of a new cluster**: every cluster counts once,
however many rows it has. All rates are means over clusters in this sense, not means over rows.

**One row each.** One row of every cluster, drawn at random, is such a row, and these rows are
independent. Every proof works with them as it is. The draw is pseudo-random: a function of all
rows and of who belongs together, whatever the order of rows and the names of clusters.

**Cluster means.** For bounds that are monotone in the threshold (fpr, recall, coverage) the other
rows help, if clusters are not all alike. Take the clusters whose drawn row is of the class of the
rate, ``n`` of them. Of the rows of that class in such a cluster a share ``w`` is on the wrong side;
its drawn row is any of them, so ``w`` has the mean of the rate. If the bound ``a`` is false,
``x = a - w`` has a mean of zero at most, and it is at least ``-(1 - a)``. Bets on these
(:mod:`setpoint.certificates.betting`) refute that; the capital falls as the threshold gets looser,
so that thresholds are tested one after the other like those of
:mod:`setpoint.certificates.order_statistics`.

**Both.** Given ``n``, the binomial test of one row each has a size ``d <= delta``, less than
``delta`` because counts are whole numbers. What is left, ``delta - d``, is the size of the bets,
which hold given ``n``, too: a threshold is proved if either test is passed. So clusters never prove
less than one row each.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats, check_unmasked
from setpoint.batch import as_column, check_length
from setpoint.certificates.betting import log_capital
from setpoint.certificates.copies import mixed, row_digests
from setpoint.certificates.goals import Share
from setpoint.certificates.sample import CalibrationSample, Subset
from setpoint.rates import Where

_Codes = NDArray[np.int64]


class ClusterSample(CalibrationSample):
    """One row of each cluster, with all rows behind them.

    Args:
        rows: All rows.
        codes: The number of each row's cluster, from 0.
    """

    def __init__(self, rows: CalibrationSample, codes: _Codes) -> None:
        self.all_rows, self.codes = rows, codes
        self.cluster_sizes = np.bincount(codes)
        chosen = _one_row_each(rows, codes)
        drawn = rows.rows(chosen)
        super().__init__(drawn.scores, drawn.labels, drawn.slices, rows.precision, rows.prevalence)
        self.drawn = chosen
        self.inherit(rows)
        self.clusters = len(self.cluster_sizes)
        self._cumulated: dict[Subset, tuple[NDArray[Any], Floats]] = {}

    @property
    def fingerprint(self) -> str:
        """That of all rows: the same with clusters and without."""
        return self.all_rows.fingerprint

    def weight_above(self, subset: Subset, score: Any) -> Any:
        """The weight of the rows of a subset above ``score``; all rows of a cluster weigh 1."""
        if subset not in self._cumulated:
            inside = self.all_rows.inside(subset)
            scores = self.all_rows.scores[inside]
            order = np.argsort(scores, kind="stable")
            weights = 1 / self.cluster_sizes[self.codes[inside][order]]
            self._cumulated[subset] = scores[order], np.append(0.0, np.cumsum(weights))
        scores, total = self._cumulated[subset]
        cast = np.asarray(score, dtype=scores.dtype)
        return total[-1] - total[np.searchsorted(scores, cast, "right")]

    def decided_scores(self, where: Where) -> NDArray[Any]:
        """The scores of all rows of a slice, from low to high."""
        return self.all_rows.decided_scores(where)

    def loosest(self, share: Share, score: float, delta: float) -> float:
        """The loosest score at which ``share`` is proved by bets, or ``score`` if that is looser.

        Args:
            share: A share of positives, negatives or everyone that must be small or large.
            score: What one row each proves: strictly above it, or from it on, is accepted.
            delta: The probability of a wrong proof by bets.
        """
        assert self.drawn is not None
        known = np.zeros(len(self.cluster_sizes), bool)
        known[self.codes[self.drawn[self.inside(share.subset)]]] = True
        inside = np.flatnonzero(self.all_rows.inside(share.subset) & known[self.codes])
        scores = self.all_rows.scores[inside]
        codes = np.unique(self.codes[inside], return_inverse=True)[1]
        sizes = np.bincount(codes)
        tried = np.unique(scores)
        tried = tried[tried < score][::-1] if share.at_most else tried[tried > score]

        def proved(threshold: Any) -> bool:
            wrong = scores > threshold if share.at_most else scores < threshold
            gains = share.risk - np.bincount(codes[wrong], minlength=len(sizes)) / sizes
            return log_capital(gains, 1 - share.risk) >= -math.log(delta)

        low, high = -1, len(tried)  # from strict to loose: proved up to ``low``, not from ``high``
        while high - low > 1 and delta > 0:
            middle = (low + high) // 2
            low, high = (middle, high) if proved(tried[middle]) else (low, middle)
        return score if low < 0 else float(tried[low])


def by_cluster(sample: CalibrationSample, clusters: Any) -> CalibrationSample:
    """The rows by their clusters; as they are if each is a cluster of its own."""
    codes = cluster_codes(clusters)
    check_length(codes, sample.scores if sample.kept is None else sample.kept, "clusters")
    if sample.kept is not None:
        codes = np.unique(codes[sample.kept], return_inverse=True)[1]
    several = int(codes.max(initial=-1)) + 1 < len(codes)
    return ClusterSample(sample, codes) if several else sample


def _by_content(rows: CalibrationSample, codes: _Codes) -> _Codes:
    """The clusters numbered by what their rows are, whatever they are called."""
    row = row_digests(np.column_stack(_known(rows)))
    order = np.argsort(codes, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(codes))[:-1])
    own = np.add.reduceat(mixed(row[order]), starts)
    return np.argsort(np.argsort(own, kind="stable"), kind="stable")[codes]


def _known(rows: CalibrationSample) -> list[NDArray[Any]]:
    """What is known of each row: score (-0.0 is 0.0), label and slices."""
    return [
        rows.scores + 0.0,
        *([] if rows.labels is None else [rows.labels]),
        *rows.slices.values(),
    ]


def _one_row_each(rows: CalibrationSample, codes: _Codes) -> NDArray[np.intp]:
    """A random row of every cluster; the same ones in whatever order the rows come."""
    known, codes = _known(rows), _by_content(rows, codes)
    order = np.lexsort([*known[::-1], codes])
    digest = hashlib.sha256(b"".join(column[order].tobytes() for column in known)).digest()
    lots = np.random.default_rng(list(digest)).random(len(order))
    first = np.lexsort([lots, codes[order]])
    starts = np.append(0, np.cumsum(np.bincount(codes))[:-1])
    return np.asarray(order[first[starts]])


def cluster_codes(clusters: Any) -> _Codes:
    """The number of each row's cluster, from ids that are compared exactly.

    Args:
        clusters: One id per row: whole numbers, texts, timestamps or anything hashable.

    Raises:
        ValueError: An id is missing, or all rows belong to one cluster.
    """
    ids = read_ids(clusters)
    if ids.dtype.kind == "O":
        names = list(dict.fromkeys(ids.tolist()))
        names.sort(key=lambda name: (type(name).__name__, repr(name)))
        numbers = {name: number for number, name in enumerate(names)}
        codes = np.array([numbers[name] for name in ids.tolist()], np.int64)
    else:
        codes = np.unique(ids, return_inverse=True)[1].astype(np.int64)
    if len(codes) and codes.max() == 0:
        raise ValueError(
            "All rows belong to one cluster: that says nothing about other clusters. Pass rows of "
            "many, or leave clusters= out if the column is something else."
        )
    return codes


def read_ids(given: Any, name: str = "clusters") -> NDArray[Any]:
    """Ids as an array that keeps them apart: 1 and "1" in a list are two."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    check_unmasked(given, name)
    ids = np.asarray(given, dtype=object if isinstance(given, (list, tuple)) else None)
    ids = as_column(ids)
    if ids.ndim != 1:
        raise ValueError(f"{name} must be one id per row; got the shape {ids.shape}.")
    missing = np.zeros(len(ids), bool)
    if ids.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in ids.tolist()], bool)
    elif ids.dtype.kind in "fmM":
        missing = ~np.isfinite(ids)
    elif ids.dtype.kind in "US":
        missing = np.char.str_len(ids) == 0
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{name} has no id in row {row}: leave the row out, or name it.")
    return ids


def is_missing(value: object) -> bool:
    """None, empty texts, infinities, NaN and what else is not equal to itself."""
    try:
        return value is None or value in ("", b"", math.inf, -math.inf) or bool(value != value)
    except TypeError:  # pandas.NA
        return True

"""Rows that are not independent: copies, clusters, weights. Refused with the reason."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.certificates.goals import CannotPromise
from setpoint.certificates.sample import (
    NEGATIVES,
    POSITIVES,
    CalibrationSample,
    Subset,
    read_column,
)

_DISTINCT_ENOUGH = 30
"""Distinct scores that all repeat equally often are copies: chance does not do that."""

_MANY = 0.2
"""Scores that come in steps (trees, few bits) have fewer distinct values than this share."""


def refuse_weights() -> NoReturn:
    """Weighted counts do not follow the binomial law."""
    raise ValueError(
        "A certificate counts independent examples, and weighted counts do not follow the "
        "binomial law that it rests on. If weights undo a resampling, certify the sample as it "
        "was drawn: fpr, recall, fnr and tnr do not depend on the share of positives, and for "
        "precision and the like pass prevalence=."
    )


def check_clusters(clusters: Any, scores: NDArray[Any]) -> None:
    """Each cluster may have one row."""
    column = read_column(clusters, scores, "clusters")
    _, counts = np.unique(
        column.astype(str) if column.dtype.kind == "O" else column, return_counts=True
    )
    if counts.max(initial=1) > 1:
        raise ValueError(
            f"{plural(len(column), 'row')} come from {plural(len(counts), 'cluster')}: rows of "
            "one cluster are not independent, and the guarantee counts independent rows. Keep one "
            "row of each: a random one, for a bound about a random row of a new cluster, or the "
            "one with the highest score, for a bound on whether a new cluster is ever accepted."
        )


def check_copies(sample: CalibrationSample) -> tuple[str, ...]:
    """Refuse rows that are all there several times; point out what looks like it."""
    kinds = (POSITIVES, NEGATIVES) if sample.labels is not None else ("everyone",)
    shares, distinct = {}, {}
    for kind in kinds:
        scores = sample.sorted(Subset((), kind))
        if not len(scores):
            continue
        edges = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1], [True]]))
        counts = np.diff(edges)
        times = int(np.gcd.reduce(counts))
        if times > 1 and len(counts) >= _DISTINCT_ENOUGH:
            raise CannotPromise(
                f"Every score of the {kind} appears {times} times (or a multiple of it): these are "
                "copies. A copy is no further evidence; certify the rows as they were drawn."
            )
        shares[kind] = float(counts[counts > 1].sum() / len(scores))
        distinct[kind] = len(counts) / len(scores)
    if len(shares) == 2 and max(shares.values()) > 0.1 and min(shares.values()) < 0.01:
        kind = max(shares, key=shares.__getitem__)
        return (
            f"{100 * shares[kind]:.0f} % of the {kind} share their score with another, the other "
            "class hardly ever: if they were oversampled, the certificate is void",
        )
    if shares and min(shares.values()) > 0.1 and max(distinct.values()) > _MANY:
        return (
            f"{100 * min(shares.values()):.0f} % of the scores and more belong to several rows: "
            "as it should be if scores are rounded; if rows are copies, the certificate is void",
        )
    return ()

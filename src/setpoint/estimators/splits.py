"""Which rows a classifier is trained on, which choose its threshold, and which certify it.

Without further knowledge each class is divided by lot; clusters and times are kept as
:mod:`setpoint.certificates.hold_out` says.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from setpoint._checks import plural, share
from setpoint.certificates.hold_out import UNRELATED, Related, RowPair
from setpoint.estimators.inputs import FEWEST_ROWS, AnyArray, Labels


def three_parts(
    labels: Labels,
    validation: float,
    calibration: float,
    random: np.random.RandomState,
    fewest: int = FEWEST_ROWS,
    related: Related = UNRELATED,
    chosen: RowPair | None = None,
) -> dict[str, Labels]:
    """Rows of the parts ``train``, ``validation`` and ``calibration``.

    If a class has fewer than ``fewest`` rows, or ``validation`` is 0, nothing is held out:
    ``train`` and ``validation`` are the same rows. In the first case ``calibration`` is empty.

    Args:
        labels: The number of each row's class.
        validation: The share of rows to choose by.
        calibration: The share of rows to certify on.
        random: Draws them.
        fewest: See above.
        related: Clusters and times; without, rows are drawn class by class.
        chosen: The rows not to certify on and those to certify on, if they are known.

    Raises:
        ValueError: The shares are not between 0 and 1, or leave nothing to train on.
    """
    shares = (
        share(validation, "validation_fraction"),
        share(calibration, "calibration_fraction"),
    )
    if sum(shares) >= 1:
        raise ValueError(
            "validation_fraction and calibration_fraction leave nothing to train on: "
            f"{shares[0]:g} + {shares[1]:g} must be below 1."
        )
    everyone = np.arange(len(labels))
    counts = np.bincount(labels, minlength=2)
    if chosen is None and counts.min() < fewest:
        return {"train": everyone, "validation": everyone, "calibration": everyone[:0]}
    if chosen is None and related.independent:
        return _by_class(labels, shares, random)
    rest, certified = chosen or related.hold_out(shares[1], random)
    left = related.part(rest)
    if left.independent:
        parts = three_parts(labels[rest], shares[0], 0.0, random, fewest)
        train, held_out = parts["train"], parts["validation"]
    else:
        train, held_out = left.hold_out(shares[0] / (1 - shares[1]), random)
        held_out = held_out if len(held_out) else train
    return {"train": rest[train], "validation": rest[held_out], "calibration": certified}


def _by_class(
    labels: Labels, shares: tuple[float, float], random: np.random.RandomState
) -> dict[str, Labels]:
    parts: list[list[Labels]] = [[], [], []]
    for value in range(max(2, int(labels.max()) + 1)):
        rows = random.permutation(np.flatnonzero(labels == value))
        ends = np.round(np.cumsum(shares) * len(rows)).astype(int)
        for part, piece in zip(parts, np.split(rows, ends), strict=True):
            part.append(piece)
    held_out, certified, train = (np.sort(np.concatenate(part)) for part in parts)
    if not len(held_out):
        held_out = train
    return {"train": train, "validation": held_out, "calibration": certified}


def check_both_classes(labels: Labels, parts: Mapping[str, AnyArray]) -> None:
    """Raise a ValueError if a part that is split off holds one class only."""
    for name, rows in parts.items():
        positives = int(labels[rows].sum())
        if len(rows) and positives in (0, len(rows)):
            raise ValueError(
                f"The {name} part has {len(rows):,} rows, all of one class: raise "
                f"{name}_fraction, choose another cv=, or pass more rows of the rarer class."
            )


def last_of_cv(cv: Any, X: Any, y: AnyArray, related: Related) -> RowPair:
    """The rows to learn from and those to certify on: the last split of ``cv``.

    Args:
        cv: A splitter of scikit-learn, which gets rows in the order of time and clusters as its
            groups; or pairs of row numbers.
        X: The rows.
        y: Their labels.
        related: Their clusters and times.

    Raises:
        ValueError: It is neither, or a row or a cluster is on both sides.
    """
    if hasattr(cv, "split") and not isinstance(cv, str):
        when = related.times
        order = np.arange(len(y)) if when is None else np.argsort(when, kind="stable")
        pairs = [tuple(order[rows] for rows in pair) for pair in _splits(cv, X, y, related, order)]
    else:
        pairs = _own_pairs(cv)
    if not pairs:
        raise ValueError(f"cv={cv!r:.80} gives no split.")
    try:
        train, certified = (np.arange(len(y))[rows] if len(rows) else rows for rows in pairs[-1])
    except IndexError:
        raise ValueError(
            f"The last pair of cv={cv!r:.80} has a row number that is not among the "
            f"{len(y):,} rows: they are numbered from 0."
        ) from None
    if not len(train) or not len(certified):
        raise ValueError(f"The last split of cv={cv!r:.80} leaves a side empty.")
    names = np.arange(len(y)) if related.clusters is None else related.clusters
    both = np.intersect1d(names[train], names[certified])
    if len(both):
        what = "row" if related.clusters is None else "cluster"
        raise ValueError(
            f"The last split of cv={cv!r:.80} has {plural(len(both), what)} on both sides. Split "
            "by clusters, as GroupShuffleSplit does, or leave cv= out: clusters= and order= say "
            "enough."
        )
    return train, certified


def _splits(cv: Any, X: Any, y: AnyArray, related: Related, order: AnyArray) -> Iterator[Any]:
    clusters = related.clusters
    groups = {} if clusters is None else {"groups": clusters[order]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        try:
            yield from cv.split(_safe_indexing(X, order), y[order], **groups)
        except ValueError as error:
            if clusters is None and "groups" in str(error):
                raise ValueError(
                    f"cv={cv!r:.80} splits by groups: pass clusters= to fit."
                ) from None
            raise


def _own_pairs(cv: Any) -> list[Any]:
    pairs = [] if isinstance(cv, (str, bytes)) or not hasattr(cv, "__iter__") else list(cv)
    if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
        raise ValueError(
            "cv must be None, 'prefit', a splitter such as GroupShuffleSplit(1, test_size=0.2) or "
            f"TimeSeriesSplit(5), or [(rows to train on, rows to certify on)]; got {cv!r:.80}."
        )
    return pairs

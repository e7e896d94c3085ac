"""The rows of one update of a monitor: checked, decided and put in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Bools, Floats
from setpoint.axes.sample import read_amounts
from setpoint.batch import refuse_rows
from setpoint.certificates import Certificate
from setpoint.certificates.calibration_drift import order_of_time
from setpoint.certificates.decisions import rounded
from setpoint.certificates.drift import certified_goals
from setpoint.certificates.goals import as_capacity, goal_to_certify
from setpoint.certificates.many_outputs import certified_columns
from setpoint.certificates.sample import read_column, read_slices, scores_and_precision
from setpoint.certificates.times import period_units, read_times
from setpoint.monitoring.counted_rows import cluster_hashes
from setpoint.rates import Where


@dataclass(frozen=True)
class IncomingRows:
    """Rows in the order of time.

    Attributes:
        margins: The scores; minus the threshold of the group where every group has its own.
        alerts: The decision on each.
        known: Whether the label is known.
        labels: The labels; False where unknown.
        slices: A mask for each slice that the certificate is about.
        times: Numbers or dates, or None.
        ids: Texts, or None.
        clusters: A hash of what each row belongs to, or None.
        shares: The probability with which each label was to be known, or None.
        amounts: What each row is worth, or None.
        features: Columns of numbers by name.
    """

    margins: NDArray[Any]
    alerts: Bools
    known: Bools
    labels: Bools
    slices: Mapping[Where, Bools]
    times: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    clusters: NDArray[np.int64] | None = None
    shares: Floats | None = None
    amounts: Floats | None = None
    features: Mapping[str, Floats] | None = None

    def __len__(self) -> int:
        return len(self.alerts)

    def rows(self, chosen: Any) -> IncomingRows:
        """Some of the rows."""
        parts: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Mapping):
                parts[each.name] = {key: column[chosen] for key, column in value.items()}
            else:
                parts[each.name] = None if value is None else value[chosen]
        return IncomingRows(**parts)

    @property
    def codes(self) -> NDArray[np.int64]:
        """The cell of each row, as in ``tn, fn, fp, tp``; without a label as if it were 0."""
        return 2 * self.alerts.astype(np.int64) + self.labels

    def inside(self, where: Where) -> Bools:
        """The mask of a slice."""
        return self.slices[where] if where else np.ones(len(self), bool)

    def periods(self, by: str, most: int | None = None) -> Iterator[tuple[str, IncomingRows]]:
        """The rows of each period, with its name; without times there is one, without a name.

        Args:
            by: What the periods are.
            most: If there are more, neighbours come together.
        """
        if self.times is None:
            yield "", self
            return
        units = period_units(self.times, by)
        first = np.flatnonzero(np.concatenate([[True], units[1:] != units[:-1]]))
        step = 1 if most is None else -(-len(first) // most)
        names = units[first].astype(str)
        for place in range(0, len(first), step):
            last = min(place + step, len(first))
            end = first[last] if last < len(first) else len(self)
            both = dict.fromkeys([names[place], names[last - 1]])
            yield " to ".join(map(str, both)), self.rows(slice(int(first[place]), int(end)))


def read_rows(
    certificate: Certificate, random: np.random.Generator, scores: Any, labels: Any, **more: Any
) -> IncomingRows:
    """Check the rows of an update and decide them; see :meth:`Monitor.update` for the columns.

    They are put in the order of time, those of one time (all, if there are no times) in a random
    one: tests that may stop at any row would take a sorted file for a change.
    """
    times, groups, ids = (more.get(name) for name in ("times", "groups", "ids"))
    clusters, shares, amounts = (more.get(name) for name in ("clusters", "label_shares", "amounts"))
    array = rounded(scores_and_precision(scores)[0], certificate.dtype)
    known, truth = read_labels(labels, array)
    slices, margins = _slices_and_margins(certificate, array, groups)
    column = None if certificate.column is None else _group(groups)
    alerts = certificate.decide(array, column, ids=ids)
    rows = IncomingRows(
        margins,
        np.asarray(alerts),
        known,
        truth,
        slices,
        None if times is None else read_times(times, array),
        None if ids is None else read_column(ids, array, "ids").astype(str),
        None if clusters is None else cluster_hashes(read_column(clusters, array, "clusters")),
        None if shares is None else read_shares(shares, array),
        None if amounts is None else read_amounts(read_column(amounts, array, "amounts")),
        {
            name: _feature(name, column, array)
            for name, column in (more.get("features") or {}).items()
        },
    )
    if rows.times is None:
        return rows.rows(random.permutation(len(rows)))
    return rows.rows(order_of_time(rows.times, random))


def of_outputs(
    certificate: Certificate, scores: Any, labels: Any, columns: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """Rows of several outputs, scores and labels ``[n, k]``, as rows of one output each.

    Raises:
        ValueError: A column is given that goes by rows and not by their outputs.
    """
    for name in ("ids", "clusters", "amounts", "features"):
        if columns[name] is not None:
            raise ValueError(
                f"{name}= is for one output. Watch each by itself: certify(scores[:, i], "
                "labels[:, i], goal, confidence=1 - (1 - confidence) / k).monitor(false_alarm / k) "
                "for every column i of k."
            )
    if labels is not None:
        labels = np.asarray(labels, float)
        labels = np.where(labels == -1, np.nan, labels)
    scores, labels, groups, _ = certified_columns(certificate, scores, labels)
    times, shares, k = columns["times"], columns["label_shares"], len(certificate.thresholds)
    return (
        scores,
        labels,
        {
            **columns,
            "groups": groups,
            "times": None if times is None else np.tile(np.asarray(times), k),
            "label_shares": shares
            if shares is None or np.ndim(shares) == 0
            else np.tile(shares, k),
        },
    )


def read_labels(labels: Any, scores: NDArray[Any]) -> tuple[Bools, Bools]:
    """Which labels are known, and the labels; None and NaN are unknown ones."""
    if labels is None:
        return np.zeros(len(scores), bool), np.zeros(len(scores), bool)
    array = read_column(labels, scores, "labels")
    if array.dtype.kind == "b":
        return np.ones(len(scores), bool), array
    try:
        values = array.astype(float)
    except (TypeError, ValueError):
        raise TypeError(
            f"labels must be 0, 1, or missing (None, NaN); got {array.tolist()[0]!r:.40}."
        ) from None
    known = ~np.isnan(values)
    wrong = known & (values != 0) & (values != 1)
    refuse_rows(wrong, values, "Labels must be 0 or 1, or NaN")
    return known, values == 1


def _group(groups: Any) -> Any:
    """The one column of groups."""
    if isinstance(groups, Mapping):
        if len(groups) != 1:
            raise ValueError("One threshold for each group needs one column; pass groups= with it.")
        (groups,) = groups.values()
    return groups


def _slices_and_margins(
    certificate: Certificate, scores: NDArray[Any], groups: Any
) -> tuple[dict[Where, Bools], NDArray[Any]]:
    if as_capacity(certificate.goal) is not None:
        return {}, scores.astype(float)
    goals = certified_goals(certificate)
    per_group = goals.column is not None
    wheres = tuple(goals.wheres) if per_group else goal_to_certify(certificate.goal).wheres
    slices = read_slices(groups, wheres, scores, empty=True)
    margins = scores.astype(float)
    if per_group:
        for group, threshold in certificate.thresholds.items():
            inside = slices[goals.where(group)]
            margins[inside] -= threshold if np.isfinite(threshold) else 0.0
    return slices, margins


def read_shares(shares: Any, scores: NDArray[Any]) -> Floats:
    """The probability with which each label was to be known."""
    values = np.array(np.broadcast_to(np.asarray(shares, float), scores.shape))
    wrong = ~((values > 0) & (values <= 1))
    refuse_rows(wrong, values, "label_shares are probabilities above 0 and at most 1")
    return values


def _feature(name: str, column: Any, scores: NDArray[Any]) -> Floats:
    array = read_column(column, scores, f"feature {name!r}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"The feature {name!r} must be numbers; leave it out, or encode it.")
    return array.astype(float)

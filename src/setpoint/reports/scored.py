"""The page of a certificate on scored rows, in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._version import __version__
from setpoint.axes.arrays import as_array
from setpoint.certificates import Certificate, ThreeWayCertificate
from setpoint.certificates.decisions import exceeds
from setpoint.certificates.drift import certified_goals
from setpoint.certificates.goals import goal_to_certify
from setpoint.certificates.hold_out import Related
from setpoint.certificates.sample import (
    binary_labels,
    calibration_sample,
    labels_and_known,
    only_alerts,
    read_slices,
    sample_of,
    scores_and_precision,
)
from setpoint.certificates.times import read_times
from setpoint.rates import Where
from setpoint.reports.run_page import page
from setpoint.reports.three_way_page import three_way_page
from setpoint.reports.wording import nouns_from
from setpoint.results import RunResult
from setpoint.results.three_way import ThreeWayFindings


def report(
    scores: Any,
    labels: Any,
    certificate: Certificate | ThreeWayCertificate,
    *,
    groups: Any = None,
    label: str = "label",
    positive: str = "1",
    negative: str = "",
    action: str = "",
    notes: Sequence[str] = (),
    times: Any = None,
    by: str | None = None,
    costs: tuple[float, float] | None = None,
    checks: Sequence[Mapping[str, Any]] = (),
    test: tuple[Any, ...] | None = None,
    script: bool = True,
    ids: Any = None,
    clusters: Any = None,
) -> str:
    """The page of a certificate on scored rows, as one HTML document: no training run is needed.

    Rows that give the certificate's own counts are taken for the calibration rows, others for new
    ones, which judge it.

    Args:
        scores: One score per row.
        labels: 0 or 1 for each; rows without one (NaN or -1) are left out.
        certificate: From :func:`setpoint.certify` or
            :func:`setpoint.certificates.certify_three_way`, certified or not.
        groups: The group of each row, or a dict with one column of groups by name.
        label: The name of the label, for the page.
        positive: What the positive class is called, ``"fraud"``.
        negative: What the others are called, in the plural, ``"legitimate payments"``.
        action: What is done above the threshold, as a verb, ``"block"``; by default
            ``"flag"``, and of three-way decisions ``"accept"``.
        notes: What was done to the data, in sentences.
        times: When each row came, as ISO dates or numbers: rates are shown by period, and alerts
            by day.
        by: The length of a period: ``"hour"``, ``"day"``, ``"week"`` or ``"month"``; by default
            the shortest of days, weeks and months that makes a readable table.
        costs: What a miss and a false alarm cost: shown for every threshold.
        checks: What ``setpoint check`` has noted since, one dict each.
        test: Scores, labels, groups, times, ids and clusters (if any) of other rows, which judge
            the certificate: the page is about them.
        script: Whether the threshold can be moved on the page, by a script inside it; the two
            thresholds of three-way decisions cannot.
        ids: The id of each row, if ties are broken by lot.
        clusters: What each row belongs to, if the certificate is about clusters: the page then
            counts one row of each, those that the certificate rests on.

    Raises:
        ValueError: A threshold per group without ``groups``, or labels that do not fit.
        CannotPromise: Only alerts have labels, of which a page would show recall and fpr.

    Examples:
        >>> import numpy as np
        >>> from setpoint import certify
        >>> y = np.arange(1000) % 4 == 0
        >>> s = np.random.default_rng(0).normal(size=1000) + 3 * y
        >>> html = report(s, y, certify(s, y, "fpr <= 0.05"), negative="payments", action="stop")
        >>> html.split("<title>")[1].split("</title>")[0]
        'At most 1 in 20 payments is stopped: proved with 95 % confidence'
    """
    words = {"positive": positive, "negative": negative, "action": action}
    column, values = _group_column(groups, getattr(certificate, "column", None))
    rows: tuple[Any, ...] = (scores, labels, values, times, ids, clusters)
    if test is None:
        rows, notes = _rows_that_prove(certificate, rows, notes)
    told: dict[str, Any] = {"label": label, "notes": notes, "by": by, "costs": costs}
    rows = tuple(_labelled(certificate.goal, *rows))
    test = test and tuple(_labelled(certificate.goal, *(*test, None, None, None)[:6]))
    if isinstance(certificate, Certificate) and certificate.lots:
        rows = (certificate.resolve_ties(rows[0], rows[4], rows[2]), *rows[1:])
        test = test and (certificate.resolve_ties(test[0], test[4], test[2]), *test[1:])
    if clusters is not None and certificate.clusters is not None:
        rows = _rows_of_clusters(certificate, rows, column)
        test = test and _rows_of_clusters(certificate, test, column)
        counted = f"One row of each of {len((test or rows)[0]):,} clusters is counted."
        told["notes"] = (*told["notes"], counted)
    if isinstance(certificate, ThreeWayCertificate):
        scores, labels, values, times = rows[:4]
        groups = None if values is None else {column: values}
        rows = (scores, labels, groups, times) if test is None else (*test, None, None)[:4]
        return _three_way(certificate, rows, words, **told)
    told |= {"group": column, "checks": checks, **words, "action": action or "flag"}
    return page(_run_of(certificate, rows, test, told), script=script)


def _run_of(
    certificate: Certificate,
    rows: tuple[Any, ...],
    test: tuple[Any, ...] | None,
    told: dict[str, Any],
) -> RunResult:
    """A certificate and its rows (scores, labels, groups, times) as a run."""
    scores, labels, values, times = rows[:4]
    return RunResult(
        certificate.goal,
        _splits(certificate, (scores, labels, values), test),
        certificate.threshold_or_none,
        certificate=json.loads(certificate.to_json()),
        versions={"setpoint": __version__},
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        times=times if test is None else (*test, None)[3],
        **told,
    )


def _three_way(
    certificate: ThreeWayCertificate,
    rows: tuple[Any, ...],
    words: Mapping[str, str],
    *,
    by: str | None,
    costs: tuple[float, float] | None,
    **told: Any,
) -> str:
    """The page of three-way decisions on scores, labels, groups and times."""
    scores, labels, groups, times = rows
    column, values = _group_column(groups, None)
    found = ThreeWayFindings(
        certificate,
        np.asarray(scores),
        binary_labels(labels, np.asarray(scores)),
        None if values is None else np.asarray(values),
        None if times is None else read_times(times, scores),
        by,
        costs,
    )
    nouns = nouns_from(words["positive"], words["negative"], words["action"] or "accept")
    return three_way_page(found, nouns, group=column, **told)


def _splits(
    certificate: Certificate, rows: tuple[Any, ...], test: tuple[Any, ...] | None
) -> dict[str, tuple[Any, ...]]:
    """Scores, labels and groups by what they are: calibration rows, test rows or both."""
    if test is not None:
        return {"calibration": rows, "test": test[:3]}
    scores, labels, _ = rows
    return {"calibration" if _is_calibration(scores, labels, certificate) else "test": rows}


def _rows_that_prove(
    certificate: Certificate | ThreeWayCertificate, rows: tuple[Any, ...], notes: Sequence[str]
) -> tuple[tuple[Any, ...], Sequence[str]]:
    """The columns without rows that chose thresholds, and the notes with how many those were."""
    scores, labels, groups, times, _, clusters = rows
    proving = _proving_half(certificate, scores, labels, groups, times, clusters)
    if proving is None:
        return rows, notes
    others = len(as_array(scores, "scores")) - len(proving)
    note = f"The thresholds were chosen on {others:,} other rows."
    return tuple(None if c is None else np.asarray(c)[proving] for c in rows), (*notes, note)


def _proving_half(
    certificate: Certificate | ThreeWayCertificate,
    scores: Any,
    labels: Any,
    groups: Any,
    times: Any,
    clusters: Any,
) -> NDArray[np.intp] | None:
    """The half of the rows that the certificate rests on, if the other half chose its thresholds.

    `setpoint certify` divides rows so for thresholds per group and gaps between them.
    """
    if not isinstance(certificate, Certificate) or certificate.column is None:
        return None
    array = as_array(scores, "scores")
    try:
        related = Related.read(clusters, times, array)
        _, proved_on = related.halves(len(array), np.random.RandomState(0))
    except ValueError:  # one time for all: such rows cannot be divided
        return None
    positive, known = (each[proved_on] for each in labels_and_known(labels, array))
    names = as_array(groups, "groups")[proved_on].astype(str)
    for point in certificate.points:
        mine = known & (names == str(point.group))
        if (mine.sum(), (mine & positive).sum()) != (point.examples, point.positives):
            return None
    return np.arange(len(array))[proved_on]


def _labelled(goal: str, scores: Any, labels: Any, *others: Any) -> Any:
    """Scores, labels and other columns (or None) of the rows that have a label.

    Raises:
        CannotPromise: These are alerts that were reviewed, and no others.
    """
    sample = calibration_sample(scores, labels, None, ())
    end = sample.only_alerts()
    if end is not None:
        raise only_alerts(goal, sample, (), end)
    kept = sample.kept
    if kept is None:
        return scores, labels, *others
    return [None if c is None else np.asarray(c)[kept] for c in (scores, labels, *others)]


def _group_column(groups: Any, needed: str | None) -> tuple[str, Any]:
    """The column of groups by its name; ValueError if it is not the one that is needed."""
    column, values = needed or "group", groups
    if isinstance(groups, Mapping):
        if len(groups) != 1:
            given = ", ".join(groups) or "none"
            raise ValueError(f"groups is one column by its name; got {given}.")
        ((column, values),) = groups.items()
    if needed is not None and (values is None or column != needed):
        raise ValueError(
            f"There is one threshold for each {needed}: pass groups={{{needed!r}: ...}}."
        )
    return column, values


def _rows_of_clusters(
    certificate: Certificate | ThreeWayCertificate, rows: tuple[Any, ...], column: str
) -> tuple[Any, ...]:
    """The row that stands for each cluster, as the certificate drew it from the same rows."""
    from setpoint.certificates.clusters import by_cluster

    scores, labels, values, _, _, clusters = rows
    if clusters is None:
        return rows
    groups = {} if values is None else {column: values}
    wheres: dict[Where, None] = {}
    if isinstance(certificate, Certificate):
        named = goal_to_certify(certificate.goal).wheres
        wheres = dict.fromkeys([*certified_goals(certificate).wheres, *named])
    known = tuple(w for w in wheres if all(name in groups for name, _ in w))
    array, precision = scores_and_precision(scores)
    slices = read_slices(groups, known, array, empty=True)
    drawn = by_cluster(sample_of(array, precision, labels, slices, None), clusters).drawn
    return (
        rows if drawn is None else tuple(None if c is None else np.asarray(c)[drawn] for c in rows)
    )


def _is_calibration(scores: Any, labels: Any, certificate: Certificate) -> bool:
    """Whether the rows give the counts of the certificate, so that they are its own."""
    points = certificate.points
    same = sum(point.examples for point in points) == len(np.asarray(scores))
    positives = sum(point.positives or 0 for point in points)
    if not same or positives != int((np.asarray(labels) == 1).sum()):
        return False
    if not certificate.certified or certificate.column is not None:
        return True
    above = exceeds(scores, certificate.threshold, certificate.dtype)
    return int(np.asarray(above).sum()) == points[0].alerts

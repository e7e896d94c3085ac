"""Certificates from the labels of a plan: what they prove of a threshold, and why.

**Upper bounds on fpr.** With ``c`` the accepted share of all examples, ``w`` the share of negatives
among the accepted, ``q`` the share of negatives: ``fpr = c w / q``. At the cut that accepts the
``j`` highest of ``n`` scores, ``i`` labelled rows ``f`` of which are negative are accepted, and

    upper(j, n) * upper(f, i) / (lower(n - top, n) * lower(negatives below, labels below)) <= level

with Clopper-Pearson limits at 0.05, 0.9, 0.025 and 0.025 of ``delta`` proves the bound. Cuts are
tested from the highest score downwards until one fails. Let ``A`` be the smallest set of highest
scores that breaks the bound in the population. The threshold returned breaks it only if the test
at the cut that accepts just the examples in ``A`` has passed. Their number is binomial, and they
are independent draws from ``A``, labelled by lot; so the limits of that one test are exact, and
the certificate is wrong with probability ``delta`` at most, ties included.

**Lower bounds on precision.** The walk of :mod:`setpoint.certificates.precision_walk` looks at no
label below the cut that it tests, and stops soon after precision is too low. All labels go to the
highest scores, from the top downwards, and rows without a label count as negative: that can only
lower precision, so the proof holds, and it is that of a table with all labels wherever the walk
ends among the labelled rows. Labelling may stop at any time.

**Lower bounds on recall**, from reviewed alerts and a sample of the other rows (the cure of
verification bias). The positives are those of the top, a mass of at least ``a``, and those below,
at most ``b``; ``recall >= r`` holds where the recall within the top is at least ``r (a + b) / a``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.axes.arrays import to_numpy
from setpoint.batch import check_length, refuse_rows
from setpoint.certificates.certificate import Certificate, Claim, Point
from setpoint.certificates.decisions import halfway
from setpoint.certificates.goals import (
    ACCEPTED,
    Inequality,
)
from setpoint.certificates.labelling import LabelPlan, fingerprint_of, single_inequality
from setpoint.certificates.proofs import CERTIFIED, NOT_CERTIFIED
from setpoint.certificates.sample import NEGATIVES, scores_and_precision
from setpoint.certificates.tails import allowed, lower, upper
from setpoint.certificates.text import useless

COVERAGE, LABELS, PREVALENCE = 0.05, 0.9, 0.05
"""How ``delta`` is divided between the three limits of the test."""


class LabelledRows(NamedTuple):
    """The rows of a plan with their labels."""

    scores: NDArray[Any]
    """Of the labelled rows of the top, from high to low; for a goal on precision of all rows."""
    positive: NDArray[np.bool_]
    """Their labels."""
    positive_below: NDArray[np.bool_]
    """The labels of the rows below the top."""


def labelled_rows(scores: Any, labels: Any, goal: Any, plan: LabelPlan) -> LabelledRows:
    """The labelled rows of a plan, checked.

    Args:
        scores: All scores of the table that the plan was made for.
        labels: One per score: 0 or 1 for the rows of the plan, NaN or -1 for the others. For a
            goal on precision labels may be missing.
        goal: What is to be proved, of the plan's kind.
        plan: From :func:`label_plan`.

    Raises:
        ValueError: Other scores or another goal than the plan's, labels that are missing, or labels
            of rows that were not drawn.
    """
    array, _ = scores_and_precision(scores)
    wanted, inequality = single_inequality(goal)
    if len(array) != plan.examples or fingerprint_of(array) != plan.fingerprint:
        raise ValueError(
            f"The plan was made for other scores ({plan.examples:,} of them; got {len(array):,}). "
            "Pass the whole table in its order, or make a new plan before labelling."
        )
    if single_inequality(plan.goal)[1].kind != inequality.kind:
        raise ValueError(f"The plan was made for `{plan.goal}`, not for `{wanted.text}`.")
    found = _labels(labels, array)
    rows = np.asarray(plan.rows, dtype=np.int64)
    undrawn = found >= 0
    undrawn[rows] = False
    if undrawn.any():
        raise ValueError(
            f"Row {int(np.flatnonzero(undrawn)[0])} has a label and was not drawn by the plan "
            f"({plural(int(undrawn.sum()), 'such row')}). Labels that came otherwise are no random "
            "sample: set them to NaN."
        )
    given = found[rows]
    if inequality.kind == ACCEPTED:  # a row without a label counts as negative
        return LabelledRows(array, found == 1, np.zeros(0, bool))
    if (given < 0).any():
        missing = rows[given < 0]
        raise ValueError(
            f"{plural(len(missing), 'row')} of the plan {'has' if len(missing) == 1 else 'have'} "
            f"no label, row {int(missing[0])} first. Label all of them: leaving out some biases "
            "the rest."
        )
    top = rows[: plan.top_labels]
    order = np.argsort(-array[top], kind="stable")
    return LabelledRows(
        array[top][order], given[: plan.top_labels][order] == 1, given[plan.top_labels :] == 1
    )


def _labels(labels: Any, scores: NDArray[Any]) -> NDArray[np.int8]:
    """1, 0, or -1 for a row without a label."""
    values = to_numpy(labels, "labels")
    check_length(values, scores, "labels")
    values = np.where(np.isnan(values), -1.0, values)
    wrong = ~np.isin(values, (-1.0, 0.0, 1.0))
    refuse_rows(wrong, values, "Labels are 0 or 1, or NaN for a row without one")
    return values.astype(np.int8)


class PlannedCut(NamedTuple):
    """The last cut that a plan's labels prove: the highest ``accepted`` scores are above it."""

    accepted: int
    proved: float
    measured: float
    counts: str
    note: str = ""


def certify_plan(
    scores: Any, labels: Any, goal: Any, plan: LabelPlan, confidence: float, delta: float
) -> Certificate:
    """A certificate of a bound on fpr or recall from the labels of a plan."""
    array, precision = scores_and_precision(scores)
    wanted, inequality = single_inequality(goal)
    known = labelled_rows(scores, labels, goal, plan)
    falling = np.sort(array)[::-1]
    prove = _fpr_cut if inequality.kind == NEGATIVES else _recall_cut
    found = prove(falling, known, inequality, plan.top, delta)
    claim = Claim(str(inequality.source), None, None, "")
    point = Point(None, None, len(array), None, 0, None)
    if found.accepted >= 0:
        threshold = _threshold(falling, found.accepted, precision)
        claim = Claim(str(inequality.source), found.measured, found.proved, found.counts)
        point = Point(None, threshold, len(array), None, found.accepted, None)
    proved = found.accepted >= 0
    return Certificate(
        goal=wanted.text,
        status=CERTIFIED if proved else NOT_CERTIFIED,
        confidence=float(confidence),
        guarantee="pac",
        candidates=1,
        prevalence=None,
        dtype=precision,
        column=None,
        points=(point,),
        claims=(claim,),
        objective=(),
        assumptions=(
            f"The {len(array):,} rows are independent draws from what the threshold will meet.",
            "The model was neither trained nor chosen on these rows.",
            f"All {len(plan.rows):,} rows of the plan were labelled, whatever they are.",
            "The share of positives will be as in these rows.",
            f"Decisions are score > threshold, with scores in {precision}.",
        ),
        notes=(str(plan), *([found.note] if found.note else [])),
        advice=() if proved else ("More labels, a looser bound, or a better model.",),
        caveats=tuple(useless((point,))) if proved else (),
    )


def without_recall(certificate: Certificate, plan: LabelPlan) -> Certificate:
    """A certificate of precision, without what needs the positives among unlabelled rows."""
    points = tuple(replace(point, positives=None, true_alerts=None) for point in certificate.points)
    notes = (str(plan), "rows without a label count as negative", *certificate.notes)
    return replace(certificate, points=points, objective=(), notes=notes)


def _fpr_cut(
    falling: NDArray[Any], known: LabelledRows, inequality: Inequality, top: int, delta: float
) -> PlannedCut:
    """The last cut, from the highest score downwards, at which fpr is proved."""
    assert inequality.share is not None
    n, level = len(falling), inequality.share.limit
    negative_below = int((~known.positive_below).sum())
    negatives = lower(n - top, n, PREVALENCE / 2 * delta) * lower(
        negative_below, len(known.positive_below), PREVALENCE / 2 * delta
    )
    cuts = np.arange(top + 1)
    cuts = cuts[(cuts == 0) | (cuts == n) | (falling[cuts - 1] != falling[np.minimum(cuts, n - 1)])]
    cuts = cuts[cuts < n]
    labelled = np.searchsorted(-known.scores, -falling[cuts], "left")
    wrong = np.concatenate([[0], np.cumsum(~known.positive)])[labelled]
    with np.errstate(divide="ignore"):
        bounds = upper(cuts, n, COVERAGE * delta) * upper(wrong, labelled, LABELS * delta)
        bounds = bounds / negatives
    failed = np.flatnonzero(bounds > level)
    last = int(failed[0]) - 1 if len(failed) else len(cuts) - 1
    if last < 0:
        return PlannedCut(-1, 0.0, 0.0, "", f"`{inequality.source}` is proved nowhere")
    accepted, i, f = int(cuts[last]), int(labelled[last]), int(wrong[last])
    measured = accepted / n * (f / i if i else 0.0)
    measured /= (n - top) / n * negative_below / len(known.positive_below)
    note = (
        ""
        if len(failed)
        else (
            "the search ended at the last row of the plan's top: a plan with a higher prevalence= "
            "may accept more"
        )
    )
    counts = f"{f:,} of {i:,} labelled alerts are negative; {accepted:,} of {n:,} rows are alerts"
    return PlannedCut(
        accepted,
        inequality.bound.level,
        inequality.share.value(measured),
        counts,
        note,
    )


def _recall_cut(
    falling: NDArray[Any], known: LabelledRows, inequality: Inequality, top: int, delta: float
) -> PlannedCut:
    """The highest cut at which recall is proved, from a fully labelled top and a sample below."""
    assert inequality.share is not None
    n, found = len(falling), int(known.positive.sum())
    missed, below = int(known.positive_below.sum()), len(known.positive_below)
    edge = COVERAGE / 2 * delta
    inside = float(lower(top, n, edge) * lower(found, len(known.positive), 0.1 * delta))
    outside = float(upper(n - top, n, edge) * upper(missed, below, 0.4 * delta))
    share_inside = inside / (inside + outside)
    needed = inequality.share.limit / share_inside if share_inside else math.inf
    allowed_misses = -1 if needed >= 1 else allowed(found, 1 - needed, 0.45 * delta)
    if allowed_misses < 0:
        text = f"{share_inside:.1%} of the positives at least are among the reviewed rows"
        note = f"`{inequality.source}` is proved nowhere: only that {text}"
        return PlannedCut(-1, 0.0, 0.0, "", note)
    lowest = known.scores[known.positive][found - 1 - allowed_misses]
    accepted = int(np.searchsorted(-falling, -lowest, "right"))
    kept = int((known.scores[known.positive] >= lowest).sum())
    proved = float(lower(found - allowed_misses, found, 0.45 * delta)) * share_inside
    per_row = (n - top) / below * missed
    counts = (
        f"{kept:,} of {found:,} positives among the reviewed are accepted; {missed:,} of {below:,} "
        "rows drawn below are positive"
    )
    return PlannedCut(
        accepted,
        inequality.share.value(proved),
        inequality.share.value(kept / (found + per_row)),
        counts,
    )


def _threshold(falling: NDArray[Any], accepted: int, precision: str) -> float:
    """The threshold half way between the ``accepted`` highest scores and the next."""
    if accepted >= len(falling):
        return -math.inf
    return halfway(float(falling[accepted]), falling[::-1], precision)

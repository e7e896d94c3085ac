"""From scores to a promise: the one function of this room."""

from __future__ import annotations

from typing import Any, Literal

from setpoint._checks import whole
from setpoint.certify.assemble import claims, estimates, points
from setpoint.certify.certificate import Certificate
from setpoint.certify.duplicates import check_clusters, check_copies, refuse_weights
from setpoint.certify.given import prove_given, rates_between
from setpoint.certify.goals import read_goal
from setpoint.certify.groups import search_groups
from setpoint.certify.places import Place
from setpoint.certify.reading import read_sample
from setpoint.certify.search import search
from setpoint.certify.settings import by_group, check_classes, check_settings, doubt, slices
from setpoint.certify.words import advice, assumptions, remarks
from setpoint.problems import Problem
from setpoint.rates import Bound, Where


def certify(
    scores: Any,
    labels: Any,
    goal: Bound | Problem | str | list[Bound] | tuple[Bound, ...],
    *,
    confidence: float = 0.95,
    candidates: int = 1,
    guarantee: Literal["pac", "mean"] = "pac",
    groups: Any = None,
    thresholds: Any = None,
    prevalence: float | None = None,
    clusters: Any = None,
    weights: Any = None,
) -> Certificate:
    """A threshold that provably keeps a goal on new data.

    The data must not have been used to train the model, nor (see ``candidates``) to choose it.

    Which threshold, if several are proved: with a :class:`Problem` the one its objective likes
    best. With bounds alone, under a cap (``fpr <= 0.01``, ``coverage <= 0.02``, also beside other
    bounds) or for ``precision >= 0.9`` the lowest, which finds most; under floors only
    (``recall >= 0.95``, ``npv >= 0.99``) the highest, which alarms least; for other rates the one
    proved with the most to spare.

    Args:
        scores: One score an example; numpy, torch or a list. Decisions will be
            ``score > threshold`` in their precision.
        labels: 0 or 1 for each. May be None if the goal is about ``coverage`` only.
        goal: A bound (``fpr <= 0.01``), several of them, a problem, or a sentence for either.
        confidence: The promise fails for at most ``1 - confidence`` of all calibration samples.
        candidates: Among how many models this one was chosen by looking at the same data; the
            promise holds for the chosen one.
        guarantee: ``"pac"``: with confidence, for the threshold returned. ``"mean"``: the rate is
            kept on average over calibration samples (conformal risk control).
        groups: A column (or a dict of columns) for goals about slices. With bounds that name no
            slice, every group gets its own threshold, and all promises hold together.
        thresholds: A threshold, or ``{group: threshold}``, chosen on other data: nothing is
            searched for, and the goal is proved there or not. Gaps between groups with a
            threshold each need it, as in ``thresholds=problem.choose(...).thresholds``.
        prevalence: The share of positives to come, if it is not that of the data; for precision,
            F scores, coverage, error and the like.
        clusters: Who each row belongs to (a customer, a patient). Several rows of one cluster are
            refused: they are not independent.
        weights: Refused: weighted counts do not follow the binomial law.

    Returns:
        A certificate: certified, not certified, or infeasible with the sample size needed.

    Example:
        >>> import numpy as np
        >>> from setpoint.rates import fpr
        >>> random = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], [2000, 500])
        >>> s = random.normal(size=2500) + 2.5 * y
        >>> certificate = certify(s, y, fpr <= 0.01)
        >>> certificate.status, round(certificate.threshold, 2)
        ('certified', 2.39)
        >>> certify(s, y, "fpr <= 0.1 %").notes[0]
        '`fpr <= 0.001` needs 2,995 negatives, you have 2,000'
    """
    refuse_weights(weights)
    wanted = read_goal(goal)
    delta = doubt(confidence)
    count = whole(candidates, "candidates", least=1)
    check_settings(wanted, labels, guarantee, count, prevalence)
    split = by_group(wanted, groups, scores, thresholds)
    sample = read_sample(scores, labels, groups, slices(wanted, split))
    check_clusters(clusters, sample.scores)
    check_classes(wanted, sample, prevalence)
    copies = check_copies(sample)
    mean, tail = guarantee == "mean", delta / count
    places: dict[Where, Place]
    if thresholds is not None:
        if mean:
            raise ValueError('thresholds= are tested, not found: use guarantee="pac".')
        found, places = prove_given(wanted, split, sample, thresholds, tail, prevalence)
    elif split is None:
        found = search(wanted, sample, tail, prevalence, mean)
        places = {} if found.place is None else {(): found.place}
    else:
        found, places = search_groups(split, sample, tail, prevalence, mean)
    where = tuple(points(split, places, sample))
    return Certificate(
        goal=wanted.text,
        status=found.status,
        confidence=float(confidence),
        guarantee=guarantee,
        candidates=count,
        prevalence=None if prevalence is None else float(prevalence),
        dtype=sample.dtype,
        column=None if split is None else split.column,
        points=where,
        claims=tuple(claims(found, sample, places, prevalence)),
        objective=(
            *estimates(wanted, found, split, sample, places, tail, prevalence),
            *rates_between(split, sample, places, tail, prevalence),
        ),
        assumptions=tuple(assumptions(found, sample, count, prevalence, mean)),
        notes=(*found.notes, *remarks(where), *copies),
        advice=tuple(advice(found, sample, tail, mean)),
    )

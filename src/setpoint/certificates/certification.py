"""From scores and labels to a certificate: the function :func:`certify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from setpoint._checks import number, share, whole
from setpoint.batch import describe
from setpoint.certificates.certificate import Certificate, Claim, Estimate, Point
from setpoint.certificates.goals import (
    ACCEPTED,
    CertificateGoal,
    Inequality,
    as_capacity,
    goal_to_certify,
    inequalities,
)
from setpoint.certificates.groups import GroupGoals, goals_by_group
from setpoint.certificates.many_outputs import goal_of_outputs, one_column, without_threshold
from setpoint.certificates.prior_shift import SHARE_OF_PRIOR, prevalence_now, read_prevalence
from setpoint.certificates.proofs import (
    CERTIFIED,
    NOT_CERTIFIED,
    SearchVerdict,
    Thresholds,
    interval,
    value_at,
)
from setpoint.certificates.regions import signs
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    PRIOR,
    CalibrationSample,
    CannotPromise,
    Subset,
    calibration_sample,
    check_copies,
    count_text,
    refuse_weights,
    slice_text,
)
from setpoint.certificates.search import PROOF_METHODS, SPLIT_NOTE, prove_given, search
from setpoint.certificates.selection import candidate_thresholds, split_rows
from setpoint.certificates.text import advice_on, assumptions, remarks, useless
from setpoint.problems import Capacity, Problem
from setpoint.rates import Bound, Expression, Fold, Where, fpr, recall

if TYPE_CHECKING:
    from setpoint.certificates.labelling import LabelPlan


def certify(
    scores: Any,
    labels: Any,
    goal: Bound | Problem | str | list[Bound] | tuple[Bound, ...] | dict[str, Any] | Capacity,
    *,
    confidence: float = 0.95,
    candidates: int = 1,
    guarantee: Literal["pac", "mean"] = "pac",
    groups: Any = None,
    thresholds: Any = None,
    prevalence: float | tuple[float, float] | None = None,
    unlabelled: Any = None,
    clusters: Any = None,
    times: Any = None,
    accept_drift: bool = False,
    old_threshold: float | None = None,
    amounts: Any = None,
    largest_amount: float | None = None,
    weights: Any = None,
    plan: LabelPlan | None = None,
    outputs: Sequence[str] | None = None,
    ties: Literal["reject", "lot"] = "reject",
    ids: Any = None,
) -> Certificate:
    """A threshold that provably keeps a goal on new data.

    The data must not have been used to train the model, nor (see ``candidates``) to choose it.

    Which threshold, if several are proved: with a :class:`Problem` the one its objective likes
    best. With bounds alone, under a cap (``fpr <= 0.01``, ``coverage <= 0.02``, also beside other
    bounds) or for ``precision >= 0.9`` the lowest, which finds most; under floors only
    (``recall >= 0.95``, ``npv >= 0.99``) the highest, which alarms least; for other rates the one
    proved with the most to spare.

    Args:
        scores: One score per example; numpy, torch or a list. Decisions will be
            ``score > threshold`` in their precision.
        labels: 0 or 1 for each. May be None if the goal is about ``coverage`` only.
        goal: A bound (``fpr <= 0.01``), several of them, a problem, or a sentence for either; with
            ``times`` also a capacity, ``"alerts <= 200 per day on 95 % of days"``.
        confidence: The certificate is wrong for at most ``1 - confidence`` of all calibration
            samples.
        candidates: Among how many models this one was chosen by looking at the same data; the
            certificate holds for the chosen one.
        guarantee: ``"pac"``: with confidence, for the threshold returned. ``"mean"``: the rate is
            kept on average over calibration samples (conformal risk control).
        groups: A column (or a dict of columns) for goals about slices. With bounds that name no
            slice, every group gets its own threshold, and all bounds hold together.
        thresholds: A threshold, or ``{group: threshold}``, chosen on other data: nothing is
            searched for, and the goal is proved there or not. Gaps between groups with a
            threshold each need it, as in ``thresholds=problem.choose(...).thresholds``.
        prevalence: The share of positives to come, if it is not that of the data, or the lowest
            and the highest that it may be; for precision, F scores, coverage, error and the like.
        unlabelled: Scores of the rows to come, without labels: the share of positives is bounded
            by them, and the promise holds for the worst share that they leave possible.
        clusters: What each row belongs to (a customer, a patient): whole numbers, texts or
            timestamps. The promise is then about a random row of a new cluster; every cluster
            counts once, however many rows it has.
        times: When each row was measured, dates or numbers. The certificate says from when to when,
            and rows that drift meanwhile are not certified.
        accept_drift: Certify rows that drift all the same, with a caveat that says so.
        old_threshold: Where alerts began while these rows were labelled. If none of the rows lies
            below, they are reviewed alerts: only precision can be certified.
        amounts: What each row is worth: missing it costs the goal's ``miss`` times its amount, as
            in ``cost(miss=1, false_alarm=5) <= 8``.
        largest_amount: The largest amount that a row can have, for the bound of the mean cost; by
            default that of these rows, which the certificate then assumes.
        weights: Refused: weighted counts do not follow the binomial law.
        plan: Which rows are labelled, from :func:`setpoint.label_plan`; ``labels`` are NaN
            elsewhere.
        outputs: Names of several yes-or-no outputs, with scores and labels ``[n, k]`` (NaN or -1
            where a label is missing): each gets a threshold, all promises hold together, and one
            of which nothing can be proved gets none. ``goal`` may then be ``{name: goal}``.
        ties: ``"lot"``: of scores that equal the threshold, a lot drawn from the row's id accepts
            some, as many as the bounds allow; for scores with few distinct values.
        ids: With lots, an id for each row, all different: whole numbers, texts or timestamps.

    Returns:
        A certificate: certified, not certified, or infeasible with the sample size needed.

    Examples:
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
    _check_given(weights, ties, ids, thresholds, unlabelled)
    if plan is not None:
        others = (groups, thresholds, prevalence, clusters, times, old_threshold, amounts, ids)
        plain = candidates == 1 and guarantee == "pac" and all(x is None for x in others)
        return _certify_plan(scores, labels, goal, plan, confidence, plain)
    options = _options(confidence, guarantee, candidates, thresholds is not None, old_threshold)
    if outputs is not None:
        others = (groups, prevalence, unlabelled, clusters, times, old_threshold, amounts, ids)
        return _certify_outputs(scores, labels, goal, outputs, thresholds, options, others)
    delta = risk_of(confidence) / candidates
    if (capacity := as_capacity(goal)) is not None:
        others = (groups, thresholds, prevalence, unlabelled, clusters, old_threshold, amounts, ids)
        settings = (delta, options, accept_drift, others)
        return _certify_capacity(capacity, scores, labels, times, *settings)
    wanted = goal_to_certify(goal)
    _check_settings(wanted, labels, options, thresholds, prevalence, unlabelled)
    goals = goals_by_group(wanted, groups, given=thresholds is not None)
    wheres = tuple(dict.fromkeys([*goals.wheres, *wanted.wheres]))
    sample = calibration_sample(scores, labels, groups, wheres, read_prevalence(prevalence))
    when = None if times is None else _times_of_rows(times, sample)
    sample = _independent(wanted, sample, ids, clusters, old_threshold)
    if unlabelled is not None:
        sample.prevalence = prevalence_now(sample, unlabelled, SHARE_OF_PRIOR * delta)
        delta *= 1 - SHARE_OF_PRIOR
    sample = sample if amounts is None else _with_amounts(sample, goals, amounts, largest_amount)
    return _prove(wanted, goals, sample, thresholds, delta, options, when, accept_drift)


def _independent(
    wanted: CertificateGoal, sample: CalibrationSample, ids: Any, clusters: Any, old: float | None
) -> CalibrationSample:
    """The rows with ties broken, or one row of each cluster, if the goal can be counted on them."""
    _check_reviewed(wanted, sample, old)
    if ids is not None:
        from setpoint.certificates.tie_breaking import break_ties

        sample = break_ties(sample, ids)
    sample = sample if clusters is None else _by_cluster(sample, clusters)
    _check_class_counts(wanted, sample)
    return sample


def _prove(
    wanted: CertificateGoal,
    goals: GroupGoals,
    sample: CalibrationSample,
    thresholds: Any,
    delta: float,
    options: dict[str, Any],
    when: Any = None,
    accept_drift: bool = False,
) -> Certificate:
    """The certificate of a checked goal and sample."""
    copies = check_copies(sample) if sample.order is None else sample.order.notes
    if thresholds is not None:
        found = prove_given(goals, sample, thresholds, delta)
    else:
        found = search(goals, sample, delta, options["guarantee"])
    drift = _drift(found, sample, when)
    if drift and not accept_drift:
        found = replace(found, status=NOT_CERTIFIED, thresholds=Thresholds(), notes=drift)
    made = _write(wanted, goals, found, sample, delta, **options)
    caveats = (*made.caveats, *drift) if made.certified else ()
    return replace(made, notes=(*made.notes, *copies), caveats=caveats, period=_period(when))


def certify_sample(
    wanted: CertificateGoal, sample: CalibrationSample, groups: Any, **options: Any
) -> Certificate:
    """The certificate of a sample that was read elsewhere.

    Args:
        wanted: The goal.
        sample: The rows.
        groups: The column of groups with its values, or None.
        **options: ``confidence``, ``candidates`` and ``guarantee``, as for :func:`certify`.
    """
    options = _options(**options)
    _check_settings(wanted, sample.labels, options, None, sample.prevalence)
    goals = goals_by_group(wanted, groups, given=False)
    _check_class_counts(wanted, sample)
    delta = risk_of(options["confidence"]) / options["candidates"]
    return _prove(wanted, goals, sample, None, delta, options)


def _options(
    confidence: float,
    guarantee: str,
    candidates: int,
    given_thresholds: bool = False,
    old_threshold: float | None = None,
) -> dict[str, Any]:
    """What a certificate says about itself, checked."""
    count = whole(candidates, "candidates", least=1)
    known = {"given_thresholds": given_thresholds, "old_threshold": old_threshold}
    return {"confidence": float(confidence), "guarantee": guarantee, "candidates": count, **known}


def _certify_outputs(
    scores: Any,
    labels: Any,
    goal: Any,
    names: Sequence[str],
    thresholds: Any,
    options: dict[str, Any],
    others: tuple[Any, ...],
) -> Certificate:
    """A certificate of several outputs, each a group of its own."""
    if any(other is not None for other in others):
        raise ValueError(
            "outputs= goes with confidence=, candidates=, guarantee= and thresholds=. For other "
            "options certify each output by itself, with the risk divided by their number."
        )
    column, positive, groups = one_column(scores, labels, names)
    wanted = goal_of_outputs(goal, names)
    _check_settings(wanted, labels, options, thresholds)
    goals = replace(goals_by_group(wanted, groups, given=thresholds is not None), apart=True)
    if goals.between:
        raise CannotPromise(f"`{goals.between[0]}` compares outputs, which are not independent.")
    sample = calibration_sample(column, positive, groups, tuple(goals.wheres))
    _check_class_counts(wanted, sample)
    delta = risk_of(options["confidence"]) / options["candidates"]
    made = _prove(wanted, goals, sample, thresholds, delta, options)
    return replace(
        made, outputs=tuple(names), caveats=(*made.caveats, *without_threshold(made, names))
    )


def _certify_capacity(
    capacity: Capacity,
    scores: Any,
    labels: Any,
    times: Any,
    delta: float,
    options: dict[str, Any],
    accept_drift: bool,
    others: tuple[Any, ...],
) -> Certificate:
    """A certificate of a number of alerts in a period."""
    if any(other is not None for other in others):
        raise ValueError(f"`{capacity}` goes with times= and confidence=: leave the rest out.")
    from setpoint.certificates.capacity import certify_capacity

    return certify_capacity(scores, labels, capacity, times, delta, options, accept_drift)


def _write(
    wanted: CertificateGoal,
    goals: GroupGoals,
    found: SearchVerdict,
    sample: CalibrationSample,
    delta: float,
    **options: Any,
) -> Certificate:
    """The certificate of a verdict, with the options that it was asked for with."""
    points, order = tuple(_points(goals, found, sample)), sample.order
    lots: tuple[float, ...] = ()
    if order is not None and found.thresholds:
        pairs = [order.pair(float(p.threshold)) for p in points if p.threshold is not None]
        points = tuple(replace(p, threshold=t) for p, (t, _) in zip(points, pairs, strict=True))
        lots = tuple(lot for _, lot in pairs)
    mean = options["guarantee"] == "mean"
    return Certificate(
        goal=wanted.text,
        status=found.status,
        prevalence=sample.prevalence,
        dtype=sample.precision if order is None else order.precision,
        column=goals.column,
        points=points,
        claims=tuple(_claims(found, sample)),
        objective=tuple(_estimates(goals, found, sample, delta)),
        assumptions=tuple(assumptions(found, sample, options["candidates"], mean)),
        notes=(*found.notes, *remarks(points, sample, goals.column)),
        advice=tuple(advice_on(found, sample, delta, mean)),
        caveats=tuple(useless(points, goals.column)) if found.status == CERTIFIED else (),
        fingerprint=sample.fingerprint,
        clusters=sample.clusters,
        largest_amount=sample.largest_amount,
        lots=lots,
        lot_seed=order.seed if order is not None and lots else 0,
        **options,
    )


def _by_cluster(sample: CalibrationSample, clusters: Any) -> CalibrationSample:
    from setpoint.certificates.clusters import by_cluster

    return by_cluster(sample, clusters)


def _with_amounts(
    sample: CalibrationSample, goals: GroupGoals, amounts: Any, largest: float | None
) -> CalibrationSample:
    from setpoint.certificates.costs import with_amounts

    if goals.column is not None or sample.clusters or sample.prevalence is not None:
        raise ValueError("amounts= go with one threshold, without clusters= and prevalence=.")
    return with_amounts(sample, goals.goals[None], amounts, largest)


def _certify_plan(
    scores: Any, labels: Any, goal: Any, plan: LabelPlan, confidence: float, plain: bool
) -> Certificate:
    """A certificate from the labels of a plan."""
    if not plain:
        raise ValueError("plan= goes with confidence= alone: leave the other options out.")
    from setpoint.certificates.labelling import certify_plan, labelled_rows, without_recall

    if not plan.in_order:
        return certify_plan(scores, labels, goal, plan, confidence, risk_of(confidence))
    known = labelled_rows(scores, labels, goal, plan)
    return without_recall(certify(scores, known.positive, goal, confidence=confidence), plan)


def _drift(found: SearchVerdict, sample: CalibrationSample, when: Any) -> tuple[str, ...]:
    """That calibration rows drift with time, if thresholds were proved on them."""
    if found.status != CERTIFIED or when is None:
        return ()
    from setpoint.certificates.times import drift_caveat

    one = found.thresholds.get(())
    return drift_caveat(sample, when, None if one is None else one.value(sample))


def _times_of_rows(times: Any, sample: CalibrationSample) -> Any:
    """The times of the rows that have a label."""
    from setpoint.certificates.times import read_times

    when = read_times(times, sample.scores if sample.kept is None else sample.kept)
    when = when if sample.kept is None else when[sample.kept]
    if when.min() == when.max():
        raise ValueError(
            f"times= are {when.min()} in all rows: there is no earlier and later to compare. Leave "
            "times= out, or pass when each row was measured."
        )
    return when


def _period(when: Any) -> tuple[str, ...]:
    if when is None:
        return ()
    from setpoint.certificates.times import period_of

    return period_of(when)


def risk_of(confidence: float) -> float:
    """``1 - confidence``: exactly 0.05 for 0.95, in spite of rounding."""
    risk = round(1 - share(confidence, "confidence", ends=False), 12)
    if risk <= 0:
        raise ValueError(f"confidence must leave some doubt, 1e-12 at least; got {confidence!r}.")
    return risk


def _check_given(weights: Any, ties: str, ids: Any, thresholds: Any, unlabelled: Any) -> None:
    """Weights are refused; lots need ids, and a threshold that is searched for."""
    if weights is not None:
        refuse_weights()
    if ties not in ("reject", "lot"):
        raise ValueError(f'ties must be "reject" or "lot"; got {ties!r:.40}.')
    if (ids is None) == (ties == "lot"):
        raise ValueError('ties="lot" draws a lot from the id of each row: ids= goes with it.')
    if ids is not None and (thresholds is not None or unlabelled is not None):
        raise ValueError('ties="lot" goes neither with thresholds= nor with unlabelled=.')


def _check_settings(
    goal: CertificateGoal,
    labels: Any,
    options: dict[str, Any],
    thresholds: Any,
    prevalence: Any = None,
    unlabelled: Any = None,
) -> None:
    """Refuse settings that contradict each other."""
    guarantee, candidates = options["guarantee"], options["candidates"]
    if guarantee not in PROOF_METHODS:
        raise ValueError(f'guarantee must be "pac" or "mean"; got {guarantee!r}.')
    if guarantee == "mean" and candidates > 1:
        raise ValueError(
            'guarantee="mean" does not survive choosing among several models. Use guarantee="pac", '
            "or certify on rows that took no part in the choice."
        )
    if guarantee == "mean" and thresholds is not None:
        raise ValueError('thresholds= are tested, not found: use guarantee="pac".')
    if prevalence is not None and unlabelled is not None:
        raise ValueError("unlabelled= says what prevalence= would say: give one of the two.")
    if prevalence is not None or unlabelled is not None:
        if labels is None:
            raise ValueError("prevalence= weighs the two classes anew and needs labels.")
        if goal.wheres:
            raise ValueError(
                "prevalence= is that of everyone; slices have their own. Certify each slice by "
                "itself with its prevalence."
            )


def _check_reviewed(goal: CertificateGoal, sample: CalibrationSample, old: Any) -> None:
    """Reviewed alerts are no sample of what is scored: nothing is known below the old threshold."""
    if old is None or (sample.scores <= number(old, "old_threshold")).any():
        return
    if all(i.kind == ACCEPTED for i in inequalities(goal.bounds, sample.prevalence)):
        return
    raise CannotPromise(
        f"None of the {len(sample.scores):,} rows lies below the old threshold {old:g}: they are "
        f"alerts that were reviewed, and say nothing about what was rejected. `{goal.text}` needs "
        "a random sample of the rejected rows too; of alerts, precision can be certified."
    )


def _check_class_counts(goal: CertificateGoal, sample: CalibrationSample) -> None:
    """Every class that the goal counts must occur."""
    expressions = [bound.expression for bound in goal.bounds]
    expressions += [] if goal.objective is None else [goal.objective]
    subsets = [subset for e in expressions for subset in signs(e, sample.prevalence)]
    if {subset.kind for subset in subsets} <= {EVERYONE}:
        return
    if sample.labels is None:
        raise ValueError(f"`{goal.text}` counts positives and negatives: pass labels.")
    for where, kind in subsets:
        for each in (POSITIVES, NEGATIVES) if kind == PRIOR else (kind,):
            if not sample.size(Subset(where, each)):
                found = [sample.size(Subset(where, k)) for k in (POSITIVES, NEGATIVES)]
                raise ValueError(
                    f"`{goal.text}` counts {count_text(0, Subset(where, each))[2:]}, and there are "
                    f"none: the data have {describe(*found)}{slice_text(where)}."
                )


def _points(goals: GroupGoals, found: SearchVerdict, sample: CalibrationSample) -> Iterator[Point]:
    """The threshold of everyone, or of each group, with its counts."""
    for group in goals.goals:
        where = goals.where(group)
        if goals.apart and found.thresholds and where not in found.thresholds:
            continue
        everyone, positives = Subset(where, EVERYONE), Subset(where, POSITIVES)
        threshold = found.thresholds[where].settled(sample, where) if found.thresholds else None
        labelled = sample.labels is not None
        alerts, true_alerts = (
            0 if threshold is None or not known else int(sample.above(subset, threshold))
            for subset, known in ((everyone, True), (positives, labelled))
        )
        yield Point(
            group=group,
            threshold=threshold,
            examples=sample.size(everyone),
            positives=sample.size(positives) if labelled else None,
            alerts=alerts,
            true_alerts=true_alerts if labelled else None,
        )


def _claims(found: SearchVerdict, sample: CalibrationSample) -> Iterator[Claim]:
    """For each bound what was measured and what is proved."""
    sources: dict[Bound, list[Inequality]] = {}
    for inequality in found.proved:
        sources.setdefault(inequality.source, []).append(inequality)
    for source, own in sources.items():
        if found.status != CERTIFIED:
            yield Claim(str(source), None, None, "")
            continue
        counts = "; ".join(dict.fromkeys(note for i in own if (note := found.proved[i][1])))
        rows = split_rows(sample)[1] if counts == SPLIT_NOTE else sample
        value = value_at(source.expression, rows, found.thresholds)
        yield Claim(str(source), value, _proved_value(source, own, found), counts)


def _proved_value(source: Bound, own: list[Inequality], found: SearchVerdict) -> float:
    """What is proved of the bound itself, from what is proved of its inequalities."""
    values = [value for each in own if (value := found.proved[each][0]) is not None]
    e = source.expression
    if isinstance(e, Fold) and e.kind == "abs" and len(values) == 2:
        return max(abs(value) for value in values)
    same = all(i.bound.level == source.level and i.bound.sense == source.sense for i in own)
    if not same or not values:  # an inequality of another form, such as one with a quotient
        return source.level
    return max(values) if source.sense == "<=" else min(values)


def _estimates(
    goals: GroupGoals, found: SearchVerdict, sample: CalibrationSample, delta: float
) -> Iterator[Estimate]:
    """The objective of each group, then the rates that bounds between groups compare."""
    expressions: list[Expression] = []
    if found.status == CERTIFIED:
        for group, goal in goals.goals.items():
            if goals.apart and goals.where(group) not in found.thresholds:
                continue
            objective = goal.objective
            if objective is None:
                objective = _other_rate(goal, goals.where(group), sample)
            counted = [s for s in signs(objective, sample.prevalence) if s.kind != PRIOR]
            if sample.labels is not None and all(map(sample.size, counted)):
                expressions.append(objective)
    if found.thresholds:
        compared = [rate for bound in goals.between for rate in bound.expression.rates()]
        expressions += dict.fromkeys(compared)
    for expression in expressions:
        value = value_at(expression, sample, found.thresholds)
        if value is None:
            continue
        low, high = _interval(expression, found, sample, delta)
        if np.isfinite([low, high]).all():
            yield Estimate(str(expression), value, low, high)


def _interval(
    expression: Expression, found: SearchVerdict, sample: CalibrationSample, delta: float
) -> tuple[float, float]:
    """A two-sided interval of an expression at the thresholds found."""
    if not sample.prices(expression):
        return interval(expression, sample, found.thresholds, delta)
    selection, test = split_rows(sample)  # one of several thresholds that the former selected
    several = len(candidate_thresholds(selection, list(found.proved)))
    return test.cost_bounds(expression, found.thresholds[()].value(sample), delta / 2 / several)


def _other_rate(goal: CertificateGoal, where: Where, sample: CalibrationSample) -> Expression:
    """Without an objective: what the bounds cost in the other class."""
    kinds = {s.kind for b in goal.bounds for s in signs(b.expression, sample.prevalence)}
    rate = fpr if kinds == {POSITIVES} else recall
    return rate.on(**dict(where)) if where else rate

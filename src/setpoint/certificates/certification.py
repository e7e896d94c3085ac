"""From scores and labels to a certificate: the function :func:`certify`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

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
from setpoint.certificates.groups import GroupGoals, advice_per_group, goals_by_group
from setpoint.certificates.options import Options
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
    only_alerts,
    slice_text,
)
from setpoint.certificates.search import SPLIT_NOTE, prove_given, search
from setpoint.certificates.selection import candidate_thresholds, split_rows
from setpoint.certificates.text import advice_on, assumptions, remarks, useless
from setpoint.problems import Capacity, Problem
from setpoint.rates import Bound, Expression, Fold, Value, Where, fpr, recall

if TYPE_CHECKING:
    from setpoint.certificates.labelling import LabelPlan

_ROWS = ("scores", "labels", "goal")
"""The arguments of :func:`certify` that are no options."""


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
    given = {name: value for name, value in locals().items() if name not in _ROWS}
    capacity = None if isinstance(goal, Mapping) else as_capacity(goal)
    asked = Options.read(given, "alerts per period" if capacity is not None else "")
    if asked.plan is not None:
        return _by_plan(scores, labels, goal, asked)
    if outputs is not None:
        return _each_output(scores, labels, goal, asked)
    if capacity is not None:
        from setpoint.certificates.capacity import certify_capacity

        return certify_capacity(scores, labels, capacity, asked)
    return certify_goal(goal_to_certify(goal), scores, labels, asked, asked.delta)


def certify_goal(
    wanted: CertificateGoal,
    scores: Any,
    labels: Any,
    asked: Options,
    delta: float,
    on: Mapping[str, Value] | None = None,
) -> Certificate:
    """The certificate of one goal on rows ``[n]``.

    Args:
        wanted: The goal.
        scores: One per row.
        labels: Theirs, or None.
        asked: The options of :func:`certify`.
        delta: The probability with which the certificate may be wrong.
        on: The output that the rows belong to, which rates are named by.
    """
    asked.check_prevalence(labels, wanted)
    goals = goals_by_group(wanted, asked.groups, given=asked.thresholds is not None)
    if on is not None and goals.column is not None:
        raise ValueError(_outputs_of_groups(wanted, goals, asked, len(asked.outputs or on)))
    wheres = tuple(dict.fromkeys([*goals.wheres, *wanted.wheres]))
    sample = calibration_sample(scores, labels, asked.groups, wheres, asked.prevalence)
    when = None
    if asked.times is not None:
        from setpoint.certificates.times import times_of_rows

        when = times_of_rows(asked.times, sample)
    alerts = _check_reviewed(wanted, sample, asked.old_threshold)
    if asked.ids is not None:
        from setpoint.certificates.tie_breaking import break_ties

        sample = break_ties(sample, asked.ids)
    if asked.clusters is not None:
        from setpoint.certificates.clusters import by_cluster

        sample = by_cluster(sample, asked.clusters)
    _keep_to_alerts(sample, alerts)
    if on is None:  # an output of which there are no positives is one that nothing is proved of
        _check_class_counts(wanted, sample)
    if asked.unlabelled is not None:
        from setpoint.certificates.prior_shift import SHARE_OF_PRIOR, prevalence_now

        sample.prevalence = prevalence_now(sample, asked.unlabelled, SHARE_OF_PRIOR * delta)
        delta *= 1 - SHARE_OF_PRIOR
    if asked.amounts is not None:
        from setpoint.certificates.costs import with_amounts

        goal = goals.goals[None]
        sample = with_amounts(sample, goal, asked.amounts, asked.largest_amount)
    made = _prove(wanted, goals, sample, delta, asked, when, on or {})
    if when is not None or asked.clusters is not None or on is not None:
        return made
    from setpoint.certificates.calibration_drift import order_note

    note = order_note(sample.scores, sample.labels)
    return made if note is None else replace(made, notes=(*made.notes, note))


def _outputs_of_groups(
    wanted: CertificateGoal, goals: GroupGoals, asked: Options, outputs: int
) -> str:
    """Why there is no threshold for each output and group, and what to do."""
    sure = 1 - (1 - asked.confidence) / outputs
    return (
        f"`{wanted.text}` with groups= would have a threshold for each output and group. For "
        f'one threshold an output name the groups in the goal (`fpr on {goals.column}="..." '
        f"<= 0.05`); for one each certify every output by itself with confidence {sure:.6g} "
        "(the risk divided by the number of outputs): all promises then hold together."
    )


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
    asked = Options.read({**options, "prevalence": sample.prevalence})
    asked.check_prevalence(sample.labels, wanted)
    goals = goals_by_group(wanted, groups, given=False)
    _keep_to_alerts(sample, _check_reviewed(wanted, sample))
    _check_class_counts(wanted, sample)
    return _prove(wanted, goals, sample, asked.delta, asked)


def _prove(
    wanted: CertificateGoal,
    goals: GroupGoals,
    sample: CalibrationSample,
    delta: float,
    asked: Options,
    when: Any = None,
    on: Mapping[str, Value] | None = None,
) -> Certificate:
    """The certificate of a checked goal and sample."""
    copies = check_copies(sample) if sample.order is None else sample.order.notes
    if asked.thresholds is not None:
        found = prove_given(goals, sample, asked.thresholds, delta)
        _check_given(found, sample)
    else:
        found = search(goals, sample, delta, asked.guarantee)
    drift = _drift(found, sample, when)
    if drift and not asked.accept_drift:
        found = replace(found, status=NOT_CERTIFIED, thresholds=Thresholds(), notes=drift)
    made = _of_alerts(_write(wanted, goals, found, sample, delta, asked, on or {}), sample, goals)
    caveats = (*made.caveats, *drift) if made.certified else ()
    return replace(made, notes=(*made.notes, *copies), caveats=caveats, period=_period(when))


def _each_output(scores: Any, labels: Any, goal: Any, asked: Options) -> Certificate:
    """The certificates of several outputs, proved one by one, as one."""
    from setpoint.certificates.many_outputs import OUTPUT, certify_outputs

    def prove(name: str, own: CertificateGoal, column: Any, known: Any, risk: float) -> Certificate:
        one = asked if asked.thresholds is None else asked.with_threshold(name)
        return certify_goal(own, column, known, one, risk, {OUTPUT: name})

    again = asked.thresholds is not None
    return certify_outputs(scores, labels, goal, asked.outputs, asked.delta, prove, again)


def _by_plan(scores: Any, labels: Any, goal: Any, asked: Options) -> Certificate:
    """A certificate from the labels of a plan."""
    from setpoint.certificates.planned_labels import (
        certify_plan,
        labelled_rows,
        without_recall,
    )

    plan, sure = asked.plan, asked.confidence
    if plan.in_order:
        known = labelled_rows(scores, labels, goal, plan)
        wanted = goal_to_certify(goal)
        made = certify_goal(wanted, scores, known.positive, Options(sure), asked.delta)
        made = without_recall(made, plan)
    else:
        made = certify_plan(scores, labels, goal, plan, sure, asked.delta)
    return replace(made, fingerprint=plan.fingerprint)


def _write(
    wanted: CertificateGoal,
    goals: GroupGoals,
    found: SearchVerdict,
    sample: CalibrationSample,
    delta: float,
    asked: Options,
    on: Mapping[str, Value],
) -> Certificate:
    """The certificate of a verdict, with the options that it was asked for with."""
    points, order = tuple(_points(goals, found, sample)), sample.order
    lots: tuple[float, ...] = ()
    if order is not None and found.thresholds:
        pairs = [order.pair(float(p.threshold)) for p in points if p.threshold is not None]
        points = tuple(replace(p, threshold=t) for p, (t, _) in zip(points, pairs, strict=True))
        lots = tuple(lot for _, lot in pairs)
    mean = asked.guarantee == "mean"
    objective = tuple(_estimates(goals, found, sample, asked.delta if on else delta, on))
    claims = tuple(_claims(found, sample, on))
    advice = [*advice_on(found, sample, delta, mean, claims)]
    if not on and asked.thresholds is None:
        advice += advice_per_group(wanted, found, sample, objective)
    return Certificate(
        goal=wanted.text,
        status=found.status,
        prevalence=sample.prevalence,
        dtype=sample.precision if order is None else order.precision,
        column=goals.column,
        points=points,
        claims=claims,
        objective=objective,
        assumptions=tuple(assumptions(found.proved, sample, asked.candidates, mean)),
        notes=(*found.notes, *remarks(points, sample, goals.column)),
        advice=tuple(advice),
        caveats=(*useless(points, goals.column, sample), *sample.label_caveats)
        if found.status == CERTIFIED
        else (),
        fingerprint=sample.fingerprint,
        clusters=sample.clusters,
        largest_amount=sample.largest_amount,
        lots=lots,
        lot_seed=order.seed if order is not None and lots else 0,
        **asked.recorded,
    )


def _check_given(found: SearchVerdict, sample: CalibrationSample) -> None:
    """CannotPromise for a threshold below the alerts that were reviewed."""
    lowest = min((rule.score for rule in found.thresholds.values()), default=np.inf)
    if lowest < sample.lowest_threshold:
        raise CannotPromise(
            f"The threshold {sample.score_text(lowest)} lies below the reviewed alerts, which "
            f"begin at {sample.score_text(sample.lowest_threshold)}: label a random sample of the "
            "rows between (label_plan), or raise the threshold."
        )


def _drift(found: SearchVerdict, sample: CalibrationSample, when: Any) -> tuple[str, ...]:
    """That calibration rows drift with time, if thresholds were proved on them."""
    if found.status != CERTIFIED or when is None:
        return ()
    from setpoint.certificates.calibration_drift import drift_caveat

    one = found.thresholds.get(())
    return drift_caveat(sample, when, None if one is None else one.value(sample))


def _period(when: Any) -> tuple[str, ...]:
    if when is None:
        return ()
    from setpoint.certificates.times import period_of

    return period_of(when)


def _check_reviewed(
    goal: CertificateGoal, sample: CalibrationSample, old: Any = None
) -> tuple[Where, ...]:
    """The slices whose labels are those of reviewed alerts alone.

    Args:
        goal: What is asked for.
        sample: The labelled rows.
        old: Where alerts began while the rows were labelled, if that is known.

    Raises:
        CannotPromise: There are such slices, and the goal is not about precision alone.
    """
    found = {
        where: end for where in sample.wheres if (end := sample.only_alerts(where, old)) is not None
    }
    every = inequalities(goal.bounds, sample.prevalence)
    if not found or all(each.kind == ACCEPTED for each in every):
        return tuple(found)
    where, end = next(iter(found.items()))
    raise only_alerts(goal.text, sample, where, end, given=old is not None)


def _keep_to_alerts(sample: CalibrationSample, alerts: tuple[Where, ...]) -> None:
    """Take no threshold below the alerts that were reviewed: what lies there is not known."""
    lowest = [float(sample.decided_scores(where)[0]) for where in alerts]
    sample.lowest_threshold = max(lowest, default=-np.inf)


def _check_class_counts(goal: CertificateGoal, sample: CalibrationSample) -> None:
    """Every class that the goal counts must occur; CannotPromise if one does not."""
    subsets = [subset for e in goal.expressions for subset in signs(e, sample.prevalence)]
    if {subset.kind for subset in subsets} <= {EVERYONE}:
        return
    if sample.labels is None:
        raise ValueError(f"`{goal.text}` counts positives and negatives: pass labels.")
    for where, kind in subsets:
        for each in (POSITIVES, NEGATIVES) if kind == PRIOR else (kind,):
            if not sample.size(Subset(where, each)):
                found = [sample.size(Subset(where, k)) for k in (POSITIVES, NEGATIVES)]
                drawn = ", one row of each cluster" if sample.clusters is not None else ""
                more = "rows of more clusters" if drawn else "rows of that kind too"
                raise CannotPromise(
                    f"`{goal.text}` counts {count_text(0, Subset(where, each))[2:]}, and there are "
                    f"none: the data to certify on have {describe(*found)}{slice_text(where)}"
                    f"{drawn}. Pass {more}."
                )


def _points(goals: GroupGoals, found: SearchVerdict, sample: CalibrationSample) -> Iterator[Point]:
    """The threshold of everyone, or of each group, with its counts."""
    for group in goals.goals:
        where = goals.where(group)
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


def _of_alerts(made: Certificate, sample: CalibrationSample, goals: GroupGoals) -> Certificate:
    """A certificate from reviewed alerts: what their labels do not tell is left out.

    Rows without a label are counted as rows and alerts, if they are known.
    """
    if sample.lowest_threshold == -np.inf:
        return made
    points = [replace(point, positives=None, true_alerts=None) for point in made.points]
    if not sample.clusters:
        others = [sample.unlabelled(goals.where(point.group))[0] for point in points]
        points = [replace(p, examples=p.examples + n) for p, n in zip(points, others, strict=True)]
    note = (
        f"Labels are those of alerts: thresholds below {sample.score_text(sample.lowest_threshold)}"
        " are not looked at, and recall and fpr are unknown."
    )
    return replace(made, points=tuple(points), objective=(), notes=(*made.notes, note), caveats=())


def _claims(
    found: SearchVerdict, sample: CalibrationSample, on: Mapping[str, Value]
) -> Iterator[Claim]:
    """For each bound what was measured and what is proved."""
    sources: dict[Bound, list[Inequality]] = {}
    for inequality in found.proved:
        sources.setdefault(inequality.source, []).append(inequality)
    for source, own in sources.items():
        e = source.expression
        text = str(Bound(e.on(**on), source.sense, source.level) if on else source)
        if found.status != CERTIFIED:
            yield Claim(text, None, None, "")
            continue
        counts = "; ".join(dict.fromkeys(note for i in own if (note := found.proved[i][1])))
        rows = split_rows(sample)[1] if counts == SPLIT_NOTE else sample
        value = value_at(e, rows, found.thresholds)
        yield Claim(text, value, _proved_value(source, own, found), counts)


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
    goals: GroupGoals,
    found: SearchVerdict,
    sample: CalibrationSample,
    delta: float,
    on: Mapping[str, Value],
) -> Iterator[Estimate]:
    """The objective of each group, then the rates that bounds between groups compare."""
    expressions: list[Expression] = []
    if found.status == CERTIFIED:
        for group, goal in goals.goals.items():
            objective = goal.objective
            if objective is None:
                objective = _other_rate(goal, goals.where(group), sample)
            counted = [s for s in signs(objective, sample.prevalence) if not s.is_prior]
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
            yield Estimate(str(expression.on(**on) if on else expression), value, low, high)


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

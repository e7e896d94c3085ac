"""Find thresholds that satisfy all bounds, each proved by the method for its kind.

Every inequality of a goal goes to the first of :data:`PROOF_METHODS` that can prove it; those that
one argument covers together form a family. Families share ``delta`` equally, and a threshold is
admissible if every family has proved it. What no method can prove is tested at the threshold that
the other bounds lead to, or by sample splitting (:mod:`setpoint.certificates.selection`).

With a threshold per group, every group is searched with an equal part of ``delta``, and bounds
between groups are tested at the thresholds found: ranks fixed in advance, so that the shares behind
a gap are independent and known up to their bounds. Thresholds that were chosen on other data are
not searched for: each bound is one test there, and the certificate needs all of them passed, so it
is false with probability ``delta`` at most, however many bounds and groups there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from setpoint._checks import number
from setpoint.certificates.goals import (
    MIXED,
    CertificateGoal,
    Inequality,
    count_bounds,
    inequalities,
    refuse_trivial,
)
from setpoint.certificates.groups import GroupGoals
from setpoint.certificates.order_statistics import OrderStatistic
from setpoint.certificates.precision_walk import PrecisionWalk
from setpoint.certificates.proofs import (
    CERTIFIED,
    INFEASIBLE,
    NOT_CERTIFIED,
    Proof,
    ProofMethod,
    SearchVerdict,
    ThresholdRange,
    ThresholdRule,
    Thresholds,
    proved_at,
    proved_together,
    value_at,
)
from setpoint.certificates.regions import signs
from setpoint.certificates.sample import CalibrationSample, count_text
from setpoint.certificates.selection import (
    TestedThreshold,
    choose_threshold,
    prefers_low,
    select_and_test,
    split_rows,
    threshold_merit,
)
from setpoint.rates import Bound, Expression, Fold

SPLIT_NOTE = "both on the three quarters of the rows that did not select the threshold"
"""What a value is measured and proved by, if the threshold was selected on the other rows."""
PROOF_METHODS: Mapping[str, Sequence[ProofMethod]] = {
    "pac": (OrderStatistic(caps=True), OrderStatistic(caps=False), PrecisionWalk()),
    "mean": (
        OrderStatistic(caps=True, on_average=True),
        OrderStatistic(caps=False, on_average=True),
    ),
}
"""The methods of each guarantee, in the order in which they are asked."""
_FEW_ROWS, _NATURAL_PART = 1000, 0.6
"""Up to so many probabilities the error is first tested at 0.5, with this part of the risk."""
_POWER = 0.8
"""How often a sample of the size that is advised proves the bound."""
_MOST_RATIO = 1e6
"""Advice on more rows ends where it would name 10^12 times as many."""


def search(
    goals: GroupGoals, sample: CalibrationSample, delta: float, guarantee: str
) -> SearchVerdict:
    """The verdict on all groups together, with their thresholds if it is certified."""
    if guarantee == "mean" and goals.between:
        raise ValueError('guarantee="mean" does not hold between groups. Use guarantee="pac".')
    tail = delta / (len(goals.goals) + bool(goals.between))
    thresholds, found = Thresholds(), []
    for group, goal in goals.goals.items():
        found.append(search_one(goal, sample, tail, guarantee))
        if found[-1].thresholds:
            thresholds[goals.where(group)] = found[-1].thresholds[()]
    statuses = {each.status for each in found}
    proved = {inequality: known for each in found for inequality, known in each.proved.items()}
    if statuses != {CERTIFIED}:
        status = INFEASIBLE if INFEASIBLE in statuses else NOT_CERTIFIED
        notes = tuple(note for each in found for note in each.notes)
        return SearchVerdict(status, Thresholds(), proved, notes)
    if not goals.between:
        return SearchVerdict(CERTIFIED, thresholds, proved)
    between = inequalities(goals.between, sample.prevalence)
    _check_slices(goals, between, sample)
    tested, displayed = proved_together(between, sample, thresholds, tail)
    measure = partial(value_at, sample=sample, thresholds=thresholds)
    notes = tuple(_not_proved(between, tested, displayed, measure, sample, tail))
    proved |= _as_displayed(between, displayed)
    if notes:
        return SearchVerdict(NOT_CERTIFIED, Thresholds(), proved, notes)
    return SearchVerdict(CERTIFIED, thresholds, proved)


def _as_displayed(
    family: Sequence[Inequality], values: Sequence[float], note: str = ""
) -> dict[Inequality, tuple[float | None, str]]:
    """What is displayed of inequalities whose tests were passed."""
    pairs = zip(family, values, strict=True)
    return {each: (each.displayed(value), note) for each, value in pairs}


def search_one(
    goal: CertificateGoal, sample: CalibrationSample, delta: float, guarantee: str
) -> SearchVerdict:
    """The verdict on a goal with one threshold: the best of those that are proved."""
    every = inequalities(goal.bounds, sample.prevalence)
    methods = PROOF_METHODS[guarantee] if sample.amounts is None else ()
    families, rest = _families(every, methods)
    if (goal.objective is not None or len(rest) == len(every)) and sample.amounts is None:
        refuse_trivial(goal, sample.prevalence)
    if guarantee == "mean" and (len(families) > 1 or rest):
        raise ValueError(
            'guarantee="mean" holds for bounds that pull the threshold one way; '
            f'`{goal.text}` does not. Use guarantee="pac".'
        )
    tail = delta / (len(families) + bool(rest))
    proofs = [method.prove(own, sample, tail) for method, own in families]
    proved = {inequality: known for each in proofs for inequality, known in each.proved.items()}
    missing = tuple(note for each in proofs if not each.feasible for note in each.notes)
    if missing:
        return SearchVerdict(INFEASIBLE, Thresholds(), proved, missing)
    ranges = _common_ranges(proofs, sample.lowest_threshold)
    if not ranges:
        return SearchVerdict(NOT_CERTIFIED, Thresholds(), proved, _conflict(proofs))
    ends = [each.end for each in proofs if each.end is not None]
    low = next((end for end in ends if not end.inclusive), None)
    high = next((end for end in ends if end.inclusive), None)
    found = SearchVerdict(CERTIFIED, Thresholds(), proved)
    if rest and (not ends or prefers_low(goal, low, high) is None):
        return _by_split_test(found, rest, goal, sample, tail, ranges)
    threshold = choose_threshold(goal, sample, low, high, ranges)
    if rest:
        return _tested_there(found, rest, sample, tail, threshold)
    return replace(found, thresholds=Thresholds({(): threshold}))


def _families(
    every: Sequence[Inequality], methods: Sequence[ProofMethod]
) -> tuple[list[tuple[ProofMethod, list[Inequality]]], list[Inequality]]:
    """Each family with its method, and the inequalities that no method can prove."""
    families: list[tuple[ProofMethod, list[Inequality]]] = []
    rest = list(every)
    for method in methods:
        own = [each for each in rest if method.takes(each)]
        rest = [each for each in rest if each not in own]
        families += [(method, own)] if own and method.joint else [(method, [each]) for each in own]
    return families, rest


def _common_ranges(proofs: Sequence[Proof], lowest: float) -> list[ThresholdRange]:
    """The thresholds that every family has proved, from ``lowest`` on."""
    common = [ThresholdRange(lowest, math.inf)]
    for proof in proofs:
        pairs = [(a, b) for a in common for b in proof.ranges]
        both = [ThresholdRange(max(a.low, b.low), min(a.high, b.high)) for a, b in pairs]
        common = [each for each in both if each.low <= each.high]
    return common


def _conflict(proofs: Sequence[Proof]) -> tuple[str, ...]:
    """Which families are proved nowhere; if there is none, where each is proved."""
    failed = tuple(note for proof in proofs if not proof.ranges for note in proof.notes)
    if failed:
        return failed
    notes = (note for proof in proofs for note in proof.notes)
    return ("no threshold satisfies all bounds: " + "; ".join(notes),)


def _tested_there(
    found: SearchVerdict,
    rest: list[Inequality],
    sample: CalibrationSample,
    delta: float,
    threshold: ThresholdRule,
) -> SearchVerdict:
    """Test the remaining inequalities at the threshold that the others lead to."""
    thresholds = Thresholds({(): threshold})
    tested, displayed = proved_together(rest, sample, thresholds, delta)
    if not all(each.holds(value) for each, value in zip(rest, tested, strict=True)):
        measure = partial(value_at, sample=sample, thresholds=thresholds)
        notes = tuple(_not_proved(rest, tested, displayed, measure, sample, delta))
        return replace(found, status=NOT_CERTIFIED, notes=notes)
    proved = found.proved | _as_displayed(rest, displayed)
    return replace(found, thresholds=thresholds, proved=proved)


def _by_split_test(
    found: SearchVerdict,
    rest: list[Inequality],
    goal: CertificateGoal,
    sample: CalibrationSample,
    delta: float,
    ranges: Sequence[ThresholdRange],
) -> SearchVerdict:
    """Select a threshold for the remaining inequalities on some rows, test it on the others."""
    others = list(found.proved)
    natural = _natural_threshold(rest, goal, sample) if not others else None
    if natural is not None:
        at = Thresholds({(): ThresholdRule(natural, exact=True)})
        value = proved_at(rest[0], sample, at, _NATURAL_PART * delta)
        if rest[0].holds(value):
            return replace(found, thresholds=at, proved=_as_displayed(rest, [value]))
        delta *= 1 - _NATURAL_PART

    def admissible(threshold: float) -> bool:
        return any(each.low <= threshold <= each.high for each in ranges)

    taken, trials = select_and_test(rest, sample, delta, threshold_merit(goal), others, admissible)
    if taken is None:
        notes = tuple(_of_trial(rest, trials[0], split_rows(sample)[1], delta)) if trials else ()
        notes = notes or (f"no threshold that was tried satisfies all of `{goal.text}`",)
        return replace(found, status=NOT_CERTIFIED, notes=notes)
    note = SPLIT_NOTE
    proved = found.proved | _as_displayed(rest, taken.displayed, note)
    threshold = ThresholdRule(taken.threshold, chosen=True, exact=True)
    return replace(found, thresholds=Thresholds({(): threshold}), proved=proved)


def _of_trial(
    rest: list[Inequality], trial: TestedThreshold, test: CalibrationSample, delta: float
) -> Iterator[str]:
    """What is not proved at the threshold that was tried first."""
    at = Thresholds({(): ThresholdRule(trial.threshold, exact=True)})
    measure = partial(value_at, sample=test, thresholds=at)
    yield from _not_proved(rest, trial.proved, trial.displayed, measure, test, delta)


def _natural_threshold(
    rest: list[Inequality], goal: CertificateGoal, sample: CalibrationSample
) -> float | None:
    """0.5 for the error of few probabilities, of which a quarter are too few to select by.

    It is fixed before the rows are looked at, so all of them test it.
    """
    share = rest[0].share
    alone = len(rest) == 1 and goal.objective is None and sample.amounts is None
    error = share is not None and len({*share.yes, *share.no}) == 4 and share.subset.kind == MIXED
    few = sample.examples <= _FEW_ROWS and sample.order is None
    probabilities = few and sample.scores.min() >= 0 and sample.scores.max() <= 1
    return 0.5 if alone and error and probabilities else None


def _not_proved(
    every: Sequence[Inequality],
    tested: Sequence[float],
    displayed: Sequence[float],
    measure: Callable[[Expression], float | None],
    sample: CalibrationSample,
    delta: float,
) -> Iterator[str]:
    """For each bound that failed what is proved and measured of it, and how many rows it takes.

    Args:
        every: Inequalities.
        tested: The values that they were tested by, with error probability ``delta`` each.
        displayed: The values that are proved of all of them together.
        measure: The value of an expression on the rows, None for 0/0.
        sample: The rows.
        delta: The error probability of a test.
    """
    failed: dict[Bound, list[tuple[float, float]]] = {}
    for each, value, shown in zip(every, tested, displayed, strict=True):
        if not each.holds(value):
            same = each.bound.level == each.source.level or _is_gap(each.source)
            failed.setdefault(each.source, []).append((value, shown) if same else (math.nan,) * 2)
    for bound, values in failed.items():
        side, worst = ("at most", max) if bound.sense == "<=" else ("at least", min)
        proved, shown = (worst(column) for column in zip(*values, strict=True))
        if _is_gap(bound):
            proved, shown = (max(map(abs, column)) for column in zip(*values, strict=True))
        measured = measure(bound.expression)
        if not math.isfinite(shown) or measured is None:  # an inequality of another form, or 0/0
            yield f"`{bound}` is not proved"
            continue
        power = rows_for_power(bound, measured, proved, sample, delta)
        yield f"`{bound}` is not proved: {side} {shown:.4g} is, {measured:.4g} was measured{power}"


def _is_gap(bound: Bound) -> bool:
    """Whether a bound limits the size of a difference."""
    return isinstance(bound.expression, Fold) and bound.expression.kind == "abs"


def rows_for_power(
    bound: Bound, measured: float, proved: float, sample: CalibrationSample, delta: float
) -> str:
    """How many rows prove a bound 80 % of the time, if the truth is as measured, or a gap is 0.

    The distance from what is measured to what is proved, ``z(delta)`` standard errors, shrinks with
    the square root of the number of rows; so does the spread of what is measured.
    """
    spare = bound.level - measured if bound.sense == "<=" else measured - bound.level
    deviate = float(ndtri(1 - delta))
    if deviate <= 0 or not math.isfinite(proved) or (spare <= 0 and not _is_gap(bound)):
        return ""
    truth = f"{measured:.4g} is the true value" if spare > 0 else "the true gap is 0"
    reach = abs(proved - measured) * (1 + float(ndtri(_POWER)) / deviate)
    ratio = reach / (spare if spare > 0 else bound.level)
    if not 1 <= ratio <= _MOST_RATIO:  # these rows would do, or no number that anybody has
        return ""
    factor = ratio**2
    subsets = [s for s in signs(bound.expression, sample.prevalence) if not s.is_prior]
    counted = (count_text(float(f"{factor * sample.size(s):.2g}"), s) for s in subsets)
    rows = " and ".join(counted) if len(subsets) < 3 else f"{factor:.2g} times as many rows"
    return f"; about {rows} would prove it in {100 * _POWER:.0f} % of samples, if {truth}"


def prove_given(
    goals: GroupGoals, sample: CalibrationSample, given: Any, delta: float
) -> SearchVerdict:
    """The verdict at thresholds that were chosen on other data, one or ``{group: threshold}``."""
    thresholds = _read_thresholds(goals, given, sample.precision)
    every = inequalities(goals.bounds, sample.prevalence)
    _check_slices(goals, every, sample)
    tail = delta / count_bounds(every)
    displayed, tested = (
        [proved_at(each, sample, thresholds, risk) for each in every] for risk in (tail, delta)
    )
    measure = partial(value_at, sample=sample, thresholds=thresholds)
    notes = tuple(_not_proved(every, tested, displayed, measure, sample, delta))
    status = NOT_CERTIFIED if notes else CERTIFIED
    return SearchVerdict(status, thresholds, _as_displayed(every, displayed), notes)


def _read_thresholds(goals: GroupGoals, given: Any, precision: str) -> Thresholds:
    if goals.column is None:
        if isinstance(given, Mapping):
            raise TypeError(
                "The goal has one threshold for everyone: pass a number, or a problem that has one "
                'for each group, Problem(..., thresholds="per group").'
            )
        score = _threshold_score(given, precision)
        return Thresholds({(): ThresholdRule(score, exact=True)})
    if not isinstance(given, Mapping):
        raise TypeError(f"There is one threshold for each {goals.column}: {{group: threshold}}.")
    missing = [group for group in goals.goals if group not in given]
    if missing:
        raise ValueError(f"No threshold for {goals.column} = {missing[0]!r}: add it.")
    return Thresholds(
        {
            goals.where(group): ThresholdRule(_threshold_score(given[group], precision), exact=True)
            for group in goals.goals
        }
    )


def _threshold_score(threshold: Any, precision: str) -> float:
    """A threshold as a float; infinities accept everyone or nobody, as the largest number does."""
    if isinstance(threshold, (float, np.floating)) and np.isinf(threshold):
        largest = np.finfo("float32" if precision == "bfloat16" else precision).max
        return -math.inf if threshold < 0 else float(largest)
    return number(threshold, "A threshold")


def _check_slices(
    goals: GroupGoals, every: Sequence[Inequality], sample: CalibrationSample
) -> None:
    """With a threshold per group, bounds are about groups, not about parts of them."""
    if goals.column is None:
        return
    wheres = set(goals.wheres)
    for each in every:
        for subset in signs(each.bound.expression, sample.prevalence):
            if subset.where not in wheres:
                raise ValueError(
                    f"With one threshold per {goals.column}, bounds name values of {goals.column} "
                    f"only; got `{each.source}`."
                )

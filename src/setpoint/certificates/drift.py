"""Does a certificate still hold after deployment? New data against its claims.

The threshold is fixed by now, so counts of new examples are binomial and every test is exact.
With labels, each bound is tested: it is *broken* if the new counts would be this bad with
probability below ``significance`` were the bound still true. Without labels the share of alerts is
compared with that of the calibration sample: given the alerts of both together, the new ones are
hypergeometric; the binomial law used here is wider, so the alarm is never too quick. If another
share of positives was declared, it is compared with what that share makes of the alerts in each
class: it is drift if three bounds, on both classes and on the new alerts, leave a gap. So are
alerts where labels are known: with the share of positives that the new rows have. Rows that all
lie above the threshold are alerts that were reviewed: they say nothing about recall or fpr, nor do
labels of the highest scores alone, and the verdict says that these bounds were not tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share as check_share
from setpoint.axes.arrays import Floats, to_numpy
from setpoint.certificates.clusters import by_cluster
from setpoint.certificates.decisions import rounded
from setpoint.certificates.goals import ACCEPTED, Inequality, goal_to_certify, inequalities
from setpoint.certificates.groups import GroupGoals, split_goal
from setpoint.certificates.proofs import (
    CERTIFIED,
    ThresholdRule,
    Thresholds,
    largest_value,
    value_at,
)
from setpoint.certificates.sample import (
    EVERYONE,
    POSITIVES,
    CalibrationSample,
    Prevalence,
    Subset,
    read_slices,
    sample_of,
    scores_and_precision,
)
from setpoint.certificates.tails import allowed, lower, prob_at_least, prob_at_most, upper
from setpoint.certificates.text import TextRows, html_table, share_text, text_table, value_text
from setpoint.certificates.times import period_names, read_times
from setpoint.problems import Capacity
from setpoint.rates import Bound, Where

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Certificate, Point

OK, UNCHECKED, DRIFT, BROKEN = "ok", "unchecked", "drift", "broken"
"""The verdicts, the worst last."""


@dataclass(frozen=True)
class Finding:
    """One comparison of new data with the certificate."""

    name: str
    expected: str
    measured: float | None
    chance: float | None
    """How likely chance alone is to do this or worse; None if only the alarm was computed."""
    alarm: bool
    refused: bool = False
    """Whether the new data cannot tell."""


@dataclass(frozen=True)
class Check:
    """The verdict on new data: ``"ok"``, ``"drift"`` (of the alerts) or ``"broken"``.

    Or ``"unchecked"`` if labels are those of alerts alone, which do not tell about a bound.

    Examples:
        >>> import numpy as np
        >>> from setpoint import certify
        >>> labels = np.arange(3000) % 3 == 0
        >>> scores = np.random.default_rng(0).normal(size=3000) + 2.5 * labels
        >>> certificate = certify(scores, labels, "fpr <= 0.05")
        >>> certificate.check(scores, labels).verdict, certificate.check(scores + 1, labels).verdict
        ('ok', 'broken')
    """

    verdict: str
    goal: str
    examples: int
    labelled: bool
    significance: float
    findings: tuple[Finding, ...]
    counted: str = "alerts"
    """What is counted without labels."""

    @property
    def exit_code(self) -> int:
        """0 if the verdict is ok, else 1."""
        return 0 if self.verdict == OK else 1

    def __bool__(self) -> bool:
        return self.verdict == OK

    def __str__(self) -> str:
        return text_table(self._headline(), self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._headline(), self._rows(), CERTIFIED if self else BROKEN)

    def _headline(self) -> str:
        words = {
            OK: "the new data fit the certificate"
            if self.labelled
            else f"as many {self.counted} as expected",
            UNCHECKED: "the labels are those of alerts alone, and do not tell",
            DRIFT: f"the share of {self.counted} is not that of the calibration data",
            BROKEN: "the new data contradict the certificate",
        }
        return f"{self.verdict}: {words[self.verdict]} ({self.goal}; {self.examples:,} new rows)"

    def _rows(self) -> TextRows:
        for finding in self.findings:
            if finding.refused:
                yield finding.name, finding.expected
                continue
            known = finding.measured
            seen = "undefined" if known is None else value_text(finding.name, known)
            chance = "" if finding.chance is None else _by_chance(finding.chance)
            alarm = " - ALARM" if finding.alarm else ""
            yield finding.name, f"{seen} now, {finding.expected}{chance}{alarm}"
        rare = share_text(self.significance)
        yield "alarm", f"if chance alone would do this less often than {rare}"


def _by_chance(share: float) -> str:
    """How often chance alone does this, in words."""
    often = "less than 0.01 %" if share < 1e-4 else share_text(share)
    return f"; this or worse by chance alone: {often}"


def check_drift(
    certificate: Certificate,
    scores: Any,
    labels: Any,
    groups: Any,
    significance: float,
    clusters: Any = None,
    amounts: Any = None,
) -> Check:
    """See :meth:`Certificate.check`."""
    level = check_share(significance, "significance", ends=False)
    goals = certified_goals(certificate)
    named = [rate.where for bound in goals.bounds for rate in bound.expression.rates()]
    wheres = tuple(dict.fromkeys([*filter(None, goals.wheres), *filter(None, named)]))
    array = rounded(scores_and_precision(scores)[0], certificate.dtype)
    slices = read_slices(groups, wheres, array, empty=goals.column is not None)
    sample = sample_of(array, certificate.dtype, labels, slices, certificate.prevalence)
    if clusters is not None:
        sample = by_cluster(sample, clusters)
    larger: list[Finding] = []
    if certificate.largest_amount is not None and labels is not None:
        sample, larger = _with_new_amounts(sample, certificate, amounts)
    thresholds = Thresholds(
        {
            goals.where(point.group): ThresholdRule(float(point.threshold))
            for point in certificate.points
            if point.threshold is not None
        }
    )
    reviewed = {w: end for w in sample.wheres if (end := sample.only_alerts(w)) is not None}
    counted = sample if not reviewed else CalibrationSample(array, None, slices, sample.precision)
    points = certificate.points
    if certificate.old_threshold is not None and points[0].positives is None:
        why = "not tested: the certificate rests on alerts, and their share was not known"
        found = [Finding("alerts", why, None, None, False, refused=True)] if labels is None else []
    else:
        found = [_alert_finding(p, goals, counted, level / len(points)) for p in points]
    found += [*_unknown_groups(goals, counted), *larger]
    tests: list[Finding] = []
    if labels is not None:
        there = [bound for bound in goals.bounds if _is_present(bound, sample)]
        every = inequalities(there, sample.prevalence)
        refused = [_not_tested(each, sample, thresholds, reviewed) for each in every]
        found += [finding for finding in refused if finding is not None]
        every = [each for each, no in zip(every, refused, strict=True) if no is None]
        tests = [_test_bound(each, sample, thresholds, level / len(every)) for each in every]
    return verdict_on(certificate.goal, counted.examples, labels is not None, level, tests, found)


def _with_new_amounts(
    sample: CalibrationSample, certificate: Certificate, amounts: Any
) -> tuple[CalibrationSample, list[Finding]]:
    """The rows with their amounts, at most the largest; and a finding if some are larger."""
    from setpoint.certificates.costs import with_amounts

    if amounts is None:
        raise ValueError("The certificate is about costs by amounts: pass amounts= with labels.")
    largest = certificate.largest_amount
    assert largest is not None
    array = to_numpy(amounts, "amounts")
    more = float(np.mean(array > largest)) if len(array) else 0.0
    name = f"amounts above {largest:g}"
    found = [Finding(name, "none, which was assumed", more, None, True)] if more else []
    goal = goal_to_certify(certificate.goal)
    return with_amounts(sample, goal, np.minimum(array, largest), largest), found


def verdict_on(
    goal: str,
    examples: int,
    labelled: bool,
    significance: float,
    tests: list[Finding],
    shares: list[Finding],
    counted: str = "alerts",
) -> Check:
    """Broken if a test of a bound alarms, drift if only a share of alerts does."""
    verdict = UNCHECKED if any(finding.refused for finding in shares) else OK
    verdict = DRIFT if any(finding.alarm for finding in shares) else verdict
    verdict = BROKEN if any(finding.alarm for finding in tests) else verdict
    findings = (*tests, *shares)
    return Check(verdict, goal, examples, labelled, significance, findings, counted)


def certified_goals(certificate: Certificate) -> GroupGoals:
    """The bounds of a certificate, by group if every group has its own threshold."""
    goal = goal_to_certify(certificate.goal)
    if certificate.column is None:
        return GroupGoals(None, {None: goal})
    groups = [point.group for point in certificate.points if point.group is not None]
    inner = bool(certificate.outputs)
    return split_goal(goal, certificate.column, groups, given=True, inner=inner)


def _not_tested(
    inequality: Inequality,
    sample: CalibrationSample,
    thresholds: Thresholds,
    reviewed: dict[Where, float],
) -> Finding | None:
    """A finding for an inequality that labels of alerts do not tell about; None if they do."""
    name, of_alerts = str(inequality.bound), inequality.kind == ACCEPTED
    if not of_alerts and not _rejects_any(sample, thresholds):
        why = "cannot be measured: no row lies below the threshold, so these are alerts, no sample"
        return Finding(name, why, None, None, alarm=not reviewed, refused=bool(reviewed))
    named = {rate.where for rate in inequality.bound.expression.rates()}
    ends = [end for where, end in reviewed.items() if where == () or where in named or () in named]
    if not ends or (of_alerts and all(thresholds[w].value(sample) >= max(ends) for w in named)):
        return None
    why = f"not tested: no labelled row scores below {max(ends):.6g}, so these are reviewed alerts"
    if of_alerts:
        why += ", and some alerts of this threshold have no label. Label them."
    else:
        why += (
            ", no sample. Label a random sample of the others too: `setpoint plan --reviewed "
            f"{max(ends):.6g}`, label_plan."
        )
    return Finding(name, why, None, None, alarm=False, refused=True)


def _rejects_any(sample: CalibrationSample, thresholds: Thresholds) -> bool:
    """Whether any row lies at or below its threshold, or everybody is to be accepted."""
    pairs = [(Subset(where, EVERYONE), rule.value(sample)) for where, rule in thresholds.items()]
    if all(value == -np.inf for _, value in pairs):  # there is nothing to reject
        return True
    return any(sample.above(subset, value) < sample.size(subset) for subset, value in pairs)


def _alert_finding(
    point: Point, goals: GroupGoals, sample: CalibrationSample, significance: float
) -> Finding:
    """Alerts now beside those to be expected, with labels at the share of positives now."""
    subset = Subset(goals.where(point.group), EVERYONE)
    name = "alerts" if point.group is None else f"alerts, {goals.column} = {point.group!r}"
    now = (int(sample.above(subset, point.threshold)), sample.size(subset))
    prior: Prevalence = sample.prevalence
    if sample.labels is not None and point.positives is not None and now[1]:
        prior = sample.size(subset._replace(kind=POSITIVES)) / now[1]
    if prior is None:
        before = (point.alerts, point.examples)
        return compare_shares(name, before, now, significance, sample.labels is None)
    return _declared_finding(name, point, now, prior, significance)


def compare_shares(
    name: str, before: tuple[int, int], now: tuple[int, int], significance: float, alarms: bool
) -> Finding:
    """How often a decision is made now beside how often it was made at calibration."""
    (k, n), (new, size) = before, now
    chance = chance_of_difference(new, size, k, n)
    expected = f"{share_text(k / n)} of {n:,} at calibration" if n else "none at calibration"
    measured = new / size if size else None
    return Finding(name, expected, measured, chance, alarms and chance < significance)


def chance_of_difference(new: int, size: int, k: int, n: int) -> float:
    """How likely ``new`` of ``size`` and ``k`` of ``n`` differ that much if nothing changed."""
    if 2 * (new + k) > size + n:  # the rarer outcome is nearer to the binomial law
        new, k = size - new, n - k
    total, part = new + k, size / (size + n)
    tail = min(float(prob_at_least(new, total, part)), float(prob_at_most(new, total, part)))
    return min(1.0, 2 * tail)


def _declared_finding(
    name: str,
    point: Point,
    now: tuple[int, int],
    prior: float | tuple[float, float],
    significance: float,
) -> Finding:
    """The alerts beside those that the declared share of positives makes expect."""
    positives, hits = point.positives or 0, point.true_alerts or 0
    ends = prior if isinstance(prior, tuple) else (prior,)
    counted = (hits, positives), (point.alerts - hits, point.examples - positives)
    tail, (new, size) = significance / 6, now  # three bounds on either side
    a, b = ([float(end(k, n, tail)) for end in (lower, upper)] for k, n in counted)
    low = min(share * a[0] + (1 - share) * b[0] for share in ends)
    high = max(share * a[1] + (1 - share) * b[1] for share in ends)
    mix = " to ".join(map(share_text, ends))
    least, most = allowed(size, low, tail) + 1, size - allowed(size, 1 - high, tail) - 1
    expected = f"{share_text(least / max(size, 1))} to {share_text(most / max(size, 1))} expected"
    expected += f" where {mix} are positive"
    measured = new / size if size else None
    return Finding(name, expected, measured, None, not least <= new <= most)


def _unknown_groups(goals: GroupGoals, sample: CalibrationSample) -> list[Finding]:
    """Rows of groups that have no threshold: nothing is certified about them."""
    if goals.column is None or not sample.slices:
        return []
    count = len(sample.scores)
    unknown = count - sum(int(sample.slices[where].sum()) for where in goals.wheres)
    if not unknown:
        return []
    name = f"rows of another {goals.column}"
    return [Finding(name, "none: they have no threshold", unknown / count, None, True)]


def _is_present(bound: Bound, sample: CalibrationSample) -> bool:
    """Whether there are rows of every group that a bound is about."""
    named = {rate.where for rate in bound.expression.rates()} - {()}
    return all(sample.slices[where].any() for where in named)


def _test_bound(
    inequality: Inequality, sample: CalibrationSample, thresholds: Thresholds, significance: float
) -> Finding:
    """Test one inequality at its fixed thresholds."""
    bound, share = inequality.bound, inequality.share
    chance = None
    if sample.prices(bound.expression):
        at = thresholds[()].value(sample)
        low, high = sample.cost_bounds(bound.expression, at, significance)
        alarm = low > bound.level if bound.sense == "<=" else high < bound.level
    elif share is None:
        sign = 1.0 if bound.sense == "<=" else -1.0
        opposite = -bound.expression if bound.sense == "<=" else bound.expression
        alarm = -largest_value(opposite, sample, thresholds, significance) > sign * bound.level
    else:
        where = share.subset.where
        count, n = share.counts(sample.table(where, thresholds[where].value(sample)))
        tail = prob_at_least if share.at_most else prob_at_most
        chance = float(tail(count, n, share.limit)) if n else 1.0
        alarm = chance < significance
    value = value_at(bound.expression, sample, thresholds)
    return Finding(str(bound), "certified for all data", value, chance, alarm)


def check_capacity(
    certificate: Certificate, capacity: Capacity, scores: Any, times: Any, significance: float
) -> Check:
    """Compare new periods with the certificate; see :meth:`Certificate.check`."""
    if times is None:
        raise ValueError(f"`{capacity}` goes by time: pass times=, when each new row was measured.")
    array = rounded(scores_and_precision(scores)[0], certificate.dtype)
    periods = period_names(read_times(times, array), capacity.period)
    over = next_alerts(array, periods, capacity.alerts) > certificate.threshold
    count, n = int(over.sum()), len(over)
    chance = float(prob_at_least(count, n, 1 - capacity.share))
    name = f"{capacity.period}s with more than {capacity.alerts:,} alerts"
    expected = f"at most {100 * (1 - capacity.share):.4g} % of {capacity.period}s certified"
    test = Finding(name, expected, count / n, chance, chance < significance)
    return verdict_on(certificate.goal, len(array), True, significance, [test], [])


def next_alerts(scores: NDArray[Any], periods: NDArray[Any], capacity: int) -> Floats:
    """The score of the first alert too many in each period; minus infinity if there are so few."""
    order = np.lexsort((-scores, periods))
    names, starts, sizes = np.unique(periods[order], return_index=True, return_counts=True)
    found = np.full(len(names), -np.inf)
    many = sizes > capacity
    found[many] = scores[order][starts[many] + capacity]
    return found

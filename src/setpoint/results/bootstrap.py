"""Comparisons with uncertainty: means over seeds, paired bootstrap, a run and its baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats, to_numpy
from setpoint.problems import PER_GROUP, Infeasible, Problem
from setpoint.results.measured import GoalParts, Interval, Measured
from setpoint.results.rows import split_row
from setpoint.results.run import RunResult, Scored, Threshold


@dataclass(frozen=True)
class Summary:
    """The mean of some runs with their standard deviation and the standard error of the mean.

    The last two are NaN for a single run: it says nothing about its spread.
    """

    mean: float
    spread: float
    standard_error: float
    count: int


def summarize(values: Sequence[float]) -> Summary:
    """Mean and spread of one value per seed.

    Examples:
        >>> summarize([1.0, 2.0, 3.0])
        Summary(mean=2.0, spread=1.0, standard_error=0.577..., count=3)
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"A summary needs one value per run, at least one; got {values!r}.")
    spread = float(x.std(ddof=1)) if x.size > 1 else float("nan")
    return Summary(float(x.mean()), spread, spread / x.size**0.5, x.size)


def gain(ours: Sequence[float], theirs: Sequence[float], *, higher_is_better: bool) -> Summary:
    """How much better ``ours`` is than ``theirs``, run by run; below zero, it is worse.

    Runs with the same seed share data, batches and initial weights, so their differences vary less
    than the values themselves; the standard error is that of the mean difference.

    Examples:
        >>> gain([28, 29, 27], [38, 35, 36], higher_is_better=False).mean
        8.333...
    """
    if len(ours) != len(theirs):
        raise ValueError(
            f"Paired runs come in pairs; got {len(ours)} of ours and {len(theirs)} of theirs."
        )
    sign = 1.0 if higher_is_better else -1.0
    return summarize([sign * (a - b) for a, b in zip(ours, theirs, strict=True)])


_WORK = 2_000_000
"""Examples looked at in all draws together; more examples need fewer draws."""
_LARGEST = 300_000
"""More examples than this are thinned out: the interval is then wider than it need be."""


@dataclass(frozen=True)
class Paired:
    """The objective of two models and how much better ours is, with a bootstrap interval.

    ``gain`` is positive if ours is better, whichever way the objective goes. ``interval`` is None
    if a tenth of the draws or more left one of the two without a feasible threshold.
    """

    ours: float
    theirs: float
    gain: float
    interval: Interval | None
    draws: int


def paired_bootstrap(
    problem: Problem,
    ours: Any,
    theirs: Any,
    labels: Any,
    *,
    groups: Any = None,
    confidence: float = 0.95,
    draws: int | None = None,
    seed: int = 0,
) -> Paired:
    """Compare the best value of ``problem`` that each model reaches on the same examples.

    Both thresholds are placed anew in every draw, so neither model profits from one that happens
    to be lucky, and the bound is met by both. Drawing the same examples for both keeps what they
    have in common out of the interval. The interval is two-sided.
    """
    generator = np.random.default_rng(seed)
    y = np.asarray(labels) == 1
    sign = 1.0 if problem.maximize else -1.0
    models = (np.asarray(ours), np.asarray(theirs))
    full = [_value(problem, s, y, None, groups) for s in models]
    rows = np.arange(y.size)
    if y.size > _LARGEST:
        rows = np.sort(generator.choice(y.size, _LARGEST, replace=False))
    if draws is None:
        draws = int(np.clip(_WORK // rows.size, 60, 400))
    kept = None if groups is None else np.asarray(groups)[rows]
    values = np.array(
        [
            [_value(problem, s[rows], y[rows], weights, kept) for s in models]
            for weights in (_draw(generator, rows.size) for _ in range(draws))
        ]
    )
    gains = sign * (values[:, 0] - values[:, 1])
    return Paired(full[0], full[1], sign * (full[0] - full[1]), _middle(gains, confidence), draws)


def resampled(
    problem: Problem,
    scores: Any,
    labels: Any,
    *,
    weights: Any = None,
    groups: Any = None,
    draws: int,
    seed: int = 0,
) -> Floats:
    """The value of ``problem`` on ``draws`` bootstrap samples; NaN where it is infeasible.

    The examples are sorted once: every draw then finds its own in order.
    """
    generator = np.random.default_rng(seed)
    s = to_numpy(scores, "scores").reshape(-1)
    order = np.argsort(-s, kind="stable")
    y = to_numpy(labels, "labels").reshape(-1) == 1
    own = np.ones(s.size) if weights is None else to_numpy(weights, "weights").reshape(-1)
    s, y, own, groups = s[order], y[order], own[order], _taken(groups, order)
    values = []
    for _ in range(draws):
        drawn = _draw(generator, s.size)
        rows = np.flatnonzero(drawn)
        counts = own[rows] * drawn[rows]
        values.append(_value(problem, s[rows], y[rows], counts, _taken(groups, rows)))
    return np.array(values)


def _taken(groups: Any, rows: Any) -> Any:
    """Some rows of a column of groups, or of a dict of columns."""
    if isinstance(groups, Mapping):
        return {name: np.asarray(column)[rows] for name, column in groups.items()}
    return None if groups is None else np.asarray(groups)[rows]


def _draw(generator: np.random.Generator, count: int) -> Floats:
    """How often each example is drawn when ``count`` are drawn with replacement."""
    return np.bincount(generator.integers(count, size=count), minlength=count).astype(np.float64)


def _value(problem: Problem, scores: Any, labels: Any, weights: Any, groups: Any) -> float:
    try:
        return float(problem.evaluate(scores, labels, weights=weights, groups=groups))
    except Infeasible:
        return float("nan")
    except ValueError:  # a draw without one of the classes
        if weights is None:
            raise
        return float("nan")


def _middle(gains: Floats, confidence: float) -> Interval | None:
    known = gains[~np.isnan(gains)]
    if known.size <= 0.9 * gains.size:
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class Deployed:
    """What one model does on the judged split with the threshold it would be shipped with."""

    name: str
    threshold: Threshold
    bounds: tuple[Measured, ...]
    fpr: Measured
    recall: Measured
    precision: Measured


@dataclass(frozen=True)
class AgainstBaseline:
    """Both models as deployed, and the paired difference where both meet the bound."""

    ours: Deployed
    theirs: Deployed
    paired: Paired | None


def against_baseline(run: RunResult, goal: GoalParts, confidence: float) -> AgainstBaseline | None:
    """Compare on the judged split; None without a baseline there."""
    if run.baseline is None or run.judged not in run.baseline:
        return None
    mine, other = run.splits[run.judged], run.baseline[run.judged]
    tuned = _tuned(run, goal) if run.baseline_threshold is None else run.baseline_threshold
    paired = None
    both = 0 < mine.labels.sum() < mine.labels.size
    if goal.problem is not None and goal.problem.thresholds != PER_GROUP and both:
        scores = (mine.scores, other.scores, mine.labels)
        given = {"groups": mine.groups, "confidence": confidence}
        paired = paired_bootstrap(goal.problem, *scores, **given)
    return AgainstBaseline(
        _deployed(run.method or "this model", mine, run.threshold, goal, confidence),
        _deployed(run.baseline_name, other, tuned, goal, confidence),
        paired,
    )


def _deployed(
    name: str, split: Scored, threshold: Threshold, goal: GoalParts, confidence: float
) -> Deployed:
    row = split_row(name, split, threshold, goal, confidence)
    return Deployed(name, threshold, row.bounds, row.fpr, row.recall, row.precision)


def _tuned(run: RunResult, goal: GoalParts) -> float | None:
    """The best threshold on data set aside for choosing: what people do without certificates."""
    baseline = run.baseline or {}
    name = next((n for n in ("validation", "calibration", "train") if n in baseline), None)
    if name is None or goal.problem is None or goal.problem.thresholds == PER_GROUP:
        return None
    split = baseline[name]
    try:
        found = goal.problem.choose(split.scores, split.labels, groups=split.groups)
    except Infeasible:
        return None
    return found.thresholds[0] if len(found.thresholds) == 1 else None

"""Two models on the same examples: how much better is one, and could that be luck?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.problems import Infeasible, Problem
from setpoint.results.intervals import Interval

WORK = 2_000_000
"""Examples looked at in all draws together; more examples need fewer draws."""
LARGEST = 300_000
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
    have in common out of the interval. Each end holds with ``confidence`` by itself.
    """
    generator = np.random.default_rng(seed)
    y = np.asarray(labels) == 1
    sign = 1.0 if problem.maximize else -1.0
    models = (np.asarray(ours), np.asarray(theirs))
    full = [_value(problem, s, y, None, groups) for s in models]
    rows = np.arange(y.size)
    if y.size > LARGEST:
        rows = np.sort(generator.choice(y.size, LARGEST, replace=False))
    if draws is None:
        draws = int(np.clip(WORK // rows.size, 60, 400))
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
    problem: Problem, scores: Any, labels: Any, *, groups: Any = None, draws: int, seed: int = 0
) -> NDArray[np.float64]:
    """The value of ``problem`` on ``draws`` bootstrap samples; NaN where it is infeasible."""
    generator = np.random.default_rng(seed)
    s = scores if hasattr(scores, "detach") else np.asarray(scores)
    y = np.asarray(labels.detach().cpu() if hasattr(labels, "detach") else labels).reshape(-1) == 1
    return np.array([_value(problem, s, y, _draw(generator, y.size), groups) for _ in range(draws)])


def _draw(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
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


def _middle(gains: NDArray[np.float64], confidence: float) -> Interval | None:
    known = gains[~np.isnan(gains)]
    if known.size <= 0.9 * gains.size:
        return None
    low, high = np.quantile(known, [1 - confidence, confidence])
    return Interval(float(low), float(high))

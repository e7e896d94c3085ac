"""What limits a model at its operating point, and what to try next.

Three things can be in the way. The model may be too weak for its own training data (capacity):
training for the goal then spends what there is where it counts. It may know its training data much
better than new data (data): no loss adds examples. Or too few examples lie at the operating point
to tell two models apart (noise).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from setpoint._checks import whole
from setpoint.axes.arrays import Floats, to_numpy
from setpoint.axes.axis import DEFAULTS
from setpoint.axes.group_cells import threshold_column
from setpoint.axes.order_statistics import spread
from setpoint.problems import (
    GoalLike,
    Infeasible,
    Problem,
    as_problem,
    refuse_classes,
    refuse_queries,
)
from setpoint.results.bootstrap import resampled

STEP = DEFAULTS["everyone"].step
"""Its slope is the weight of examples by their distance from the threshold, as in training."""
_FEWEST = 10.0
"""With fewer effective examples of a class in the band, a threshold may be due to chance."""
_HARDLY_ANY = 3.0
"""With fewer than this it is, even if the bootstrap finds little noise: it has no spread there."""
_LEARNT = 0.8
"""Of the error on new data, the training data show this share or more: the model is too weak.

Over the cells of benchmarks/operating_points.py gains are larger where it is so, most of all for
linear models; networks gain little either way (docs/when_does_it_pay.md).
"""
Limit = Literal["capacity", "data", "noise", "nothing", "unknown"]


@dataclass(frozen=True)
class Diagnosis:
    """A model at its operating point.

    Attributes:
        value: The goal's metric on the data given.
        noise: Its standard error: how much it would change with other examples.
        positives: Effective number of positives in the band around the threshold (for several
            thresholds, the smallest).
        negatives: The same of negatives.
        train: The metric on the training data, if given.
        limit: ``"capacity"``, ``"data"``, ``"noise"``, ``"nothing"`` where the goal is reached
            without an error, or ``"unknown"`` without training scores.
        advice: What to try next, the most promising first.

    Examples:
        >>> from setpoint import fnr_at_fpr
        >>> y = np.arange(4000) < 400
        >>> s = np.random.default_rng(0).normal(size=4000) + 2 * y
        >>> diagnose(s, y, fnr_at_fpr(0.01), train=(s + y, y)).limit
        'data'
    """

    goal: str
    value: float
    noise: float
    positives: float
    negatives: float
    train: float | None
    limit: Limit
    advice: tuple[str, ...]

    def __str__(self) -> str:
        train = "" if self.train is None else f"; on the training data {self.train:.4g}"
        lines = [
            self.goal,
            f"  value      {self.value:.4g} +- {self.noise:.2g} (standard error){train}",
            f"  threshold  rests on {self.positives:.3g} effective positives and "
            f"{self.negatives:.3g} effective negatives",
            f"  limited by {self.limit}",
            *(f"  - {line}" for line in self.advice),
        ]
        return "\n".join(lines)


def diagnose(
    scores: Any,
    labels: Any,
    problem: GoalLike,
    *,
    train: tuple[Any, Any] | None = None,
    weights: Any = None,
    train_weights: Any = None,
    groups: Any = None,
    train_groups: Any = None,
    draws: int = 100,
    seed: int = 0,
) -> Diagnosis:
    """Say what limits these scores at the operating point of ``problem``.

    Args:
        scores: Of data that the model was not trained on.
        labels: Theirs, 0 or 1.
        problem: What is wanted.
        train: ``(scores, labels)`` of the training data by the same model. Without it, capacity
            and data cannot be told apart.
        weights: Of the examples, at least 0; weight 2 counts an example twice.
        train_weights: The same for the training data.
        groups: For problems with slices, as :meth:`setpoint.Problem.evaluate` takes them.
        train_groups: The same for the training data.
        draws: Bootstrap draws for the noise.
        seed: Of the draws.

    Raises:
        Infeasible: No threshold reaches the bounds on these data.

    Examples:
        >>> from setpoint import fnr_at_fpr
        >>> r = np.random.default_rng(0)
        >>> y = np.arange(4000) < 400
        >>> print(diagnose(r.normal(size=4000) + 2 * y, y, fnr_at_fpr(0.01)))
        minimize fnr subject to fpr <= 0.01
          value      0.6325 +- 0.042 (standard error)
          threshold  rests on 51.7 effective positives and 40 effective negatives
          limited by unknown
          - Pass train=(scores, labels) of the training data: it tells a weak model from few data.
          - Differences under 0.084 between two models are noise here.
    """
    if train is not None and (not isinstance(train, tuple) or len(train) != 2):
        raise TypeError("train must be a pair (scores, labels) of the training data.")
    problem = as_problem(problem, "diagnose")
    refuse_queries(problem.query, "diagnose")
    refuse_classes(problem, "diagnose")
    draws = whole(draws, "draws", least=2)
    options = {"weights": weights, "groups": groups}
    value = problem.evaluate(scores, labels, **options)
    known = resampled(problem, scores, labels, **options, draws=draws, seed=seed)
    noise = float(np.nanstd(known)) if np.isfinite(known).any() else float("nan")
    support = _effective(problem, scores, labels, **options)
    left = _shortfall(problem, value, scores, labels, **options)
    fitted, unlearnt = None, None
    if train is not None:
        options = {"weights": train_weights, "groups": train_groups}
        try:
            fitted = problem.evaluate(*train, **options)
        except Infeasible as error:
            raise Infeasible(f"On the training data: {error}") from None
        unlearnt = _shortfall(problem, fitted, *train, **options)
    limit = _limit(left, unlearnt, noise, min(support))
    tied = len(np.unique(to_numpy(scores, "scores"))) == 1
    advice = _next_steps(limit, noise, support, few=min(support) < _FEWEST, tied=tied)
    return Diagnosis(str(problem), value, noise, *support, fitted, limit, advice)


def _shortfall(problem: Problem, value: float, scores: Any, labels: Any, **options: Any) -> float:
    """How far a value is from the one that the same scores have with all positives on top."""
    s = to_numpy(scores, "scores").reshape(-1).astype(float)
    y = to_numpy(labels, "labels").reshape(-1) == 1
    perfect = 1.0 if problem.maximize else 0.0
    with suppress(Infeasible):  # groups of unequal prevalence: being right may break their bound
        perfect = problem.evaluate(s + y * (s.max() - s.min() + 1), labels, **options)
    return abs(perfect - value)


def _limit(left: float, unlearnt: float | None, noise: float, support: float) -> Limit:
    if support < _FEWEST and not noise < left / 4:
        return "noise"
    if left == 0:
        return "nothing"
    if support < _HARDLY_ANY:
        return "noise"
    if unlearnt is None:
        return "unknown"
    return "capacity" if unlearnt >= _LEARNT * left else "data"


def _next_steps(
    limit: str, noise: float, support: tuple[float, float], *, few: bool, tied: bool
) -> tuple[str, ...]:
    """Advice by the rule of thumb of docs/when_does_it_pay.md, the most promising first."""
    rarer = "positives" if support[0] <= support[1] else "negatives"
    first = []
    if tied:
        first.append("All scores are the same: the model has learnt nothing, or is saturated.")
    elif few:
        first.append(
            f"Too few {rarer} at the operating point ({min(support):.2g} effective ones): label "
            "more of them, or choose a less extreme target."
        )
    return (*first, *_by_limit(limit, noise))


def _by_limit(limit: str, noise: float) -> tuple[str, ...]:
    told_apart = f"Differences under {2 * noise:.2g} between two models are noise here."
    if limit == "capacity":
        return (
            "Try Implicit(problem, steps=...), and compare on validation rows: training data are "
            "fitted no better than new data at this point, so the model may be too weak for the "
            "whole curve. (If it has learnt all there is, no loss helps.)",
            "A larger model, or better features, would help any loss.",
            told_apart,
        )
    if limit == "data":
        return (
            "More examples, augmentation or a smaller model: the training data are fitted much "
            "better than new data, and no loss adds information.",
            "Averaged weights and early stopping on the goal's own metric cost nothing. Training "
            "for the goal is then level with cross-entropy, not ahead.",
            told_apart,
        )
    if limit == "nothing":
        return (
            "Nothing is left to gain on these data: every loss is as good. Judge by a stricter "
            "target, or by harder or more examples.",
        )
    if limit == "noise":
        return (told_apart,)
    return (
        "Pass train=(scores, labels) of the training data: it tells a weak model from few data.",
        told_apart,
    )


def _effective(
    problem: Problem, scores: Any, labels: Any, weights: Any, groups: Any
) -> tuple[float, float]:
    """Effective positives and negatives in the band around the threshold.

    ``(sum k)^2 / sum k^2`` of the weighted kernel there; with several thresholds, the smallest.
    """
    s = to_numpy(scores, "scores").reshape(-1).astype(float)
    y = to_numpy(labels, "labels").reshape(-1) == 1
    own = np.ones(s.size) if weights is None else to_numpy(weights, "weights").reshape(-1)
    thresholds = problem.choose(scores, labels, weights=weights, groups=groups).thresholds
    width = float(STEP.width_of(spread(s[None], None if weights is None else own[None])[0])) or 1.0
    smallest = [np.inf, np.inf]
    for rows, threshold in _cut(problem, thresholds, groups, s):
        kernel = own[rows] * STEP.slope(np.clip((s[rows] - threshold) / width, -300, 300))
        for place, mine in enumerate((kernel[y[rows]], kernel[~y[rows]])):
            total = float((mine**2).sum())
            found = float(mine.sum()) ** 2 / total if total > 0 else 0.0
            smallest[place] = min(smallest[place], found)
    return smallest[0], smallest[1]


def _cut(problem: Problem, thresholds: Any, groups: Any, s: Floats) -> Iterator[tuple[Any, float]]:
    """Every threshold with the rows that are compared with it."""
    if not isinstance(thresholds, Mapping):
        yield from ((slice(None), threshold) for threshold in thresholds)
        return
    column = threshold_column(problem, thresholds, groups, s)
    yield from ((column == threshold, threshold) for threshold in np.unique(column))

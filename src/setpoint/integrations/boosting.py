"""Gradient boosting for a problem: an objective that XGBoost and LightGBM call alike.

Boosting sees the scores of all training rows in every round, so the threshold is exact. A tree
needs a gradient and a positive diagonal curvature for each row. The gradient is that of
:class:`setpoint.Implicit`, mixed with log-loss. Its curvature has both signs, so we bound it.

With thresholds, widths ``w`` and multipliers frozen, the loss is a sum of ``b_i step(u_i)``,
``u_i = (s_i - t) / w``, and ``|g_i| = |b_i| k(u_i) / w`` with the logistic kernel ``k``. Since
``|k'| <= k``, a move of ``d`` changes ``k`` by a factor of ``exp(|d| / w)`` at most, so for moves
up to ``r w`` the second derivative ``b_i k'(u_i) / w^2`` is at most ``exp(r) |g_i| / w``. Newton's
step with it, ``-sum g / sum h``, is never longer than ``exp(-r) w``: with ``r = exp(-r)`` it stays
where the bound holds, whatever the leaf. So ``h_i = |g_i| / (r w)``, ``r`` = 0.567 (the omega
constant), and no tree raises the frozen loss, at any learning rate up to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from setpoint._checks import positive, share, whole
from setpoint._extras import optional
from setpoint.axes import read_sample, spread
from setpoint.axes.arrays import Floats
from setpoint.problems import GoalLike, as_problem, merit
from setpoint.solvers import Implicit
from setpoint.steps import Sigmoid

Library = Literal["lightgbm", "xgboost"]
_LIBRARIES = ("lightgbm", "xgboost")

REACH = 0.5671432904097838
"""The root of ``r = exp(-r)``: how far a Newton step may go, in widths of the step."""
GOAL_KEY = "setpoint/goal"
"""What the goal's value is called in the history of a booster."""
_NO_QUERY = object()
_SMALLEST = 1e-16  # of a curvature: both libraries divide by sums of it


class Objective:
    """The gradient and curvature of a problem for boosting with XGBoost or LightGBM.

    ``xgboost.train(params, data, obj=objective)``, ``lightgbm.train({"objective": objective,
    **params}, data)``, ``XGBClassifier(objective=objective)`` and ``LGBMClassifier(objective=
    objective)``; :func:`boost` also does the warm start. Scores are raw margins.

    Args:
        problem: What is wanted; shared thresholds.
        main_share: The share of log-loss in the gradient, by the sum of its absolute values.
        width: The width of the soft step, as a share of the spread of the scores.
        groups: For problems with slices, a column or a dict of columns of the training rows.

    Examples:
        >>> from setpoint import fnr_at_fpr
        >>> labels, scores = np.arange(100) % 5 == 0, np.linspace(-1, 1, 100)
        >>> gradient, curvature = Objective(fnr_at_fpr(0.1)).derivatives(scores, labels)
        >>> bool((gradient[labels] < 0).all()), bool((curvature > 0).all())
        (True, True)
    """

    def __init__(
        self,
        problem: GoalLike,
        *,
        main_share: float = 0.3,
        width: float = 0.125,
        groups: Any = None,
    ) -> None:
        Implicit(problem, share=0.0)  # says what is wrong with the problem
        self.problem = as_problem(problem, "Objective")
        self.main_share = share(main_share, "main_share")
        self.width = positive(width, "width")
        self.groups = groups

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
        """What both libraries call in every round; see :func:`_read_round` for the arguments."""
        return self.derivatives(*_read_round(first, second, sample_weight))

    def derivatives(
        self, scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any] | None = None
    ) -> tuple[Floats, Floats]:
        """The gradient and the bound of its slope for each row.

        Args:
            scores: Raw margins ``[n]``.
            labels: 0 or 1 for each.
            weights: Optional; an empty array is none, as in XGBoost.
        """
        s, y = (np.asarray(x, dtype=np.float64).reshape(-1) for x in (scores, labels))
        if weights is None or len(weights) == 0:
            weights = np.ones_like(s)
        counted = np.asarray(weights, dtype=np.float64)
        chance = expit(s)
        main, main_slope = counted * (chance - y), counted * chance * (1 - chance)
        goal, width = self._goal(s, y, counted)
        total = np.abs(goal).sum()
        factor = (1 - self.main_share) * np.abs(main).sum() / (total or 1.0)
        gradient = self.main_share * main + factor * goal
        curvature = self.main_share * main_slope + factor * np.abs(goal) / (REACH * width)
        return gradient, np.maximum(curvature, _SMALLEST)

    def _goal(self, s: Floats, y: Floats, weights: Floats) -> tuple[Floats, float]:
        """The bare implicit gradient on all rows, and the width of its step."""
        scores = torch.from_numpy(s).requires_grad_()
        labels, counted = torch.from_numpy(y), torch.from_numpy(weights)
        slices = self.problem.slices
        sample = read_sample(slices, scores, labels, counted, self.groups)
        width = self.width * float(spread(sample.scores, sample.weights)[0]) or 1.0
        criterion = Implicit(self.problem, share=0.0, step=Sigmoid(temperature=width), widening=1)
        criterion(scores, labels, weights=counted, groups=self.groups).backward()
        assert scores.grad is not None
        return scores.grad.numpy(), width

    @property
    def metric(self) -> _Metric:
        """The goal's value on a data set; lower is better.

        For ``eval_metric`` of ``XGBClassifier`` and ``LGBMClassifier``, ``custom_metric`` of
        ``xgboost.train`` and ``feval`` of ``lightgbm.train``. The best threshold of these very
        data; where none reaches the targets, the worst share, or infinity if the objective is no
        share.
        """
        return _Metric(self)

    def feval(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[str, float, bool]:
        """For LightGBM's ``feval``: name, value, and False, as lower is better."""
        return GOAL_KEY, self._value(first, second, sample_weight), False

    def _value(self, first: Any, second: Any, sample_weight: Any) -> float:
        if self.groups is not None:
            raise ValueError(
                "A data set does not say which groups its rows are of, so goals about groups have "
                "no metric here. Leave it out, and take problem.evaluate(scores, labels, "
                "groups=...) after training."
            )
        scores, labels, weights = _read_round(first, second, sample_weight)
        given = None if weights is None or len(weights) == 0 else weights
        return -merit(self.problem, scores, labels, weights=given)


class _Metric:
    """A goal's metric, under the name by which ``XGBClassifier`` records it."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.__name__ = objective, GOAL_KEY

    def __call__(
        self, first: Any, second: Any, sample_weight: Any = None, query: Any = _NO_QUERY
    ) -> Any:
        """What the caller takes.

        LightGBM (its estimators pass four columns): a name, a value and a direction;
        ``xgboost.train``: a name and a value; estimators of XGBoost: the value alone.
        """
        value = self.objective._value(first, second, sample_weight)
        if query is not _NO_QUERY or type(second).__module__.startswith("lightgbm"):
            return GOAL_KEY, value, False
        return (GOAL_KEY, value) if hasattr(second, "get_label") else value


def _read_round(first: Any, second: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Scores, labels and weights of a round.

    The ``train`` functions pass the scores and a data set, the scikit-learn estimators of both
    libraries the labels, the scores and the weights.
    """
    if hasattr(second, "get_label"):
        return first, second.get_label(), second.get_weight()
    return second, first, weights


def boost(
    objective: Objective,
    x: Any,
    labels: Any,
    *,
    library: Library,
    rounds: int = 200,
    warm: float = 0.5,
    rate: float = 1.0,
    params: Mapping[str, Any] | None = None,
    weights: Any = None,
) -> Any:
    """Train ``rounds`` trees: a share of ``warm`` for log-loss, the others for the goal.

    At the start all scores are equal and there is no threshold to move, so log-loss comes first.

    Args:
        objective: What the later trees are trained for.
        x: The training rows, in a form the library takes.
        labels: 0 or 1 for each.
        library: ``"lightgbm"`` or ``"xgboost"``.
        rounds: How many trees in all.
        warm: Which share of them log-loss gets; 1 is plain log-loss.
        rate: The learning rate of the goal's trees, at most 1: their steps are damped already by
            the bound of the curvature. That of log-loss is the one in ``params``.
        params: The library's own parameters, without an objective.
        weights: Optional, one for each row.

    Returns:
        The library's own booster, with all trees in it (see `raw_scores`).

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(500, 3))
        >>> objective = Objective("minimize fnr subject to fpr <= 0.1")
        >>> booster = boost(objective, x, x[:, 0] > 1, library="lightgbm", rounds=10)
        >>> booster.num_trees()
        10
    """
    if library not in _LIBRARIES:
        raise ValueError(f"library must be one of {', '.join(_LIBRARIES)}; got {library!r}.")
    given = dict(params or {})
    if "objective" in given:
        raise ValueError("Leave the objective out of params: log-loss first, then the one given.")
    count = whole(rounds, "rounds", least=1)
    first = round(share(warm, "warm") * count)
    later = {**given, "learning_rate": positive(share(rate, "rate"), "rate")}
    for other in ("eta", "shrinkage_rate"):
        later.pop(other, None)
    trees = (first, count - first)
    if library == "lightgbm":
        return _lightgbm(objective, x, labels, weights, (given, later), trees)
    return _xgboost(objective, x, labels, weights, (given, later), trees)


def raw_scores(booster: Any, x: Any) -> NDArray[np.floating[Any]]:
    """The margins of rows: what thresholds are about, for boosters of either library.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(500, 3))
        >>> objective = Objective("minimize fnr subject to fpr <= 0.1")
        >>> booster = boost(objective, x, x[:, 0] > 1, library="lightgbm", rounds=10)
        >>> raw_scores(booster, x).shape
        (500,)
    """
    if type(booster).__module__.startswith("xgboost"):
        from xgboost import DMatrix

        return np.asarray(booster.predict(DMatrix(x), output_margin=True))
    return np.asarray(booster.predict(x, raw_score=True))


_Stages = tuple[dict[str, Any], dict[str, Any]]
"""Parameters of log-loss, then of the goal."""


def _lightgbm(
    objective: Objective, x: Any, y: Any, weights: Any, stages: _Stages, trees: tuple[int, int]
) -> Any:
    lightgbm = optional("lightgbm")
    data, booster = lightgbm.Dataset(x, y, weight=weights, free_raw_data=False), None
    for params, goal, count in zip(stages, ("binary", objective), trees, strict=True):
        if count:
            given = {"verbosity": -1, **params, "objective": goal}
            booster = lightgbm.train(given, data, count, init_model=booster)
    return booster


def _xgboost(
    objective: Objective, x: Any, y: Any, weights: Any, stages: _Stages, trees: tuple[int, int]
) -> Any:
    xgboost = optional("xgboost")
    data, booster = xgboost.DMatrix(x, label=y, weight=weights), None
    for params, goal, count in zip(stages, (None, objective), trees, strict=True):
        if count:
            given = {**params, "objective": "binary:logistic"}
            booster = xgboost.train(given, data, count, obj=goal, xgb_model=booster)
    return booster

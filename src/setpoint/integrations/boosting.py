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
from setpoint._extras import install_advice
from setpoint.axes import read_sample, spread
from setpoint.axes.arrays import Floats
from setpoint.problems import Problem, merit
from setpoint.solvers import Implicit
from setpoint.steps import Sigmoid

Library = Literal["lightgbm", "xgboost"]
_LIBRARIES = ("lightgbm", "xgboost")

REACH = 0.5671432904097838
"""The root of ``r = exp(-r)``: how far a Newton step may go, in widths of the step."""
_SMALLEST = 1e-16  # of a curvature: both libraries divide by sums of it


class Objective:
    """The gradient and curvature of a problem for boosting with XGBoost or LightGBM.

    ``xgboost.train(params, data, obj=objective)`` and ``lightgbm.train({"objective": objective,
    **params}, data)``; :func:`boost` also does the warm start. Scores are raw margins.

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
        problem: Problem,
        *,
        main_share: float = 0.3,
        width: float = 0.125,
        groups: Any = None,
    ) -> None:
        Implicit(problem, share=0.0)  # says what is wrong with the problem
        self.problem = problem
        self.main_share = share(main_share, "main_share")
        self.width = positive(width, "width")
        self.groups = groups

    def __call__(self, scores: NDArray[Any], data: Any) -> tuple[Floats, Floats]:
        """What both libraries call in every round, with their own data set."""
        return self.derivatives(scores, data.get_label(), data.get_weight())

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

    def metric(self, scores: NDArray[Any], data: Any) -> tuple[str, float]:
        """The goal's value on a data set, for XGBoost's ``custom_metric``; lower is better.

        The best threshold of these very data; where none reaches the targets, the worst share, or
        infinity if the objective is no share.
        """
        if self.groups is not None:
            raise ValueError(
                "A data set does not say which groups its rows are of, so goals about groups have "
                "no metric here. Leave it out, and take problem.evaluate(scores, labels, "
                "groups=...) after training."
            )
        weights = data.get_weight()
        given = None if weights is None or len(weights) == 0 else weights
        return "setpoint", -merit(self.problem, scores, data.get_label(), weights=given)

    def feval(self, scores: NDArray[Any], data: Any) -> tuple[str, float, bool]:
        """The same for LightGBM's ``feval``."""
        return (*self.metric(scores, data), False)


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
        The library's own booster, with all trees in it; see :func:`raw_scores`.
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
    train = _lightgbm if library == "lightgbm" else _xgboost
    return train(objective, x, labels, weights, (given, later), (first, count - first))


def raw_scores(booster: Any, x: Any) -> NDArray[np.floating[Any]]:
    """The margins of rows: what thresholds are about, for boosters of either library."""
    if type(booster).__module__.startswith("xgboost"):
        from xgboost import DMatrix

        return np.asarray(booster.predict(DMatrix(x), output_margin=True))
    return np.asarray(booster.predict(x, raw_score=True))


def _lightgbm(
    objective: Objective,
    x: Any,
    y: Any,
    weights: Any,
    params: tuple[dict[str, Any], dict[str, Any]],
    trees: tuple[int, int],
) -> Any:
    try:
        import lightgbm
    except ModuleNotFoundError as missing:
        raise install_advice(missing) from None
    data = lightgbm.Dataset(x, y, weight=weights, free_raw_data=False)
    first, later = ({"verbosity": -1, **given} for given in params)
    booster = None
    if trees[0]:
        booster = lightgbm.train({**first, "objective": "binary"}, data, trees[0])
    if trees[1]:
        goal = {**later, "objective": objective}
        booster = lightgbm.train(goal, data, trees[1], init_model=booster)
    return booster


def _xgboost(
    objective: Objective,
    x: Any,
    y: Any,
    weights: Any,
    params: tuple[dict[str, Any], dict[str, Any]],
    trees: tuple[int, int],
) -> Any:
    try:
        import xgboost
    except ModuleNotFoundError as missing:
        raise install_advice(missing) from None
    data = xgboost.DMatrix(x, label=y, weight=weights)
    first, later = ({**given, "objective": "binary:logistic"} for given in params)
    booster = None
    if trees[0]:
        booster = xgboost.train(first, data, trees[0])
    if trees[1]:
        booster = xgboost.train(later, data, trees[1], obj=objective, xgb_model=booster)
    return booster

"""Trees for log-loss first, then trees for the goal: scores at zero have no threshold to move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import positive, share, whole
from setpoint.integrations.boosting.objective import Objective
from setpoint.integrations.extras import advice

Library = Literal["lightgbm", "xgboost"]
LIBRARIES = ("lightgbm", "xgboost")


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
    if library not in LIBRARIES:
        raise ValueError(f"library must be one of {', '.join(LIBRARIES)}; got {library!r}.")
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
        raise advice(missing, "boosting") from None
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
        raise advice(missing, "boosting") from None
    data = xgboost.DMatrix(x, label=y, weight=weights)
    first, later = ({**given, "objective": "binary:logistic"} for given in params)
    booster = None
    if trees[0]:
        booster = xgboost.train(first, data, trees[0])
    if trees[1]:
        booster = xgboost.train(later, data, trees[1], obj=objective, xgb_model=booster)
    return booster

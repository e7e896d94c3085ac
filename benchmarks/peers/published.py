"""The methods of Table 5 and their grids, made known to the judge of operating_points.py."""

from typing import Any

from benchmarks.peers.soft import mean_difference, soft_precision_and_recall
from benchmarks.points.goals import GOALS
from benchmarks.points.methods import READINGS, RUNS, Column, Reading, Run
from setpoint import Lagrangian, pr_auc

GOAL = "PR-AUC, five recalls"
DUALS = (0.1, 1.0, 10.0)  # the paper's, for TFCO
TFCO_RATES = (0.01, 0.1, 1.0)
RATES = (0.01, 0.1)  # for what the paper does not have
UNTUNED = 0.03  # the rate that Classifier takes for linear models

TITLES = {
    "cross-entropy": "cross-entropy, 4 rates",
    "weighted": "weighted cross-entropy",
    "focal, averaged": "focal, averaged weights",
    "default": "**`Implicit`, untuned**",
    "paper's grid": "ICO as published, 9 settings",
    "Lagrangian": "`Lagrangian`, 3 settings",
    "proxy-Lagrangian": "`Lagrangian(proxy=True)`, 3 settings",
    "TFCO": "TFCO 0.2, 9 settings",
    "Cooper": "Cooper 1.0.1, 3 settings",
    "LibAUC AP": "LibAUC 2.0.1 AP + SOAP, 2 rates",
    "soft F4": "soft F4 by hand",
    "mean difference": "mean difference",
}
"""The order of the table. Without a grid of the paper's a method has two or three settings."""


def _elsewhere(*_: Any) -> Any:
    raise NotImplementedError("This method is trained by its own learner, not in a stack.")


def register() -> None:
    """Add what operating_points.py does not have."""
    GOALS[GOAL] = pr_auc(recall=(0.95, 1.0), points=5)
    by_dual = tuple({"dual_rate": dual} for dual in DUALS)
    RUNS["Lagrangian"] = Run(lambda g, *_: Lagrangian(g, **_[-1]), direct=True, settings=by_dual)
    RUNS["proxy-Lagrangian"] = Run(
        lambda g, *_: Lagrangian(g, proxy=True, **_[-1]), direct=True, settings=by_dual
    )
    RUNS["mean difference"] = Run(lambda *_: mean_difference)
    RUNS["soft F4"] = Run(lambda *_: soft_precision_and_recall)
    RUNS["TFCO"] = Run(_elsewhere, settings=tuple({"dual_scale": d} for d in DUALS), direct=True)
    RUNS["Cooper"] = Run(_elsewhere, settings=by_dual, direct=True)
    RUNS["LibAUC AP"] = Run(_elsewhere, direct=True)
    for name in TITLES:
        if name not in READINGS:
            READINGS[name] = Reading(name, averaged=False)


def columns(goal: str = GOAL, *, few: bool = False) -> dict[str, list[Column]]:
    """What is trained in stacks, by optimizer; ``few``: one setting of each published method."""
    rates = (0.1,) if few else RATES
    plain = [Column("cross-entropy", None, 0, rate) for rate in (0.001, 0.01, 0.1, 1.0)]
    for name in ("weighted", "focal", "mean difference", "soft F4"):
        plain += [Column(name, None, 0, rate) for rate in rates]
    direct = [Column("default", goal, 0, UNTUNED)]
    for name in ("Lagrangian", "proxy-Lagrangian"):
        settings = (1,) if few else range(len(DUALS))
        direct += [Column(name, goal, setting, 0.1) for setting in settings]
    grid = range(len(RUNS["paper's grid"].settings))
    theirs = [Column("paper's grid", goal, i, 0.1) for i in ((6,) if few else grid)]
    return {"adam": [*plain, *direct], "adagrad": theirs}

"""Train a classifier for the operating point it is judged by.

The front door: public names only, each imported from its room on first use, so that
``import setpoint`` costs nothing and the torch-free rooms stay torch-free.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from setpoint.rates import (
        FN as FN,
        FP as FP,
        TN as TN,
        TP as TP,
        Bound as Bound,
        Combination as Combination,
        Range as Range,
        Rate as Rate,
        Setpoint as Setpoint,
        accuracy as accuracy,
        alerts as alerts,
        balanced_error as balanced_error,
        coverage as coverage,
        error as error,
        f_score as f_score,
        fnr as fnr,
        fpr as fpr,
        jaccard as jaccard,
        lift as lift,
        maximum as maximum,
        minimum as minimum,
        npv as npv,
        precision as precision,
        prevalence as prevalence,
        recall as recall,
        tnr as tnr,
        tpr as tpr,
    )
    from setpoint.problems import (
        Infeasible as Infeasible,
        Problem as Problem,
        fnr_at_fpr as fnr_at_fpr,
        pr_auc as pr_auc,
        precision_at_k as precision_at_k,
        precision_at_recall as precision_at_recall,
        recall_at_precision as recall_at_precision,
        roc_auc as roc_auc,
        tpr_at_fpr as tpr_at_fpr,
    )
    from setpoint.steps import (
        Hard as Hard,
        Hinge as Hinge,
        Sigmoid as Sigmoid,
        Softplus as Softplus,
    )
    from setpoint.layers import (
        hold as hold,
    )
    from setpoint.solvers import (
        Implicit as Implicit,
    )

_ROOMS = {
    name: room
    for room, names in {
        "rates": "FN FP TN TP Bound Combination Range Rate Setpoint accuracy alerts balanced_error coverage error f_score fnr fpr jaccard lift maximum minimum npv precision prevalence recall tnr tpr",
        "problems": "Infeasible Problem fnr_at_fpr pr_auc precision_at_k precision_at_recall recall_at_precision roc_auc tpr_at_fpr",
        "steps": "Hard Hinge Sigmoid Softplus",
        "layers": "hold",
        "solvers": "Implicit",
    }.items()
    for name in names.split()
}

__all__ = ["__version__", *_ROOMS]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'setpoint' has no attribute {name!r}")
    value = getattr(import_module(f"setpoint.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

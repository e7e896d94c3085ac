"""Train a classifier for the operating point it is judged by.

The front door: public names only, each imported from its room on first use, so that
``import setpoint`` costs nothing and the torch-free rooms stay torch-free.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from setpoint._extras import install_advice
from setpoint._version import __version__ as __version__

if TYPE_CHECKING:
    from setpoint.certificates import Certificate as Certificate
    from setpoint.certificates import certify as certify
    from setpoint.comparison import Comparison as Comparison
    from setpoint.comparison import compare as compare
    from setpoint.estimators import (
        CertifiedThreshold as CertifiedThreshold,
    )
    from setpoint.estimators import (
        Classifier as Classifier,
    )
    from setpoint.estimators import (
        NotCertifiedWarning as NotCertifiedWarning,
    )
    from setpoint.estimators import Ranker as Ranker
    from setpoint.export import Decision as Decision
    from setpoint.fairness import bounded_group_loss as bounded_group_loss
    from setpoint.fairness import demographic_parity as demographic_parity
    from setpoint.fairness import each as each
    from setpoint.fairness import equal_opportunity as equal_opportunity
    from setpoint.fairness import equalized_odds as equalized_odds
    from setpoint.fairness import four_fifths as four_fifths
    from setpoint.fairness import gap as gap
    from setpoint.fairness import largest as largest
    from setpoint.fairness import predictive_parity as predictive_parity
    from setpoint.fairness import ratio as ratio
    from setpoint.fairness import smallest as smallest
    from setpoint.layers import (
        hold as hold,
    )
    from setpoint.pareto import Front as Front
    from setpoint.pareto import pareto_front as pareto_front
    from setpoint.problems import (
        Infeasible as Infeasible,
    )
    from setpoint.problems import (
        Problem as Problem,
    )
    from setpoint.problems import (
        fnr_at_fpr as fnr_at_fpr,
    )
    from setpoint.problems import (
        pr_auc as pr_auc,
    )
    from setpoint.problems import (
        precision_at_k as precision_at_k,
    )
    from setpoint.problems import (
        precision_at_recall as precision_at_recall,
    )
    from setpoint.problems import (
        recall_at_precision as recall_at_precision,
    )
    from setpoint.problems import (
        roc_auc as roc_auc,
    )
    from setpoint.problems import (
        tpr_at_fpr as tpr_at_fpr,
    )
    from setpoint.rates import (
        FN as FN,
    )
    from setpoint.rates import (
        FP as FP,
    )
    from setpoint.rates import (
        TN as TN,
    )
    from setpoint.rates import (
        TP as TP,
    )
    from setpoint.rates import (
        Bound as Bound,
    )
    from setpoint.rates import (
        Combination as Combination,
    )
    from setpoint.rates import (
        Range as Range,
    )
    from setpoint.rates import (
        Rate as Rate,
    )
    from setpoint.rates import (
        Setpoint as Setpoint,
    )
    from setpoint.rates import (
        accuracy as accuracy,
    )
    from setpoint.rates import (
        alerts as alerts,
    )
    from setpoint.rates import (
        auc_mu as auc_mu,
    )
    from setpoint.rates import (
        balanced_error as balanced_error,
    )
    from setpoint.rates import (
        cost as cost,
    )
    from setpoint.rates import (
        coverage as coverage,
    )
    from setpoint.rates import (
        error as error,
    )
    from setpoint.rates import (
        f_score as f_score,
    )
    from setpoint.rates import (
        fnr as fnr,
    )
    from setpoint.rates import (
        fpr as fpr,
    )
    from setpoint.rates import (
        highest as highest,
    )
    from setpoint.rates import (
        jaccard as jaccard,
    )
    from setpoint.rates import (
        lift as lift,
    )
    from setpoint.rates import (
        lowest as lowest,
    )
    from setpoint.rates import (
        macro as macro,
    )
    from setpoint.rates import (
        maximum as maximum,
    )
    from setpoint.rates import (
        minimum as minimum,
    )
    from setpoint.rates import (
        npv as npv,
    )
    from setpoint.rates import (
        one_vs_all_auc as one_vs_all_auc,
    )
    from setpoint.rates import (
        precision as precision,
    )
    from setpoint.rates import (
        prevalence as prevalence,
    )
    from setpoint.rates import (
        recall as recall,
    )
    from setpoint.rates import (
        tnr as tnr,
    )
    from setpoint.rates import (
        top_k as top_k,
    )
    from setpoint.rates import (
        tpr as tpr,
    )
    from setpoint.results import Diagnosis as Diagnosis
    from setpoint.results import diagnose as diagnose
    from setpoint.solvers import Barrier as Barrier
    from setpoint.solvers import CrossEntropy as CrossEntropy
    from setpoint.solvers import GlobalBatch as GlobalBatch
    from setpoint.solvers import (
        Implicit as Implicit,
    )
    from setpoint.solvers import Iterates as Iterates
    from setpoint.solvers import Lagrangian as Lagrangian
    from setpoint.solvers import LastLayer as LastLayer
    from setpoint.solvers import Pairwise as Pairwise
    from setpoint.solvers import Penalty as Penalty
    from setpoint.solvers import Program as Program
    from setpoint.solvers import RateBarrier as RateBarrier
    from setpoint.solvers import Split as Split
    from setpoint.solvers import at_least as at_least
    from setpoint.solvers import at_most as at_most
    from setpoint.solvers import equal_to as equal_to
    from setpoint.steps import (
        Hard as Hard,
    )
    from setpoint.steps import (
        Hinge as Hinge,
    )
    from setpoint.steps import (
        Sigmoid as Sigmoid,
    )
    from setpoint.steps import (
        Softplus as Softplus,
    )
    from setpoint.train import Averaged as Averaged
    from setpoint.train import Stratified as Stratified
    from setpoint.train import Validation as Validation
    from setpoint.train import WholeQueries as WholeQueries
    from setpoint.train import fit as fit
    from setpoint.train.retargeting import retarget as retarget

_NAMES = {
    "certificates": "Certificate certify",
    "comparison": "Comparison compare",
    "estimators": "CertifiedThreshold Classifier NotCertifiedWarning Ranker",
    "export": "Decision",
    "fairness": """
        bounded_group_loss demographic_parity each equal_opportunity equalized_odds four_fifths gap
        largest predictive_parity ratio smallest
    """,
    "layers": "hold",
    "pareto": "Front pareto_front",
    "problems": """
        Infeasible Problem fnr_at_fpr pr_auc precision_at_k precision_at_recall
        recall_at_precision roc_auc tpr_at_fpr
    """,
    "rates": """
        FN FP TN TP Bound Combination Range Rate Setpoint accuracy alerts auc_mu balanced_error cost
        coverage error f_score fnr fpr highest jaccard lift lowest macro maximum minimum npv
        one_vs_all_auc precision prevalence recall tnr top_k tpr
    """,
    "results": "Diagnosis diagnose",
    "solvers": """
        Barrier CrossEntropy GlobalBatch Implicit Iterates Lagrangian LastLayer
        Pairwise Penalty Program RateBarrier Split at_least at_most equal_to
    """,
    "steps": "Hard Hinge Sigmoid Softplus",
    "train": "Averaged Stratified Validation WholeQueries fit",
    "train.retargeting": "retarget",
}
_ROOMS = {name: room for room, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_ROOMS]


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'setpoint' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"setpoint.{_ROOMS[name]}"), name)
    except ModuleNotFoundError as missing:
        raise install_advice(missing) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

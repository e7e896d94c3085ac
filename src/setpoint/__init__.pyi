# The public names, each written once: `__init__.py` reads this file to know where they are.
# ruff: noqa: I001 (in the order in which a user meets them)

from setpoint._version import __version__ as __version__

# Goals: what is wanted, and the rates it is made of
from setpoint.problems import (
    Infeasible as Infeasible,
    Problem as Problem,
    evaluate as evaluate,
    fnr_at_fpr as fnr_at_fpr,
    pr_auc as pr_auc,
    precision_at_k as precision_at_k,
    precision_at_recall as precision_at_recall,
    recall_at_precision as recall_at_precision,
    roc_auc as roc_auc,
    tpr_at_fpr as tpr_at_fpr,
)
from setpoint.rates import (
    FN as FN,
    FP as FP,
    TN as TN,
    TP as TP,
    Rate as Rate,
    accuracy as accuracy,
    alerts as alerts,
    balanced_error as balanced_error,
    cost as cost,
    coverage as coverage,
    error as error,
    f_score as f_score,
    fnr as fnr,
    fpr as fpr,
    highest as highest,
    lowest as lowest,
    macro as macro,
    maximum as maximum,
    minimum as minimum,
    npv as npv,
    precision as precision,
    recall as recall,
    tnr as tnr,
    tpr as tpr,
)

# Criteria: called like any PyTorch loss
from setpoint.solvers import (
    Barrier as Barrier,
    CrossEntropy as CrossEntropy,
    Implicit as Implicit,
    Lagrangian as Lagrangian,
    LastLayer as LastLayer,
    Pairwise as Pairwise,
    Program as Program,
    RateBarrier as RateBarrier,
)
from setpoint.steps import Sigmoid as Sigmoid

# Training loops, and comparisons of methods
from setpoint.comparison import compare as compare
from setpoint.pareto import pareto_front as pareto_front
from setpoint.train import Stratified as Stratified, fit as fit

# Estimators in the style of scikit-learn
from setpoint.estimators import (
    CertifiedThreshold as CertifiedThreshold,
    Classifier as Classifier,
    Ranker as Ranker,
)

# Certificates, and decisions in production
from setpoint.certificates import (
    Certificate as Certificate,
    certify as certify,
    label_plan as label_plan,
)
from setpoint.export import Decision as Decision
from setpoint.monitoring import Monitor as Monitor

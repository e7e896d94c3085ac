"""Train for a problem by the metric loss that bounds its objective: ``Program(problem)``.

Meng et al., *Differentiable optimization of generalized nondecomposable functions using linear
programs* (2021), with the programs solved by sorting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from setpoint.distributed import Reduction
from setpoint.losses import LinearProgram, MetricLoss
from setpoint.losses.auc import PartialRocArea
from setpoint.losses.base import ValueAndGradient
from setpoint.losses.multiclass import MulticlassArea
from setpoint.losses.precision_at_recall import AlarmsAtRecall
from setpoint.losses.ratios import Ratio, RatioBound
from setpoint.losses.structural import StructuralHinge, error_slopes, worst_cases
from setpoint.losses.writing import TwoClasses
from setpoint.problems import PER_GROUP, GoalLike, Problem, as_problem, refuse_queries
from setpoint.rates import (
    Bound,
    ClassArea,
    Expression,
    Range,
    Rate,
    Setpoint,
    fnr,
    fpr,
    precision,
    recall,
    tnr,
)
from setpoint.solvers.base import LossCriterion

_metrics: list[Expression] = []  # of structural losses, by number


class Program(LossCriterion):
    """A criterion that bounds a problem's objective by a linear program, solved by sorting.

    It takes areas under the ROC curve (:func:`partial_auc_loss`), precision or the false positive
    rate at a recall and the miss rate at a false positive rate (:func:`precision_at_recall_loss`),
    F scores, the Jaccard index and similar ratios at their best threshold (:func:`f_score_loss`),
    areas of several classes (:func:`multiclass_auc_loss`), and by the structural hinge any other
    metric without a constraint that is best when every decision is right
    (:func:`structural_loss`). Raises a ValueError for any other problem.

    Args:
        problem: What is wanted.
        margin: How far, in units of the scores, a pair or a decision has to be right to be safe.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Examples:
        >>> import torch
        >>> from setpoint import Program, roc_auc
        >>> criterion = Program(roc_auc(fpr=(0, 0.5)))
        >>> criterion(torch.tensor([2.0, 0.5, 0.0, -3.0]), torch.tensor([1, 1, 0, 0])).item()
        0.25
    """

    _options = ("margin",)

    def __init__(
        self, problem: GoalLike, *, margin: float = 1.0, reduction: Reduction | None = None
    ) -> None:
        problem = as_problem(problem, "Program")
        super().__init__(problem, reduction)
        self.margin = margin
        self._loss = loss_for(problem, margin)

    def measure(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """The metric loss that bounds the objective."""
        return self._loss.loss(scores, labels, weights)


def loss_for(problem: Problem, margin: float = 1.0) -> MetricLoss:
    """The metric loss of a problem; raises if there is none, and says for what there is one."""
    refuse_queries(problem.query, "Program")
    loss: MetricLoss | None = None
    if isinstance(problem.objective, ClassArea) and problem.maximize:
        one_vs_all = problem.objective.kind != "auc_mu"
        return MulticlassArea(margin, kind="one_vs_all" if one_vs_all else "mu")
    if problem.kind == "classes":
        raise ValueError(
            f"There is no program for `{problem}`; of several classes there is one for auc_mu and "
            "one_vs_all_auc. Implicit(problem) trains for any problem."
        )
    if len(problem.slices) == 1 and problem.thresholds != PER_GROUP:
        if problem.swept is not None:
            loss = _area_loss(problem, problem.swept, margin)
        elif len(problem.subject_to) == 1:
            loss = _constrained_loss(problem, problem.subject_to[0], margin)
        elif not problem.subject_to:
            loss = _unconstrained_loss(problem, margin)
    if loss is None:
        raise ValueError(
            f"There is no program for `{problem}`. There is one for tpr over a range of fpr, for "
            "precision or fpr at a recall, for fnr at an fpr, and for metrics without a constraint "
            "that are best when every decision is right. Implicit(problem) trains for any problem."
        )
    return loss


def _area_loss(problem: Problem, swept: Range, margin: float) -> MetricLoss | None:
    """The area under the ROC curve over a range of false positive rates."""
    if swept.expression != fpr or not _is(problem, recall, fnr):
        return None
    return PartialRocArea(margin, (swept.low, swept.high))


def _constrained_loss(
    problem: Problem, target: Bound | Setpoint | Range, margin: float
) -> MetricLoss | None:
    """False alarms at a recall, or its mirror image, misses at a false positive rate."""
    level = _floor(target, recall, fnr)
    if level and problem.maximize and problem.objective == precision:
        return AlarmsAtRecall(margin, level)
    if level and _is(problem, tnr, fpr):
        return AlarmsAtRecall(margin, level, "fpr")
    level = _floor(target, tnr, fpr)
    if level and _is(problem, recall, fnr):
        return _MissesAtFpr(margin, level, "fpr")
    return None


class _MissesAtFpr(AlarmsAtRecall):
    """Misses at a false positive rate: false alarms at a recall with the classes swapped."""

    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        value, gradient = super().measure(-scores, negatives, positives)
        return value, gradient.neg_()

    def write(self, classes: TwoClasses) -> LinearProgram:
        high, low = (-classes.low, classes.low_weights), (-classes.high, classes.high_weights)
        return super().write(TwoClasses(high[0], low[0], high[1], low[1]))


def _unconstrained_loss(problem: Problem, margin: float) -> MetricLoss | None:
    """A ratio at its best threshold, else the structural hinge if perfect decisions are best."""
    ratio = _as_ratio(problem.objective) if problem.maximize else None
    if ratio is not None:
        return RatioBound(margin, ratio)
    miss, alarm = (
        slope if problem.maximize else -slope for slope in error_slopes(problem.objective, 1.0, 1.0)
    )
    if max(miss, alarm) > 0 or miss == alarm == 0:
        return None
    return _CompiledStructuralHinge(margin, problem.objective)


def _as_ratio(expression: Expression) -> Ratio | None:
    """``a TP / (a TP + f FN + g FP)``: F scores, Jaccard, and every Tversky index."""
    if not isinstance(expression, Rate):
        return None
    top, below = expression.numerator, expression.denominator
    if top.weights != (top.tp, 0, 0, 0, 0) or below.tn or below.one or top.tp != below.tp:
        return None
    if min(top.tp, below.fn, below.fp) <= 0:
        return None
    unit = below.fp
    return Ratio(top.tp / unit, below.fn / unit, (below.tp - below.fn) / unit)


def _is(problem: Problem, high: Rate, low: Rate) -> bool:
    """Whether the problem maximizes one rate, or minimizes its complement."""
    return problem.objective == (high if problem.maximize else low)


def _floor(target: Bound | Setpoint | Range, high: Rate, low: Rate) -> float | None:
    """The least value of ``high`` that a target asks for, in terms of it or of its complement."""
    if isinstance(target, Range):
        return None
    below = isinstance(target, Setpoint) or target.sense == "<="
    above = isinstance(target, Setpoint) or target.sense == ">="
    if above and target.expression == high:
        return target.level
    return 1 - target.level if below and target.expression == low else None


@dataclass(frozen=True)
class _CompiledStructuralHinge(StructuralHinge):
    """The structural hinge, under a compiler by an operator that it does not look into.

    The sizes of its tables depend on the labels, which no graph of fixed shapes can hold. The
    operator looks metrics up by number, as a compiler passes tensors and numbers only.
    """

    number: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in _metrics:
            _metrics.append(self.metric)
        object.__setattr__(self, "number", _metrics.index(self.metric))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Numbers differ between processes: an unpickled copy gets its own."""
        return type(self), (self.margin, self.metric, self.threshold)

    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        if not torch.compiler.is_compiling():
            return super().measure(scores, positives, negatives)
        u = scores / self.margin
        loss, gradient = _structural_worst(u, positives, negatives, self.number)
        return loss, gradient / self.margin


@torch.library.custom_op(
    "setpoint::structural_worst",
    mutates_args=(),
    schema="(Tensor u, Tensor positives, Tensor negatives, int number) -> (Tensor, Tensor)",
)
def _structural_worst(
    u: Tensor, positives: Tensor, negatives: Tensor, number: int
) -> tuple[Tensor, Tensor]:
    return worst_cases(_metrics[number], u, positives, negatives)


@_structural_worst.register_fake
def _worst_shapes(
    u: Tensor, positives: Tensor, negatives: Tensor, number: int
) -> tuple[Tensor, Tensor]:
    return u.new_empty(len(u)), torch.empty_like(u)

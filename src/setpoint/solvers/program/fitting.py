"""Which loss fits a problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from setpoint.problems import PER_GROUP, Problem, refuse_queries
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
from setpoint.solvers.program.auc import partial_auc_loss
from setpoint.solvers.program.classes import multiclass_auc_loss
from setpoint.solvers.program.mistakes import price
from setpoint.solvers.program.opaque import Structural
from setpoint.solvers.program.precision import precision_at_recall_loss
from setpoint.solvers.program.ratio import Ratio
from setpoint.solvers.program.ratios import ratio_loss

Loss = Callable[..., Tensor]
"""Called ``loss(scores, labels, weights=..., margin=...)``."""


def fitting_loss(problem: Problem) -> Loss:
    """The metric loss of a problem, or an error that says what can be done instead."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"Program takes a Problem, such as roc_auc(fpr=(0, 0.05)); got {problem!r}."
        )
    refuse_queries(problem.query, "Program")
    loss = None
    if isinstance(problem.objective, ClassArea) and problem.maximize:
        if problem.objective.kind == "auc_mu":
            return multiclass_auc_loss
        return partial(multiclass_auc_loss, kind="one_vs_all")
    if problem.kind == "classes":
        raise ValueError(
            f"There is no program for `{problem}`; of several classes there is one for auc_mu and "
            "one_vs_all_auc. Implicit(problem) trains for any problem."
        )
    if len(problem.slices) == 1 and problem.thresholds != PER_GROUP:
        if problem.swept is not None:
            loss = _area(problem, problem.swept)
        elif len(problem.subject_to) == 1:
            loss = _held(problem, problem.subject_to[0])
        elif not problem.subject_to:
            loss = _free(problem)
    if loss is None:
        raise ValueError(
            f"There is no program for `{problem}`. There is one for tpr over a range of fpr, for "
            "precision or fpr at a recall, for fnr at an fpr, and for metrics without a constraint "
            "that are best when every decision is right. Implicit(problem) trains for any problem."
        )
    return loss


def _area(problem: Problem, swept: Range) -> Loss | None:
    """Detections over a range of false alarms."""
    if swept.expression != fpr or not _is(problem, recall, fnr):
        return None
    return partial(partial_auc_loss, fpr=(swept.low, swept.high))


def _held(problem: Problem, target: Bound | Setpoint | Range) -> Loss | None:
    """False alarms at a recall, or the mirror image, misses at a false positive rate."""
    level = _floor(target, recall, fnr)
    if level and problem.maximize and problem.objective == precision:
        return partial(precision_at_recall_loss, recall=level)
    if level and _is(problem, tnr, fpr):
        return partial(precision_at_recall_loss, recall=level, objective="fpr")
    level = _floor(target, tnr, fpr)
    if level and _is(problem, recall, fnr):
        return partial(_mirrored, recall=level)
    return None


def _mirrored(
    scores: Tensor,
    labels: Tensor,
    *,
    recall: float,
    weights: Tensor | None = None,
    margin: float = 1.0,
) -> Tensor:
    """Misses at a false positive rate are false alarms at a recall with the classes swapped."""
    swapped = 1 - torch.as_tensor(labels).double()
    return precision_at_recall_loss(
        -scores, swapped, recall=recall, weights=weights, margin=margin, objective="fpr"
    )


def _free(problem: Problem) -> Loss | None:
    """A ratio at its best threshold, else the structural hinge if perfect decisions are best."""
    ratio = _ratio(problem.objective) if problem.maximize else None
    if ratio is not None:
        return partial(_at_best_threshold, ratio=ratio)
    miss, alarm = (
        slope if problem.maximize else -slope for slope in price(problem.objective, 1.0, 1.0)
    )
    if max(miss, alarm) > 0 or miss == alarm == 0:
        return None
    return Structural(problem.objective)


def _at_best_threshold(
    scores: Tensor,
    labels: Tensor,
    *,
    ratio: Ratio,
    weights: Tensor | None = None,
    margin: float = 1.0,
) -> Tensor:
    return ratio_loss(ratio, scores, labels, weights, margin, "best", lift=False)


def _ratio(expression: Expression) -> Ratio | None:
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

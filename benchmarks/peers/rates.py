"""Our rates as plain torch functions of scores and thresholds, for solvers that others wrote."""

import torch
from torch import Tensor

from setpoint import Problem
from setpoint.rates import Bound, Counts, Tables


def tables(scores: Tensor, labels: Tensor, thresholds: Tensor, soft: bool = True) -> Tables:
    """Counts of scores ``[n]`` at thresholds ``[m]``, with gradients if soft."""
    above = scores[:, None] - thresholds
    accepted = above.sigmoid() if soft else (above > 0).to(scores.dtype)
    yes = labels.to(scores.dtype)
    tp, fp = yes @ accepted, (1 - yes) @ accepted
    positives, negatives = yes.sum(), (1 - yes).sum()
    return {(): Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)}


def objective(problem: Problem, counts: Tables) -> Tensor:
    """The mean over operating points, to be minimized."""
    value = torch.as_tensor(problem.objective.of(counts)).mean()
    return -value if problem.maximize else value


def violations(problem: Problem, counts: Tables) -> Tensor:
    """By how much every target is missed, ``[targets * points]``; negative where it is met."""
    found = []
    for place, target in enumerate(problem.points[0]):
        levels = torch.tensor([targets[place].level for targets in problem.points])
        excess = target.expression.of(counts) - levels
        floor = isinstance(target, Bound) and target.sense == ">="
        found.append(-excess if floor else excess)
    return torch.cat(found)

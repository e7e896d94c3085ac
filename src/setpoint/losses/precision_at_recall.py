"""A loss for precision at a given recall, with the threshold that a linear program would find.

Eban et al., *Scalable learning of non-decomposable objectives* (2017), as one program: as few false
alarms as possible while the misses, both counted by hinges around a free threshold, stay within
what the recall allows. The threshold is where the misses equal what is allowed; it moves with the
positives that are less than the margin above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import share
from setpoint.losses.base import MetricLoss, Ranked, ValueAndGradient
from setpoint.losses.writing import LinearProgram, ProgramBuilder, TwoClasses

AlarmObjective = Literal["precision", "fpr"]


def precision_at_recall_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    recall: float,
    weights: Tensor | None = None,
    margin: float = 1.0,
    objective: AlarmObjective = "precision",
) -> Tensor:
    """An upper bound on one minus the precision at a recall of at least ``recall``.

    Args:
        scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores.
        recall: The share of the positives that must be found, above 0; 1 means all of them.
        weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
        margin: How far from the threshold, in units of the scores, a decision has to be to be safe.
        objective: ``"precision"``: F / (recall P + F) with F the bound on false alarms and P the
            positives. ``"fpr"``: F over the negatives, a bound on the false positive rate at this
            recall; convex, with the same direction of the gradient on a batch.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([2.0, 0.0, -1.5], dtype=torch.float64, requires_grad=True)
        >>> loss = precision_at_recall_loss(scores, torch.tensor([1, 1, 0]), recall=1.0)
        >>> loss.backward()              # the threshold is at -1, the false alarm counts by 0.5
        >>> loss.item(), scores.grad.tolist()
        (0.2, [0.0, -0.32, 0.32])
    """
    return AlarmsAtRecall(margin, recall, objective).loss(scores, labels, weights)


@dataclass(frozen=True)
class AlarmsAtRecall(MetricLoss):
    """:func:`precision_at_recall_loss` and its program."""

    recall: float
    objective: AlarmObjective = "precision"

    def __post_init__(self) -> None:
        super().__post_init__()
        if share(self.recall, "recall") == 0:
            raise ValueError("A recall of 0 asks for nothing; recall must be above 0.")
        if self.objective not in ("precision", "fpr"):
            raise ValueError(f"objective must be 'precision' or 'fpr'; got {self.objective!r}.")

    def measure(self, scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        """The false alarms at the recall, over the negatives or as a loss of precision."""
        ranked = Ranked.of(scores / self.margin, positives, negatives)
        alarms, gradient = alarms_at_recall(ranked, self.recall)
        if self.objective == "fpr":
            total = negatives.sum(-1)
            value, slope = alarms / total, 1 / total
        else:
            found = self.recall * positives.sum(-1)
            value, slope = alarms / (found + alarms), found / (found + alarms) ** 2
        return value, gradient.mul_(slope[:, None] / self.margin)

    def write(self, classes: TwoClasses) -> LinearProgram:
        """False alarms and misses around a free threshold; for the precision, all times ``t``.

        ``alarm >= t (1 + v) - level`` and ``miss >= t (1 - u) + level``, with the sum of misses
        within ``t (1 - recall) P``. For the false positive rate ``t`` is 1; for the precision
        ``recall P t + alarms`` is held at 1 (the substitution of Charnes and Cooper).
        """
        u, v = classes.high / self.margin, classes.low / self.margin
        allowed, one = (1 - self.recall) * classes.positives, u.new_ones(())
        to_fpr = self.objective == "fpr"
        cost = classes.low_weights / classes.low_weights.sum() if to_fpr else classes.low_weights
        program = ProgramBuilder()
        alarm, miss = program.variables(cost), program.variables(torch.zeros_like(u))
        level = program.variables(u.new_zeros(1), free=True)
        misses = (miss, classes.high_weights)
        if to_fpr:
            program.at_most(-1 - v, (alarm, -one), (level, -one))
            program.at_most(u - 1, (miss, -one), (level, one))
            program.sum_at_most(allowed, misses)
            return program.build()
        t = program.variables(u.new_zeros(1))
        program.at_most(torch.zeros_like(v), (t, 1 + v), (level, -one), (alarm, -one))
        program.at_most(torch.zeros_like(u), (t, 1 - u), (level, one), (miss, -one))
        program.sum_at_most(0.0, misses, (t, -allowed))
        held = (t, self.recall * classes.positives)
        program.sum_equal(1.0, (alarm, classes.low_weights), held)
        return program.build()


def alarms_at_recall(ranked: Ranked, recall: float) -> ValueAndGradient:
    """The least sum of false alarms, and its gradient; scores are in units of the margin.

    With the threshold at ``safe - 1`` a positive at ``x`` counts as missed by ``safe - x`` if that
    is positive. That sum rises with ``safe``; sorted, it is known at every score.
    """
    x, p, n = ranked.scores, ranked.positives, ranked.negatives
    count, total = p.cumsum(-1), (p * x).cumsum(-1)
    allowed = (1 - recall) * count[..., -1:]
    lower = (x * count - total <= allowed).sum(-1, keepdim=True) - 1  # the last below `safe`
    active = count.gather(-1, lower)
    safe = (allowed + total.gather(-1, lower)) / (active + (active == 0))
    false = (x - safe + 2).clamp_(min=0)
    push = torch.where(false > 0, n, 0.0)
    places = torch.arange(x.shape[-1], device=x.device)
    pull = torch.where(places <= lower, p, 0.0) / (active + (active == 0))
    gradient = push - pull * push.sum(-1, keepdim=True)
    return (n * false).sum(-1), ranked.unsorted(gradient)

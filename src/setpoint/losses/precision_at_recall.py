"""A loss for precision at a given recall, with the threshold that a linear program would find.

Eban et al., *Scalable learning of non-decomposable objectives* (2017), as one program: as few false
alarms as possible while the misses, both counted by hinges around a free threshold, stay within
what the recall allows. The threshold is where the misses equal what is allowed; it moves with the
positives that are less than the margin above it.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import positive, share
from setpoint.losses.base import Ranked, ValueAndGradient, batch_loss

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
    margin = positive(margin, "margin")
    recall, objective = checked_recall(recall), checked_objective(objective)

    def function(scores: Tensor, positives: Tensor, negatives: Tensor) -> ValueAndGradient:
        ranked = Ranked.of(scores / margin, positives, negatives)
        alarms, gradient = alarms_at_recall(ranked, recall)
        if objective == "fpr":
            total = negatives.sum(-1)
            value, slope = alarms / total, 1 / total
        else:
            found = recall * positives.sum(-1)
            value, slope = alarms / (found + alarms), found / (found + alarms) ** 2
        return value, gradient.mul_(slope[:, None] / margin)

    return batch_loss(function, scores, labels, weights)


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


def checked_recall(recall: object) -> float:
    """Recall as a float; raises unless it is a share above 0."""
    value = share(recall, "recall")
    if value == 0:
        raise ValueError("A recall of 0 asks for nothing; recall must be above 0.")
    return value


def checked_objective(objective: object) -> AlarmObjective:
    """The objective's name; raises for any other."""
    if objective == "precision":
        return "precision"
    if objective == "fpr":
        return "fpr"
    raise ValueError(f"objective must be 'precision' or 'fpr'; got {objective!r}.")

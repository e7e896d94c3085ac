"""Losses for the areas of several classes: AUC_mu with any partition matrix, and one against all.

AUC_mu (Kleiman and Page, 2019) looks at every pair of classes. The costs in a partition matrix say
along which direction the two are told apart; projected on it, they are a binary problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint.batch import check_length, check_scores, check_weights, refuse_rows
from setpoint.distributed import refuse_several_ranks
from setpoint.losses.auc import PairSurrogate, RocArea
from setpoint.losses.base import (
    LARGEST,
    check_loss_scores,
    exact_type,
    mean_loss,
    refuse_overflow,
)
from setpoint.losses.writing import LinearProgram, TwoClasses

MulticlassKind = Literal["mu", "one_vs_all"]
SORTED_TOGETHER = 2**20  # scores


def multiclass_auc_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    surrogate: PairSurrogate = "hinge",
    kind: MulticlassKind = "mu",
    partition: Any = None,
) -> Tensor:
    """An upper bound on one minus the multi-class AUC: the mean over pairs of classes.

    Args:
        scores: One column per class, ``[n, K]``.
        labels: The class of each example, ``[n]``: whole numbers from 0 to K - 1.
        weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
        margin: As in :func:`auc_loss`; for ``"mu"`` in units of the difference of two scores,
            whatever the scale of the partition matrix.
        surrogate: As in :func:`auc_loss`.
        kind: ``"mu"``: every class against every other one, told apart as the partition says.
            ``"one_vs_all"``: every class against the rest, by its own score. Classes (pairs of
            them) that a batch does not have do not count.
        partition: For ``"mu"``, ``[K, K]``: the cost of taking row for column. By default 0 on the
            diagonal and 1 elsewhere; classes k and l are then told apart by ``f_k - f_l``.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([[2.0, 0, 0], [0, 2.0, 0], [0, 0, 0.5]])
        >>> round(multiclass_auc_loss(scores, torch.tensor([0, 1, 2])).item(), 6)
        0.0
    """
    return MulticlassArea(margin, surrogate, kind, partition).loss(scores, labels, weights)


@dataclass(frozen=True)
class MulticlassArea(RocArea):
    """:func:`multiclass_auc_loss` and its program (equation 2)."""

    kind: MulticlassKind = "mu"
    partition: Any = None

    def loss(self, scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """The mean over comparisons of classes, some of them sorted together."""
        refuse_several_ranks()
        labels, examples = checked_classes(scores, labels, weights)
        directions, ones, others = comparisons(scores.shape[1], self.kind, self.partition)
        if scores.numel() == 0:
            return scores.to(exact_type(scores)).sum()
        x = scores.detach().double()
        total, gradient, compared = x.new_zeros(()), torch.zeros_like(x), x.new_zeros(())
        size = max(1, SORTED_TOGETHER // len(x))
        for start in range(0, len(directions), size):
            part = slice(start, start + size)
            along = directions[part].to(x.device)
            p, n = (side[part].to(x.device)[:, labels] * examples for side in (ones, others))
            value, slopes = self.measure(along @ x.T, p, n)
            total = total + value.sum()  # a comparison that lacks a class counts as 0
            gradient += slopes.T @ along
            compared = compared + ((p.sum(-1) > 0) & (n.sum(-1) > 0)).sum()
        compared = compared + (compared == 0)
        flat = (gradient / compared).reshape(1, -1)
        return mean_loss(scores, (total / compared).reshape(1), flat, compared.reshape(1) > 0)

    def program(
        self, scores: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> LinearProgram:
        """The binary program of every comparison of classes, side by side."""
        labels, examples = checked_classes(scores, labels, weights)
        found = comparisons(scores.shape[1], self.kind, self.partition)
        differences, shares = [], []
        for direction, ones, others in zip(*(x.to(scores.device) for x in found), strict=True):
            sides = (side[labels] * examples for side in (ones, others))
            classes = TwoClasses.of(scores.double() @ direction, *sides)
            if len(classes.high) and len(classes.low):
                differences.append(classes.differences)
                shares.append(classes.pair_weights)
        if not shares:
            raise ValueError("The program needs examples of two classes at least.")
        return self.write_pairs(torch.cat(differences), torch.cat(shares) / len(shares))


def comparisons(
    classes: int, kind: MulticlassKind, partition: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Per comparison: the direction it projects on, which classes should be high, which low.

    All ``[comparisons, K]``, in float64.
    """
    eye = torch.eye(classes, dtype=torch.float64)
    if kind == "one_vs_all":
        if partition is not None:
            raise ValueError("A partition matrix belongs to kind='mu'; one_vs_all uses none.")
        return eye, eye, 1 - eye
    if kind != "mu":
        raise ValueError(f"kind must be 'mu' or 'one_vs_all'; got {kind!r}.")
    costs = 1 - eye if partition is None else checked_partition(partition, classes)
    one, other = torch.triu_indices(classes, classes, 1)
    v = costs[one] - costs[other]
    scale = v.gather(1, one[:, None]) - v.gather(1, other[:, None])
    if not torch.compiler.is_compiling() and (scale == 0).any():
        pair = int((scale[:, 0] == 0).nonzero()[0, 0])
        raise ValueError(
            f"The partition matrix does not tell classes {one[pair]} and {other[pair]} apart: "
            "P[k, k] - P[l, k] - P[k, l] + P[l, l] must not be 0."
        )
    return 2 * v / scale, eye[one], eye[other]


def checked_partition(partition: Any, classes: int) -> Tensor:
    """The partition matrix in float64; raises unless it is finite and ``[K, K]``."""
    costs = torch.as_tensor(partition, dtype=torch.float64).detach().cpu()
    if costs.shape != (classes, classes):
        raise ValueError(
            f"partition must have a row and a column for each of {classes} classes; "
            f"got the shape {tuple(costs.shape)}."
        )
    if not torch.compiler.is_compiling() and not costs.isfinite().all():
        raise ValueError("The costs in the partition matrix must be finite.")
    return costs


def checked_classes(scores: Tensor, labels: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    """Labels as indices and weights in float64, both ``[n]``."""
    check_loss_scores(scores)
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError(
            "Scores of classes are [n, K] with K of at least 2; got the shape "
            f"{tuple(scores.shape)}. For two classes in one column use auc_loss."
        )
    first = scores.detach()[:, 0]
    labels = torch.as_tensor(labels, device=scores.device).detach()
    check_length(labels, first, "labels")
    weights = torch.ones_like(first) if weights is None else weights
    weights = torch.as_tensor(weights, device=scores.device).detach().double()
    check_length(weights, first, "weights")
    if not torch.compiler.is_compiling():
        check_scores(scores.detach())
        if scores.dtype == torch.float64 and scores.numel() and scores.abs().amax() > LARGEST:
            refuse_overflow(scores)
        check_weights(weights, first)
        wrong = (labels < 0) | (labels >= scores.shape[1]) | (labels != labels.long())
        whole = f"Labels must be whole numbers from 0 to {scores.shape[1] - 1}"
        refuse_rows(wrong, labels, f"{whole}, one for each column of the scores")
    return labels.long(), weights

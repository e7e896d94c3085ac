"""What the networks are trained with: losses of a stack of networks, and their optimizer.

Scores are ``[n, members]`` (``[n, members, classes]``), labels ``[n, members]``: every member has a
batch of its own. A loss is the sum over members, so that each gets its own gradient.

The same learning rate, momentum and weight decay for all, as in the paper. PESG is LibAUC's own
optimizer (stochastic gradients, clipped, with a pull to a running average) and AUCM needs it. Its
momentum is a mean of gradients where that of SGD is their sum; for steps of the same length it gets
the rate divided by one minus the momentum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from setpoint import Implicit, Problem, f_score
from setpoint.losses import auc_loss, f_score_loss, multiclass_auc_loss
from setpoint.programs import as_program, linear_program

RATE, MOMENTUM, DECAY = 0.03, 0.9, 1e-5
Criterion = Callable[[Tensor, Tensor], Tensor]


_OURS: dict[str, Criterion] = {
    "auc_loss": auc_loss,
    "f_score_loss": f_score_loss,
    "f_score_loss, threshold 0": partial(f_score_loss, threshold=0.0),
}


def criterion(name: str, counts: Tensor) -> Criterion:
    """A loss by its name; ``counts`` are the training examples ``[members, classes]``."""
    if name == "cross-entropy":
        return _cross_entropy(torch.ones_like(counts))
    if name == "weighted cross-entropy":  # every class counts the same
        return _cross_entropy(counts.sum(1, keepdim=True) / (counts.shape[1] * counts))
    if name in _OURS:
        return lambda s, y: s.shape[1] * _OURS[name](s, y)  # they give the mean over columns
    if name == "auc_loss through linear_program":
        return _each(_through_the_layer)
    if name == "f_score_loss, warm start":  # cross-entropy for the first third
        return _in_turn(_cross_entropy(torch.ones_like(counts)), 50, _OURS["f_score_loss"])
    if name == "Implicit":
        members = [Implicit(Problem(maximize=f_score(1)), steps=150) for _ in counts]
        return lambda s, y: torch.stack([m(s[:, i], y[:, i]) for i, m in enumerate(members)]).sum()
    if name in ("AUC_mu", "one vs all"):
        kind = "mu" if name == "AUC_mu" else "one_vs_all"
        return _each(lambda s, y: multiclass_auc_loss(s, y, kind=kind))
    if name.startswith(("hinge", "ramp")):  # "ramp 0.01 of probabilities", "hinge 0.1 of logits"
        surrogate, margin, _, of = name.split()
        options = {"margin": float(margin), "surrogate": surrogate}
        # equation 1 has a slope of 1 whatever the margin; the published ramp is divided by it
        scale = float(margin) if surrogate == "hinge" else 1.0
        link = torch.sigmoid if of == "probabilities" else torch.clone
        return lambda s, y: scale * s.shape[1] * auc_loss(link(s), y, **options)
    return _peer(name, len(counts))


def _cross_entropy(weights: Tensor) -> Criterion:
    """Means over the batch with a weight for each member and class."""

    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        by_example = weights.gather(1, labels.T).T
        if scores.ndim == 3:
            losses = cross_entropy(scores.movedim(-1, 1), labels, reduction="none")
        else:
            target = labels.to(scores.dtype)
            losses = binary_cross_entropy_with_logits(scores, target, reduction="none")
        return (by_example * losses).mean(0).sum()

    return loss


def _through_the_layer(scores: Tensor, labels: Tensor) -> Tensor:
    """The value of the AUC program, solved by the layer; one class alone has none, and is 0."""
    if labels.min() == labels.max():
        return 0 * scores.sum()
    value, _ = linear_program(*as_program(auc_loss, scores, labels)[:6], value_only=True)
    return value


def _in_turn(first: Criterion, steps: int, then: Criterion) -> Criterion:
    """One loss for so many calls, then the other, which gives the mean over columns."""
    calls = itertools.count()
    return lambda s, y: first(s, y) if next(calls) < steps else s.shape[1] * then(s, y)


def _each(loss: Criterion) -> Criterion:
    """Members one by one."""
    return lambda s, y: torch.stack([loss(s[:, i], y[:, i]) for i in range(s.shape[1])]).sum()


def _peer(name: str, members: int) -> Criterion:
    if name == "AUCM + PESG":
        return _AUCM(members)
    if name == "AP-Perf":
        from benchmarks.programs.peers import adversarial

        layer = adversarial.layer()
        return _each(lambda s, y: layer(s, y.float())[0])
    from benchmarks.programs.peers import cvx

    return _each(cvx.F1Loss({"cvxpylayers": cvx.CHOSEN, "Clarabel": cvx.CLARABEL}[name]))


class _AUCM(nn.Module):
    """LibAUC's loss, of probabilities as its tutorials have it, with a, b and alpha of each member.

    LibAUC's loss for several labels is AUCM for each (with the default margin of 1), averaged.
    """

    def __init__(self, members: int) -> None:
        super().__init__()
        from libauc.losses import MultiLabelAUCMLoss

        self.loss = MultiLabelAUCMLoss(num_labels=members)
        self.a, self.b, self.alpha = self.loss.a, self.loss.b, self.loss.alpha  # PESG reads them
        self.margin = self.loss.margin

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        return scores.shape[1] * self.loss(torch.sigmoid(scores), labels)


def optimizer(name: str, model: nn.Module, loss: Any, rate: float = RATE) -> torch.optim.Optimizer:
    """SGD, or PESG for the loss that needs it."""
    if not name.endswith("PESG"):
        return torch.optim.SGD(model.parameters(), rate, MOMENTUM, weight_decay=DECAY)
    from libauc.optimizers import PESG

    same = {"lr": rate / (1 - MOMENTUM), "momentum": MOMENTUM, "weight_decay": DECAY}
    return PESG(model.parameters(), loss_fn=loss, verbose=False, **same)


def slower(optimizer: torch.optim.Optimizer, factor: float = 3.0) -> None:
    """Divide the learning rate; PESG moves its reference point at the same moment, as it should."""
    if hasattr(optimizer, "update_regularizer"):
        optimizer.update_regularizer(decay_factor=factor)
    else:
        for group in optimizer.param_groups:
            group["lr"] /= factor

"""How the body learns: through a head of its own, or by a penalty at yesterday's threshold."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.func import functional_call

from setpoint.axes.scan import Hold
from setpoint.problems import Problem
from setpoint.rates import Where
from setpoint.solvers.criterion import BatchCriterion
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.last_layer.penalty import Penalty, penalized, running_multipliers
from setpoint.solvers.mix import attach
from setpoint.thresholds import State, tensor_of

Weights = tuple[Tensor, ...]


class BodyLosses(BatchCriterion, State):
    """The body's part of a criterion on features: its head, its penalty, and what they remember."""

    problem: Problem
    implicit: Implicit
    held_at: Tensor
    multipliers: Tensor
    _flexible = ("held_at", "multipliers")
    _head: tuple[nn.Module, ...]  # in a tuple: the head belongs to the model, not to its loss
    _targets: list[Hold]
    _slices: tuple[Where, ...]

    def __init__(self) -> None:
        super().__init__()
        self._auxiliary: tuple[nn.Module, ...] = ()
        self._first: Weights = ()
        self._own_first: Weights = ()
        self.register_buffer("held_at", torch.empty(0, dtype=torch.float64))
        self.register_buffer("multipliers", torch.empty(0, dtype=torch.float64))

    def _own_head(self, owner: nn.Module) -> None:
        """Give the body a head of its own, as a part of ``owner``."""
        auxiliary = deepcopy(self._head[0]).requires_grad_()
        owner.auxiliary = auxiliary
        self._auxiliary = (auxiliary,)
        self._own_first = weights_of(auxiliary)

    def _untrained(self) -> str:
        """Which of the heads no optimizer has ever touched, in words; empty if none."""
        if any(unchanged(head, self._own_first) for head in self._auxiliary):
            return (
                "the auxiliary head is not trained: give the optimizer criterion.parameters() "
                "as well"
            )
        if unchanged(self._head[0], self._first):
            return (
                "the head is not trained: it is not part of the model that the optimizer has; "
                "pass the model's own last layer, or Split(model, head)"
            )
        return ""

    def _penalized(self, by: Penalty, features: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
        """The body's penalized loss at the last step's threshold, and what the head is left."""
        head = self._head[0]
        last = self.implicit._last
        assert last is not None
        now = tensor_of(last.seat.marginal)
        learns = held.requires_grad or features.requires_grad
        eta = running_multipliers(self.multipliers, last.held, last.seat)
        known = self.held_at.shape == now.shape
        before = self.held_at.to(now) if known else torch.full_like(now, torch.nan)
        at = torch.where(before.isnan(), now, before)
        if self.training and torch.is_grad_enabled() and learns:
            both_classes = tensor_of(last.reading.whole.totals).amin(-1, keepdim=True) > 0
            self.multipliers = eta
            self.held_at = torch.where(both_classes, now, before)
        if by.eta is not None:
            eta = torch.full_like(eta, by.eta / now.shape[1])
        value, gradient = penalized(
            self.problem, self._targets, self._slices, last.reading, at, eta
        )
        frozen = {name: p.detach() for name, p in head.named_parameters()}
        whole = by.everywhere
        scores = head(features) if whole else functional_call(head, frozen, (features,))
        loss = value.mean().to(torch.promote_types(scores.dtype, torch.float32))
        scores = self._of_all(scores)
        if scores.requires_grad:
            loss = attach(scores, loss, (gradient / len(gradient)).T.reshape(scores.shape))
        return loss, held.detach() if whole else held


def weights_of(module: nn.Module) -> Weights:
    """A copy of its weights; their version counters would miss what fused optimizers write."""
    return tuple(p.detach().clone() for p in module.parameters())


def unchanged(module: nn.Module, first: Weights) -> bool:
    """Whether no optimizer has ever written to a weight."""
    pairs = zip(module.parameters(), first, strict=True)
    return all(torch.equal(p.detach().to(old), old) for p, old in pairs)

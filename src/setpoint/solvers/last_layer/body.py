"""How the body learns: through a head of its own, or by a penalty at yesterday's threshold."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.func import functional_call

from setpoint.problems import Problem
from setpoint.problems.scan import Hold
from setpoint.rates import Where
from setpoint.solvers.criterion import BatchCriterion
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.last_layer.penalty import Penalty, penalized, running_multipliers
from setpoint.solvers.mix import attach
from setpoint.thresholds import State, tensor_of


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
        self._versions = self._own_versions = 0
        self.register_buffer("held_at", torch.empty(0, dtype=torch.float64))
        self.register_buffer("multipliers", torch.empty(0, dtype=torch.float64))

    def _own_head(self, owner: nn.Module) -> None:
        """Give the body a head of its own, as a part of ``owner``."""
        auxiliary = deepcopy(self._head[0]).requires_grad_()
        owner.auxiliary = auxiliary
        self._auxiliary = (auxiliary,)
        self._own_versions = versions(auxiliary)

    def _untrained(self) -> str:
        """Which of the heads no optimizer has ever touched, in words; empty if none."""
        if any(versions(head) == self._own_versions for head in self._auxiliary):
            return (
                "the auxiliary head is not trained: give the optimizer criterion.parameters() "
                "as well"
            )
        if versions(self._head[0]) == self._versions:
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
        steps = self.training and held.requires_grad
        eta = running_multipliers(self.multipliers, last.held, last.seat)
        at = now if self.held_at.shape != now.shape else self.held_at.to(now)
        if steps:
            self.multipliers, self.held_at = eta, now.clone()
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


def versions(module: nn.Module) -> int:
    """Changes whenever an optimizer has written to a weight."""
    return sum(p._version for p in module.parameters())

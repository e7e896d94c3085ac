"""Dynamic barrier (Gong, Liu, Liu: Bi-objective trade-off with dynamic barrier gradient descent).

Any losses of any model: make one small while others keep their bounds, or only where that does not
hurt more important ones. Gradients are combined with multipliers that are found anew at every step,
so there are no weights of losses to tune.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint.solvers.barrier.constraints import Constraint
from setpoint.solvers.barrier.gradients import trainable
from setpoint.solvers.barrier.losses import collect
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.step import Step
from setpoint.solvers.barrier.weigher import Weigher


class Barrier(Weigher):
    """Fills ``.grad`` with a direction that lowers one loss and keeps its promises about others.

    Args:
        params: The parameters to train, such as ``model.parameters()``.
        alpha: How fast broken bounds are mended (eq. 8): ``alpha`` times the learning rate is the
            share of the gap that a small step of plain gradient descent closes.
        fraction: That share itself, instead of ``alpha``; needs ``optimizer``.
        optimizer: Where ``fraction`` reads the learning rate, at every step.
        beta: The most that is asked for, in units of the loss's own descent (eq. 8).
        tau: The power of the gradient's length in it (Proposition 3.7).
        gain: Of the term that holds bounds on average over minibatches; 0 for exact gradients.
        every: Find multipliers anew every so many steps; in between one backward pass is enough.
        cap: How much bounds that oppose each other may amplify their multipliers.
        memory: Of the running means of gradients (``after=``), which tell what hurts a loss from
            the noise of a batch: 0.99 looks at about 100 batches.
        nonfinite: What a loss or gradient that is NaN or infinite does: ``"raise"``, or
            ``"skip"``, which leaves ``.grad`` and all state alone and counts the step.
        group: The process group to average over; the default one under ``torch.distributed``.

    Example:
        >>> from setpoint import Barrier, at_least
        >>> weight = torch.tensor([2.0], requires_grad=True)
        >>> barrier = Barrier([weight])
        >>> optimizer = torch.optim.SGD([weight], lr=0.1)
        >>> for _ in range(200):
        ...     optimizer.zero_grad()
        ...     step = barrier.backward(weight.square().sum(), subject_to=at_least(weight, 1.0))
        ...     optimizer.step()
        >>> round(weight.item(), 4), barrier.report()["status"]
        (1.0, 'held')
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        *,
        alpha: float = 1.0,
        fraction: float | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        beta: float = 1.0,
        tau: float = 2.0,
        gain: float = 0.02,
        every: int = 1,
        cap: float = 1e4,
        memory: float = 0.99,
        nonfinite: Literal["raise", "skip"] = "raise",
        group: torch.distributed.ProcessGroup | None = None,
    ) -> None:
        super().__init__(
            Push(alpha, beta, tau),
            fraction=fraction,
            optimizer=optimizer,
            gain=gain,
            every=every,
            cap=cap,
            memory=memory,
            nonfinite=nonfinite,
        )
        self._params = trainable(params)
        self._group = group

    def backward(
        self,
        objective: Tensor,
        *,
        subject_to: Constraint | Sequence[Constraint] | None = None,
        after: Tensor | Sequence[Tensor] | None = None,
        lower: float | Sequence[float | None] | None = None,
        scaler: torch.amp.GradScaler | None = None,
        rows: int | None = None,
    ) -> dict[str, Any]:
        """Add the combined direction to ``.grad``, instead of ``loss.backward()``.

        Args:
            objective: The loss to make small, a scalar with a graph.
            subject_to: Bounds on other losses, such as ``[at_most(loss, 0.35)]``, or
            after: a more important loss; a list has the most important one first.
            lower: A lower bound of the losses in ``after`` that is known, such as 0.
            scaler: The gradient scaler of mixed precision. Call ``scaler.step(optimizer)`` and
                ``scaler.update()`` afterwards as usual.
            rows: On several processes, of how many rows the losses here are means; without it all
                processes count the same. A process without rows (0) takes part with any losses.

        Returns:
            This step in plain numbers, for any logger.
        """
        losses = collect(objective, subject_to, after, lower)
        step = Step(losses, self._params, self._group, scaler, rows)
        weights = self.weigh(step)
        if weights is not None:
            step.write(weights)
        return dict(self.last)

    def loss(
        self,
        objective: Tensor,
        *,
        subject_to: Constraint | Sequence[Constraint] | None = None,
        after: Tensor | Sequence[Tensor] | None = None,
        lower: float | Sequence[float | None] | None = None,
        rows: int | None = None,
    ) -> Tensor:
        """The weighted sum of all losses, for loops that insist on ``loss.backward()``.

        The same direction as :meth:`backward` at the price of one more backward pass; its value is
        that of the objective. The arguments are those of :meth:`backward`.
        """
        losses = collect(objective, subject_to, after, lower)
        step = Step(losses, self._params, self._group, rows=rows)
        weights = self.weigh(step, keep_graph=True)
        return step.nothing() if weights is None else step.surrogate(weights)

    def average_over(self, group: torch.distributed.ProcessGroup | None) -> None:
        """Average over these processes from now on, unless others were named at first."""
        self._group = self._group or group

    def __repr__(self) -> str:
        listed = ", ".join(f"{key}={value!r}" for key, value in self.options().items())
        return f"{type(self).__name__}({len(self._params)} parameters, {listed})"

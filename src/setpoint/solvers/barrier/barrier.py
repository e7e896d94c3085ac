"""Dynamic barrier (Gong, Liu, Liu: Bi-objective trade-off with dynamic barrier gradient descent).

Any losses of any model: make one small while others keep their bounds, or only where that does not
hurt more important ones. Gradients are combined with multipliers that are found anew at every step,
so there are no weights of losses to tune.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._checks import at_least_zero, positive, share, whole
from setpoint.solvers.barrier.constraints import Constraint, Losses, collect
from setpoint.solvers.barrier.gradients import LossGradients, Means, trainable
from setpoint.solvers.barrier.lexicographic import Seen, ranked
from setpoint.solvers.barrier.quadratic_program import Direction, Push, Vector, constrained
from setpoint.solvers.barrier.state import (
    LEARNT,
    BarrierReport,
    Ledger,
    book,
    raise_floors,
    summary,
)


class Reported(nn.Module):
    """Its state is that of its ledger and its means; ``last`` is the last step, for loggers."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.means = Means()
        self.last: dict[str, Any] = {}

    def report(self) -> BarrierReport:
        """How it went so far: a dict of plain numbers that prints as lines of words.

        Lists have one number for each bound, in the order given. ``multiplier`` is what the bound
        costs, ``slack`` how far it is from being broken, ``binding`` the share of steps in which it
        mattered, ``noise_ratio`` how many times more than a single batch asks for was needed; in
        lexicographic training, how many times a batch's squared gradient is that of the truth.
        """
        return summary(self.last, self.ledger)

    @property
    def status(self) -> str:
        """The first word of the report: *held*, *slack*, *opposed*, *settled*, and so on."""
        return str(self.report()["status"])

    def reset(self) -> None:
        """Forget all steps, before other losses are trained."""
        self.ledger.reset()
        self.means.reset()
        self.last = {}


class Weigher(Reported):
    """Settings, state, and the weights of each step; :class:`setpoint.Barrier` is its front."""

    def __init__(
        self,
        push: Push,
        *,
        fraction: float | None,
        optimizer: torch.optim.Optimizer | None,
        gain: float,
        every: int,
        cap: float,
        memory: float,
        nonfinite: Literal["raise", "skip"],
    ) -> None:
        super().__init__()
        if (fraction is None) != (optimizer is None):
            raise TypeError("fraction= and optimizer= go together: it divides by the step.")
        if nonfinite not in ("raise", "skip"):
            raise ValueError(f"nonfinite must be 'raise' or 'skip'; got {nonfinite!r}.")
        self.push = push
        self.fraction = None if fraction is None else share(fraction, "fraction", ends=False)
        self.gain = at_least_zero(gain, "gain")
        self.every = whole(every, "every", least=1)
        self.cap = positive(cap, "cap")
        self.memory = share(memory, "memory", ends=False)
        self.nonfinite = nonfinite
        self._optimizer = optimizer

    def weigh(self, step: LossGradients, *, keep_graph: bool = False) -> Vector | None:
        """The weights of this step's losses, entered into the ledger; None if it is refused."""
        losses, ledger = step.losses, self.ledger
        ledger.check(losses.kinds)
        count = ledger.count("steps")
        known = ledger.numbers["weights"] if count % self.every else None
        trouble = step.trouble(count)
        if not trouble:
            gram = step.differentiate(known, keep_graph=keep_graph)
            trouble = step.trouble(count, gram)
        if trouble:
            self._refuse(step, trouble)
            return None
        ledger.open(losses.kinds)
        gaps, push = losses.gaps(step.values), self._push()
        floors = self._floors(losses, gaps, push)
        direction = None
        if known is not None:
            step.own(self.means)
        else:
            direction = self._direction(step, gram, gaps, floors, push)
        self.last = book(ledger, losses, step.values, floors, direction, gram)
        return known if direction is None else direction.weights

    def _direction(
        self, step: LossGradients, gram: Vector, gaps: Vector, floors: Vector, push: Push
    ) -> Direction:
        if step.losses.ranked:
            seen = self._look()
            return ranked(step.with_means(self.means, seen.pace), gaps, seen, push)
        return constrained(gram, gaps, step.losses.free, floors, push, cap=self.cap)

    def _look(self) -> Seen:
        """What earlier steps said, as one more is seen."""
        ledger = self.ledger
        looks = ledger.count("looks")
        pace = max(1 - self.memory, 1 / (1 + looks))
        spent = (1 - pace) ** 2 * float(ledger.numbers["spent"]) + pace**2
        ledger.numbers["spent"], ledger.numbers["looks"] = np.array(spent), np.array(looks + 1.0)
        learnt = {name: ledger.numbers[name] for name in LEARNT}
        return Seen(learnt, pace, spent, looks, ledger.numbers["weights"])

    def _push(self) -> Push:
        """The push at the present learning rate."""
        if self.fraction is None or self._optimizer is None:
            return self.push
        rate = max(float(group["lr"]) for group in self._optimizer.param_groups)
        return replace(self.push, alpha=self.fraction / rate) if rate > 0 else self.push

    def _floors(self, losses: Losses, gaps: Vector, push: Push) -> Vector:
        if losses.ranked:
            return self.ledger.numbers["floor"]
        return raise_floors(self.ledger, gaps, losses.free, alpha=push.alpha, gain=self.gain)

    def _refuse(self, step: LossGradients, trouble: str) -> None:
        """A batch that is not finite: no state changes but the count of such batches."""
        if step.scaler is not None and step.scaler.is_enabled():
            step.overflow()  # one that is switched off would let the step pass
        elif self.nonfinite == "raise":
            raise FloatingPointError(trouble)
        skipped = self.ledger.numbers["skipped"] = self.ledger.numbers["skipped"] + 1
        self.last = {"status": f"skipped: {trouble}", "skipped": int(skipped)}

    def options(self) -> dict[str, Any]:
        """The settings, for the repr of whoever has them."""
        alpha = {"alpha": self.push.alpha} if self.fraction is None else {"fraction": self.fraction}
        return {
            **alpha,
            "beta": self.push.beta,
            "tau": self.push.tau,
            "gain": self.gain,
            "every": self.every,
            "cap": self.cap,
            "memory": self.memory,
            "nonfinite": self.nonfinite,
        }


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
        step = LossGradients(losses, self._params, self._group, scaler, rows)
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
        step = LossGradients(losses, self._params, self._group, rows=rows)
        weights = self.weigh(step, keep_graph=True)
        return step.nothing() if weights is None else step.surrogate(weights)

    def average_over(self, group: torch.distributed.ProcessGroup | None) -> None:
        """Average over these processes from now on, unless others were named at first."""
        self._group = self._group or group

    def __repr__(self) -> str:
        listed = ", ".join(f"{key}={value!r}" for key, value in self.options().items())
        return f"{type(self).__name__}({len(self._params)} parameters, {listed})"

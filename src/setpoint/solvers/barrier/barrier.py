"""Dynamic barrier (Gong, Liu, Liu: Bi-objective trade-off with dynamic barrier gradient descent).

Any losses of any model: make one small while others keep their bounds, or only where that does not
hurt more important ones. Gradients are combined with multipliers that are found anew at every step,
so there are no weights of losses to tune.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from setpoint._checks import share, whole
from setpoint.solvers.barrier.constraints import Constraint, Losses, collect
from setpoint.solvers.barrier.gradients import LossGradients, trainable
from setpoint.solvers.barrier.lexicographic import Lexicographic
from setpoint.solvers.barrier.quadratic_program import Vector
from setpoint.solvers.barrier.rules import DirectionRule, KeepBounds, Printed, Push
from setpoint.solvers.barrier.state import BarrierReport, BarrierState, step_record, summary


class Barrier(nn.Module):
    """Fills ``.grad`` with a direction that lowers one loss and keeps bounds on others.

    Args:
        params: The parameters to train, such as ``model.parameters()``.
        alpha: How fast broken bounds are mended (eq. 8): ``alpha`` times the learning rate is the
            share of the gap that a small step of plain gradient descent closes.
        fraction: That share itself, instead of ``alpha``; needs ``optimizer``.
        optimizer: Where ``fraction`` reads the learning rate, at every step.
        beta: The largest push of a bound, in units of the loss's own descent (eq. 8).
        tau: The power of the gradient's length in it (Proposition 3.7).
        gain: The gain of the term that holds bounds on average over minibatches; 0 for exact
            gradients.
        every: Find multipliers anew every so many steps; in between one backward pass is enough.
        cap: How much bounds that oppose each other may amplify their multipliers.
        memory: The memory of the running means of gradients (``after=``), which tell what hurts a
            loss from the noise of a batch: 0.99 looks at about 100 batches.
        nonfinite: What to do if a loss or gradient is NaN or infinite: ``"raise"``, or ``"skip"``,
            which leaves ``.grad`` and all state alone and counts the step.
        rule: ``"corrected"``, or ``"printed"`` for Algorithm 1 of the paper as it stands: bounds
            without ``gain``, priorities without a vanishing share.
        group: The process group to average over; the default one under ``torch.distributed``.

    Examples:
        >>> from setpoint import Barrier
        >>> from setpoint.solvers import at_least
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
        rule: Literal["corrected", "printed"] = "corrected",
        group: torch.distributed.ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        if (fraction is None) != (optimizer is None):
            raise TypeError("fraction= and optimizer= go together: it divides by the step.")
        if nonfinite not in ("raise", "skip"):
            raise ValueError(f"nonfinite must be 'raise' or 'skip'; got {nonfinite!r}.")
        if rule not in ("corrected", "printed"):
            raise ValueError(f"rule must be 'corrected' or 'printed'; got {rule!r}.")
        self.rule = rule
        self.push = Push(alpha, beta, tau)
        self.fraction = None if fraction is None else share(fraction, "fraction", ends=False)
        self.every = whole(every, "every", least=1)
        self.nonfinite = nonfinite
        self.bounds = KeepBounds(gain=gain, cap=cap)
        self.priorities = Lexicographic(memory=memory)
        self.printed = Printed(cap=cap)
        self.state = BarrierState()
        self.last: dict[str, Any] = {}
        self._optimizer = optimizer
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
        weights = self._weigh(step)
        if weights is not None:
            step.write(weights, self._rule(losses).scales(self.state, len(self._params)))
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
        weights = self._weigh(step, keep_graph=True)
        if weights is None:
            return step.nothing()
        return step.surrogate(weights, self._rule(losses).scales(self.state, len(self._params)))

    def report(self) -> BarrierReport:
        """All steps so far: a dict of plain numbers that prints as one line per entry.

        Lists have one number per bound, in the order given. ``multiplier`` is the price of the
        bound, ``slack`` how far it is from being broken, ``binding`` the share of steps in which it
        changed the direction, ``noise_ratio`` how many times larger the multiplier is than that of
        a single batch; in lexicographic training, how many times longer a batch's squared gradient
        is than the true one.
        """
        return summary(self.last, self.state)

    @property
    def status(self) -> str:
        """The first entry of the report: *held*, *slack*, *opposed*, *settled*, and so on."""
        return str(self.report()["status"])

    def reset(self) -> None:
        """Forget all steps, before other losses are trained."""
        self.state.reset()
        self.priorities.reset()
        self.last = {}

    def average_over(self, group: torch.distributed.ProcessGroup | None) -> None:
        """Average over these processes from now on, unless the constructor named others."""
        self._group = self._group or group

    def _rule(self, losses: Losses) -> DirectionRule:
        if self.rule == "printed":
            return self.printed
        return self.priorities if losses.ranked else self.bounds

    def _weigh(self, step: LossGradients, *, keep_graph: bool = False) -> Vector | None:
        """The weights of this step's losses, taken into the state; None if it is skipped."""
        losses, state = step.losses, self.state
        state.check(losses.kinds)
        count = state.count("steps")
        known = state.numbers["weights"] if count % self.every else None
        trouble = step.trouble(count)
        if not trouble:
            step.differentiate(known, keep_graph=keep_graph)
            trouble = step.trouble(count)
        if trouble:
            self._skip(step, trouble)
            return None
        state.open(losses.kinds)
        rule, gaps, push = self._rule(losses), losses.gaps(step.values), self._push()
        rule.observe(state, losses, gaps, push)
        direction = rule.direction(state, step, gaps, push) if known is None else None
        state.add(step.values, direction, step.gram)
        self.last = step_record(losses, step.values, direction, state)
        return known if direction is None else direction.weights

    def _push(self) -> Push:
        """The push at the present learning rate."""
        if self.fraction is None or self._optimizer is None:
            return self.push
        rate = max(float(group["lr"]) for group in self._optimizer.param_groups)
        return replace(self.push, alpha=self.fraction / rate) if rate > 0 else self.push

    def _skip(self, step: LossGradients, trouble: str) -> None:
        """Skip a batch that is not finite; only the count of such batches changes."""
        if step.scaler is not None and step.scaler.is_enabled():
            step.overflow()  # a scaler that is switched off would let the step pass
        elif self.nonfinite == "raise":
            raise FloatingPointError(trouble)
        skipped = self.state.numbers["skipped"] = self.state.numbers["skipped"] + 1
        self.last = {"status": f"skipped: {trouble}", "skipped": int(skipped)}

    def __repr__(self) -> str:
        alpha = {"alpha": self.push.alpha} if self.fraction is None else {"fraction": self.fraction}
        options = {
            **alpha,
            "beta": self.push.beta,
            "tau": self.push.tau,
            "gain": self.bounds.gain,
            "every": self.every,
            "cap": self.bounds.cap,
            "memory": self.priorities.memory,
            "nonfinite": self.nonfinite,
            "rule": self.rule,
        }
        listed = ", ".join(f"{key}={value!r}" for key, value in options.items())
        return f"{type(self).__name__}({len(self._params)} parameters, {listed})"

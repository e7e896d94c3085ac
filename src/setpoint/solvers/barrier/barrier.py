"""Dynamic barrier (Gong, Liu, Liu: Bi-objective trade-off with dynamic barrier gradient descent).

Any two losses of any model: make one small while others keep their bounds, or only where that does
not hurt a more important one. The gradients are combined with multipliers that are computed anew
at every step, so there are no loss weights to tune.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.solvers.barrier.constraints import Constraint, listed_constraints, scalar
from setpoint.solvers.barrier.gradients import combined, gram_of, rows_of, trainable, write
from setpoint.solvers.barrier.noise import shifted
from setpoint.solvers.barrier.priorities import ranked
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import solve
from setpoint.solvers.barrier.report import Report
from setpoint.thresholds import State

Constraints = Constraint | Sequence[Constraint]


class Barrier(State):
    """Fills ``.grad`` with a direction that lowers a loss and keeps bounds on others.

    Args:
        params: The parameters to train, such as ``model.parameters()``.
        alpha: How fast a broken bound is mended (eq. 8).
        beta: The most that is asked for, relative to the loss's own steepest descent (eq. 8).
        tau: The power of the gradient's length in it (Proposition 3.7).
        gain: Of the integral term that holds bounds on average over minibatches; 0 is as printed.
        cap: The largest amplification of a multiplier when constraints oppose each other.

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

    multipliers: Tensor
    shift: Tensor
    binding: Tensor
    steps: Tensor
    _flexible = ("multipliers", "shift", "binding")

    def __init__(
        self,
        params: Iterable[Tensor],
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        tau: float = 2.0,
        gain: float = 0.0,
        cap: float = 1e4,
    ) -> None:
        super().__init__()
        self._params = trainable(params)
        self.push = Push(alpha, beta, tau)
        self.gain = gain
        self.cap = positive(cap, "cap")
        for name in self._flexible:
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self._last: dict[str, Any] = {}

    def backward(
        self,
        objective: Tensor,
        *,
        subject_to: Constraints | None = None,
        after: Tensor | Sequence[Tensor] | None = None,
        lower: float | Sequence[float | None] | None = None,
    ) -> dict[str, Any]:
        """Add the combined direction to ``.grad``; returns this step in plain numbers."""
        scalar(objective, "backward")
        if (subject_to is None) == (after is None):
            raise TypeError("backward takes subject_to=[at_most(loss, 0.35)] or after=loss.")
        if after is not None:
            many: Any = list(after) if isinstance(after, (list, tuple)) else [after]
            return self._lexicographic(objective, many, lower)
        return self._constrained(objective, listed_constraints(subject_to))

    def _constrained(self, objective: Tensor, constraints: list[Constraint]) -> dict[str, Any]:
        gaps_ = [each.gap().reshape(()) for each in constraints]
        rows = rows_of([*gaps_, objective], self._params, [*map(str, constraints), "objective"])
        gram = gram_of(rows)
        m = len(constraints)
        values = torch.stack(
            [g.detach().double() for g in gaps_] + [objective.detach().double().reshape(())]
        ).tolist()
        gaps = np.array(values[:-1])
        self._size(m)
        free = np.array([each.sense == "==" for each in constraints])
        shift = self.shift.numpy()
        lengths = np.sqrt(np.diagonal(gram))
        pushes = np.array(
            [self.push(gaps[i], lengths[i], both_ways=bool(free[i])) for i in range(m)]
        )
        pushes = pushes + self.push.alpha * shift
        found = solve(gram[:m, :m], pushes - gram[:m, m], free, cap=self.cap)
        weights = [*found.multipliers.tolist(), 1.0]
        write(combined(rows, weights), self._params)
        self.shift = torch.as_tensor(shifted(shift, gaps, free, self.gain))
        self._note(found.multipliers)
        v2 = float(np.array(weights) @ gram @ np.array(weights))
        status = "opposed" if found.opposed else "held" if (gaps <= 1e-3).all() else "mending"
        return self._remember(
            objective=values[-1],
            multiplier=found.multipliers,
            slack=-gaps,
            push=pushes,
            kkt=v2,
            status=status,
        )

    def _lexicographic(self, objective: Tensor, many: list[Tensor], lower: Any) -> dict[str, Any]:
        for each in many:
            scalar(each, "after")
        lowers = list(lower) if isinstance(lower, (list, tuple)) else [lower] * len(many)
        rows = rows_of(
            [*many, objective],
            self._params,
            [*(f"after[{i}]" for i in range(len(many))), "objective"],
        )
        gram = gram_of(rows)
        values = torch.stack([g.detach().double().reshape(()) for g in [*many, objective]]).tolist()
        gaps = np.array(
            [
                math.inf if low is None else value - low
                for value, low in zip(values, lowers, strict=False)
            ]
        )
        self._size(len(many))
        found = ranked(gram, gaps, self.push, cap=self.cap)
        write(combined(rows, found.weights.tolist()), self._params)
        self._note(found.multipliers)
        return self._remember(
            objective=values[-1],
            main=values[:-1],
            multiplier=found.multipliers,
            push=found.pushes,
            residual=found.residual,
            status="settled" if found.residual < 0.01 else "descending",
        )

    def _size(self, m: int) -> None:
        if len(self.shift) != m:
            if len(self.shift):
                raise ValueError(f"This barrier held {len(self.shift)} losses before, now {m}.")
            for name in self._flexible:
                setattr(self, name, torch.zeros(m, dtype=torch.float64))

    def _note(self, multipliers: Any) -> None:
        self.multipliers = torch.as_tensor(multipliers, dtype=torch.float64).clone()
        self.binding = self.binding + (self.multipliers != 0)
        self.steps += 1

    def _remember(self, **numbers: Any) -> dict[str, Any]:
        self._last = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in numbers.items()}
        return dict(self._last)

    def report(self) -> Report:
        """How training went so far: a dict that prints as words."""
        steps = int(self.steps)
        if not steps:
            return Report(status="not started")
        return Report({**self._last, "binding": (self.binding / steps).tolist(), "steps": steps})

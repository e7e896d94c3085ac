"""From the losses of a step to their weights: what happens between ``backward`` and ``.grad``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from setpoint._checks import at_least_zero, positive, share, whole
from setpoint.solvers.barrier.directions import Direction, constrained
from setpoint.solvers.barrier.ledger import LEARNT
from setpoint.solvers.barrier.losses import Losses
from setpoint.solvers.barrier.noise import raise_floors
from setpoint.solvers.barrier.priorities import ranked
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import Vector
from setpoint.solvers.barrier.report import book
from setpoint.solvers.barrier.reported import Reported
from setpoint.solvers.barrier.shares import Seen
from setpoint.solvers.barrier.step import Step


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

    def weigh(self, step: Step, *, keep_graph: bool = False) -> Vector | None:
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
        self, step: Step, gram: Vector, gaps: Vector, floors: Vector, push: Push
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

    def _refuse(self, step: Step, trouble: str) -> None:
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

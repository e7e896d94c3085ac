"""Where a criterion puts its thresholds at every batch, and what it keeps of the batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.axes.arrays import quiet
from setpoint.axes.scan import Hold, place
from setpoint.problems import Problem
from setpoint.rates import Where
from setpoint.solvers.fading import Fading
from setpoint.solvers.schedule import Schedule, Seat, representable
from setpoint.solvers.snapshot import Snapshot
from setpoint.steps import Hard, Step
from setpoint.thresholds import Memory, Reading, Sample, alike, read_arrays, spread


class Placing(Fading):
    """The mechanics of :class:`setpoint.Implicit` that a user need not see."""

    thresholds: Tensor
    _flexible = ("thresholds",)
    problem: Problem
    step: Step
    widening: float
    flatness: float
    slope_floor: float
    strict: bool
    memory: Memory
    schedule: Schedule
    _targets: list[Hold]
    _slices: tuple[Where, ...]
    _last: Snapshot | None

    def _sample(
        self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Any
    ) -> Sample:
        """The batch as it is computed with: in tensors if more is done with it than to hold."""
        batch = read_arrays(self._slices, scores, labels, weights, groups)
        plain = self.schedule.every_batch and not (self.memory.capacity or self.flatness)
        return batch if plain else batch.tensors()

    def _read(self, batch: Sample, steps: bool, share: Tensor | float) -> tuple[Reading, Seat]:
        """Where the thresholds sit, and how the batch is read around them."""
        whole = own = batch
        if self.memory.capacity:
            whole = batch.joined(self.memory.sample(batch))
            own = batch.standing_for(whole)
        cuts = whole.cuts(self._slices)
        if self.schedule.every_batch:
            seat = Seat.of(place(cuts, self.problem, self._targets), batch.scores)
        else:
            seat = self.schedule.seat(batch, self.problem, steps)
        with quiet(cuts.xp):
            width = self.step.width_of(spread(cuts)) * self.widening**share
        width = alike((width + (width == 0))[:, None], batch.scores)
        return Reading(self.step, seat.marginal, width, whole, own), seat

    def _remember(self, scores: Tensor, batch: Sample, seat: Seat) -> None:
        """A step was taken: keep what the next one, or a checkpoint, needs."""
        assert self._last is not None
        if self.strict and not torch.compiler.is_compiling():
            self._last.raise_if_not_held()
        if self.schedule.follow is not None:
            motion = self._last.held.motion(self._last.reading)
            self.schedule.watch(scores, motion, self._row_of_all)
        found = representable(seat, scores.dtype).squeeze(0)
        if self.thresholds.shape != found.shape:
            self.thresholds = torch.empty_like(found)
        self.thresholds.copy_(found)
        self.step_count.add_(1)
        if self.memory.capacity:
            self.memory.add(batch)

    def __repr__(self) -> str:
        follow = None if self.schedule.follow is None else f"{len(self.schedule.follow)} parameters"
        options = {
            "main": self.main,
            "share": self.share,
            "steps": self.steps,
            "end": self.end,
            "step": self.step,
            "widening": self.widening,
            "memory": self.memory.capacity,
            "correct_every": self.schedule.correct_every,
            "correction_batches": self.schedule.correction_batches,
            "follow": follow,
            "flatness": self.flatness,
            "slope_floor": self.slope_floor,
            "strict": self.strict,
        }
        recipe = ", ".join([str(self.problem), *(f"{k}={v!r}" for k, v in options.items())])
        return f"{type(self).__name__}({recipe})"


def check(problem: Problem, step: Step, share: object, memory: int) -> None:
    """Refuse what cannot be trained for, with, or together."""
    if not isinstance(problem, Problem):
        raise TypeError(
            "Implicit takes a Problem, such as Problem(minimize=fnr, subject_to=fpr <= 0.01); "
            f"got {problem!r}."
        )
    if not isinstance(step, Step):
        raise TypeError(f"step must be a step such as Sigmoid(); got {step!r}.")
    if isinstance(step, Hard):
        raise ValueError("A hard step has no gradient; train with Sigmoid(), and evaluate hard.")
    if share == 0 and memory:
        raise ValueError(
            "A memory needs a main loss (share > 0): with the bare loss thresholds from old scores "
            "make networks collapse."
        )

"""When thresholds are found: at every batch, or as published, every so often and followed between.

Algorithm 1 of the paper corrects the threshold every tau steps on k collected batches; in between
it moves with the weights, ``t + <d t / d weights, weights now - weights then>`` (line 10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._checks import whole
from setpoint.axes.scan import Placement, place
from setpoint.distributed import Row
from setpoint.problems import Problem
from setpoint.rates import Array
from setpoint.thresholds import Memory, Sample, State, alike, array_of, tensor_of

Sum = Callable[[Row, Sequence[Tensor]], Row]
"""Makes the gradient of all ranks' examples from that of this rank's."""


@dataclass(frozen=True)
class Seat:
    """Where thresholds sit, all ``[c, m]``; see :class:`setpoint.axes.scan.Placement`."""

    marginal: Array
    threshold: Array
    holding: tuple[Array, ...]
    fresh: bool = True  # found on this very batch

    @classmethod
    def of(cls, placed: Placement, like: Array) -> Seat:
        """The seat that a scan found, in tensors or in numpy as the scores that it is ``like``."""
        found = (placed.marginal, placed.threshold, *placed.holding)
        marginal, threshold, *holding = (alike(x, like) for x in found)
        return cls(marginal, threshold, tuple(holding))


def representable(seat: Seat, dtype: torch.dtype) -> Tensor:
    """The thresholds in the precision of the scores, deciding the same.

    Comparing scores with a number rounds the number to their precision first. Half way between two
    scores, that may be the upper one; then the threshold is the lower one.
    """
    exact, marginal = tensor_of(seat.threshold), array_of(seat.marginal)
    rounded = exact.to(dtype).to(exact.dtype)
    too_high = (array_of(seat.threshold) < marginal) & (array_of(rounded) >= marginal)
    if isinstance(too_high, np.ndarray) and not too_high.any():
        return rounded
    return torch.where(tensor_of(too_high), tensor_of(2 * seat.threshold - seat.marginal), rounded)


class Schedule(State):
    """Corrections every ``correct_every`` steps on the last ``correction_batches`` batches."""

    marginal: Tensor
    threshold: Tensor
    holding: Tensor
    age: Tensor

    def __init__(
        self,
        points: int,
        correct_every: int = 1,
        correction_batches: int = 1,
        follow: Iterable[nn.Parameter] | None = None,
    ) -> None:
        super().__init__()
        self.correct_every = whole(correct_every, "correct_every", least=1)
        self.correction_batches = whole(correction_batches, "correction_batches", least=1)
        self.follow = None if follow is None else [p for p in follow if p.requires_grad]
        _check_follow(self.follow, points, self.correct_every)
        self.history = Memory(0, elastic=True)
        self._motion: list[tuple[Tensor, Tensor | None]] = []  # weights then, d t / d weights
        if not self.every_batch:
            self._flexible = ("marginal", "threshold", "holding")
            for name in self._flexible:
                self.register_buffer(name, torch.empty(0))
            self.register_buffer("age", torch.zeros((), dtype=torch.long))
            self.register_state_dict_pre_hook(_catch_up)  # type: ignore[no-untyped-call]

    @property
    def every_batch(self) -> bool:
        """Whether each batch finds its own thresholds: then there is nothing to keep."""
        return self.correct_every == 1 and self.correction_batches == 1

    def seat(self, batch: Sample, problem: Problem, training: bool) -> Seat:
        """The thresholds to use for ``batch``; in training, time passes."""
        if training:
            if not self.history.capacity:
                self.history.capacity = self.correction_batches * batch.scores.shape[1]
            self.history.add(batch)
        if self.marginal.device != batch.scores.device:  # loaded elsewhere than it is used
            self.to(batch.scores.device)
        if not training and self.marginal.numel() == 0:
            return Seat.of(place(batch.cuts(problem.slices), problem), batch.scores)
        if training and int(self.age) % self.correct_every == 0:
            known = self.history.sample(batch)
            found = Seat.of(place(known.cuts(problem.slices), problem), batch.scores)
            self.marginal, self.threshold = found.marginal, found.threshold
            self.holding = torch.stack(found.holding) if found.holding else found.marginal[:0]
            self._motion = []
        self.catch_up()
        if training:
            self.age = self.age + 1
        return Seat(self.marginal, self.threshold, tuple(self.holding.bool()), fresh=False)

    def watch(self, scores: Tensor, by_score: Tensor, of_all_ranks: Sum) -> None:
        """Note how the threshold depends on the weights, for the update after the step."""
        if self.follow is None:
            return
        if len(by_score) > 1:
            raise ValueError(f"follow= moves one threshold; got scores of {len(by_score)} outputs.")
        upstream = by_score.T.reshape(scores.shape).to(scores.dtype)
        gradients = torch.autograd.grad(
            scores, self.follow, upstream, retain_graph=True, allow_unused=True
        )
        if all(gradient is None for gradient in gradients):
            raise ValueError(
                "follow= got parameters that the scores do not depend on; pass those of the model "
                "that made them (which accumulate() hides: follow= and it exclude each other)."
            )
        weights = [p.detach().clone() for p in self.follow]
        whole = of_all_ranks(list(gradients), self.follow)
        self._motion = list(zip(weights, whole, strict=True))

    def catch_up(self) -> None:
        """Move the threshold by what the weights have moved since it was last used."""
        if not self._motion or self.follow is None:
            return
        moved = self.marginal.new_zeros(())
        for p, (then, gradient) in zip(self.follow, self._motion, strict=True):
            if gradient is not None:
                moved = moved + (gradient * (p.detach() - then)).sum()
        self.marginal = self.threshold = self.marginal + moved
        now = (p.detach().clone() for p in self.follow)  # from here it may be followed further
        self._motion = [(p, g) for p, (_, g) in zip(now, self._motion, strict=True)]


def _catch_up(schedule: Schedule, prefix: str, keep_vars: bool) -> None:
    schedule.catch_up()


def _check_follow(follow: list[nn.Parameter] | None, points: int, correct_every: int) -> None:
    if follow is None:
        return
    if points != 1:
        raise ValueError(
            f"follow= moves one threshold, and this problem has {points} (nor does the paper)."
        )
    if correct_every == 1:
        raise ValueError("follow= moves the threshold between corrections: set correct_every > 1.")
    if not follow:
        raise ValueError("follow= got no parameter that is trained; pass model.parameters().")

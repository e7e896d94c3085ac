"""What a criterion remembers of earlier batches: scores, and thresholds between corrections.

All of it lives in buffers: ``state_dict()``, ``.to(device)`` and checkpoints know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._checks import whole
from setpoint.axes.axis import Outcome
from setpoint.axes.everyone import Everyone, PlainOutcome
from setpoint.axes.sample import Sample
from setpoint.axes.scan import Placement
from setpoint.distributed import Row

Sum = Callable[[Row, Sequence[Tensor]], Row]
"""Makes the gradient of all ranks' examples from that of this rank's."""


class State(nn.Module):
    """A module whose buffers keep their precision, and take their shapes from a checkpoint.

    ``model.half()`` is for weights: counts and thresholds stay in the precision they were found in
    and only move between devices.
    """

    _flexible: tuple[str, ...] = ()
    """Buffers whose shape is not known before the first batch."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> State:
        kept = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in kept.items():
            after = self._buffers[name]
            if before is not None and after is not None and after.dtype != before.dtype:
                self._buffers[name] = before.to(after.device)
        return self

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in self._flexible:
            saved = state.get(prefix + name)
            if saved is not None:
                device = getattr(self, name).device
                setattr(self, name, torch.zeros_like(saved, device=device))
        super()._load_from_state_dict(state, prefix, *rest)


class Memory(State):
    """The last ``capacity`` examples seen, without gradients; a ring, oldest out first.

    Empty places have weight zero and so are absent. The ring takes its shape from the first batch,
    or from a checkpoint.

    Args:
        capacity: How many examples to remember.
        elastic: Whether a checkpoint may bring another capacity.
    """

    scores: Tensor
    columns: Tensor
    position: Tensor

    _flexible = ("scores", "columns")

    def __init__(self, capacity: int, *, elastic: bool = False) -> None:
        super().__init__()
        self.capacity = capacity
        self.elastic = elastic
        self.register_buffer("scores", torch.empty(0, 0))
        self.register_buffer("columns", torch.empty(0, 0, 0))
        self.register_buffer("position", torch.zeros((), dtype=torch.long))

    def sample(self, like: Sample) -> Sample:
        """What is remembered, shaped ``like`` a batch."""
        if self.scores.numel() == 0:
            c, _, k = like.columns.shape
            self.scores = self.scores.new_zeros(c, self.capacity, dtype=torch.float64)
            self.columns = self.columns.new_zeros(c, self.capacity, k, dtype=torch.float64)
        if len(self.scores) != len(like.scores):
            raise ValueError(
                f"The memory holds {len(self.scores)} outputs; got {len(like.scores)}."
            )
        return Sample(self.scores.cpu().numpy(), self.columns.cpu().numpy(), like.slices)

    def add(self, batch: Sample) -> None:
        """Remember a batch (the end of it, if it is longer than the memory)."""
        kept = self.sample(batch)
        scores, columns = (x[:, -self.capacity :] for x in (batch.scores, batch.columns))
        index = (int(self.position) + np.arange(scores.shape[1])) % self.capacity
        for name, now, new in (
            ("scores", kept.scores, scores),
            ("columns", kept.columns, columns),
        ):
            changed = now.copy()
            changed[:, index] = new
            setattr(self, name, torch.from_numpy(changed).to(self.position.device))
        self.position = (self.position + scores.shape[1]) % self.capacity

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        saved = state.get(prefix + "scores")
        held = 0 if saved is None else saved.shape[-1]
        if held and not self.elastic and held != self.capacity:
            raise ValueError(
                f"The checkpoint remembers {held} scores, this criterion memory={self.capacity}: "
                f"build it with memory={held}."
            )
        super()._load_from_state_dict(state, prefix, *rest)
        self.capacity = held or self.capacity


class Schedule(State):
    """Thresholds found every ``correct_every`` steps on the last ``correction_batches`` batches.

    Algorithm 1 of ICO: in between they move with the weights of the model,
    ``t + <d t / d weights, weights now - weights then>`` (line 10), if these are given.

    Args:
        points: How many thresholds there are.
        correct_every: Steps between corrections; 1 finds thresholds on every batch.
        correction_batches: Batches that a correction looks at.
        follow: Parameters of the model that a threshold follows.
        correct_on: The ``"last"`` batches before a correction is due, or the ``"next"`` ones.
    """

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
        correct_on: Literal["last", "next"] = "last",
    ) -> None:
        super().__init__()
        if correct_on not in ("last", "next"):
            raise ValueError(f"correct_on must be 'last' or 'next'; got {correct_on!r}.")
        self.correct_every = whole(correct_every, "correct_every", least=1)
        self.correction_batches = whole(correction_batches, "correction_batches", least=1)
        self.delay = self.correction_batches - 1 if correct_on == "next" else 0
        self.follow = None if follow is None else [p for p in follow if p.requires_grad]
        _check_follow(self.follow, points, self.correct_every)
        # whether each batch finds its own thresholds: then there is nothing to keep
        self.every_batch = self.correct_every == 1 and self.correction_batches == 1
        self.history = Memory(0, elastic=True)
        self._motion: list[tuple[Tensor, Tensor | None]] = []  # weights then, d t / d weights
        if not self.every_batch:
            self._flexible = ("marginal", "threshold", "holding")
            for name in self._flexible:
                self.register_buffer(name, torch.empty(0))
            self.register_buffer("age", torch.zeros((), dtype=torch.long))
            self.register_state_dict_pre_hook(_catch_up)  # type: ignore[no-untyped-call]

    def placement(self, batch: Sample, axis: Everyone, training: bool) -> Placement | None:
        """The thresholds to use for ``batch``, None for its own; in training, time passes."""
        if training:
            if not self.history.capacity:
                self.history.capacity = self.correction_batches * batch.scores.shape[1]
            self.history.add(batch)
        if not training and self.marginal.numel() == 0:
            return None
        if training and self._is_due(int(self.age)):
            known = self.history.sample(batch)
            with np.errstate(all="ignore"):
                found = axis.choose(known)
            self.marginal, self.threshold, self.holding = (
                torch.from_numpy(np.asarray(x, dtype=np.float64)).to(self.age.device)
                for x in (found.marginal, found.threshold, found.holding or found.marginal[:0])
            )
            self._motion = []
        self.catch_up()
        if training:
            self.age = self.age + 1
        marginal, threshold, holding = (
            x.cpu().numpy() for x in (self.marginal, self.threshold, self.holding)
        )
        return Placement(threshold, marginal, list(holding > 0))

    def _is_due(self, age: int) -> bool:
        """Whether thresholds are found at this step; the first one has no others to take."""
        return age == 0 or (age >= self.delay and (age - self.delay) % self.correct_every == 0)

    def watch(self, scores: Tensor, outcome: Outcome | None, of_all_ranks: Sum) -> None:
        """Note how the threshold depends on the weights, for the update after the step."""
        if self.follow is None or not isinstance(outcome, PlainOutcome):
            return
        by_score = outcome.motion()
        if len(by_score) > 1:
            raise ValueError(f"follow= moves one threshold; got scores of {len(by_score)} outputs.")
        upstream = torch.from_numpy(by_score).T.reshape(scores.shape).to(scores)
        gradients = torch.autograd.grad(
            scores, self.follow, upstream, retain_graph=True, allow_unused=True
        )
        if all(gradient is None for gradient in gradients):
            raise ValueError(
                "follow= got parameters that the scores do not depend on; pass those of the model "
                "that made them (which accumulate() hides: follow= and it exclude each other)."
            )
        weights = [p.detach().clone() for p in self.follow]
        found = of_all_ranks(list(gradients), self.follow)
        self._motion = list(zip(weights, found, strict=True))

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

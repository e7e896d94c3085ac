"""Ideas for the default that look at the model as well as at its scores."""

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from setpoint.solvers.schedule import Seat
from setpoint.thresholds import Sample
from torch import Tensor, nn

from benchmarks.points.stack import Stack, Stepper
from setpoint import Implicit
from setpoint.axes.scan import place as placed
from setpoint.datasets import DataSplit
from setpoint.solvers.main_loss import attach, mix
from setpoint.train import retarget

MIXED = 0.2  # of the Beta distribution that mixes two examples


@runtime_checkable
class Seeing(Protocol):
    """A loss that is shown the models and the rows of a batch before it is called."""

    def see(self, stepper: Stepper, rows: Tensor, columns: slice) -> None:
        """``rows`` [n, inputs] go into the models; ``columns`` of the stack are the loss's own."""


@runtime_checkable
class Finishing(Protocol):
    """A loss that has something to do with the averaged weights at the end of a run."""

    def finish(self, stepper: Stepper, columns: slice, parts: DataSplit) -> None:
        """Change the averaged weights of its own columns."""


class InTensors(Implicit):
    """Computes in tensors throughout, for ideas that are written in them."""

    def _sample(self, *given: Any) -> Sample:
        return super()._sample(*given).tensors()


class AveragedThreshold(InTensors):
    """Thresholds are found on what the averaged model makes of the batch."""

    _seen: Tensor | None = None

    def see(self, stepper: Stepper, rows: Tensor, columns: slice) -> None:
        """Score the batch by the averaged weights."""
        self._seen = torch.as_tensor(stepper.scores(rows, averaged=True)[:, columns]).double().T

    def _read(self, batch: Sample, *given: Any) -> Any:
        reading, seat = super()._read(batch, *given)
        assert self._seen is not None
        slow = Sample(self._seen, batch.columns)
        found = placed(slow.cuts(self._slices), self.problem, self._targets)
        seat = Seat.of(found, slow.scores)
        return replace(reading, at=seat.marginal, _kernels=[]), seat


class Mixup(InTensors):
    """The main loss sees mixed examples, the implicit loss the batch as it is."""

    _seen: tuple[Stack, Tensor, slice] | None = None
    _mixed: Tensor

    def see(self, stepper: Stepper, rows: Tensor, columns: slice) -> None:
        """Keep what mixed examples are made of."""
        self._seen = stepper.stack, rows, columns

    def _main(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor | None:
        assert self._seen is not None
        stack, rows, columns = self._seen
        own, other = mixing(int(self.step_count), len(rows))
        self._mixed = stack(own * rows + (1 - own) * rows[other])[:, columns]
        soft = own * labels + (1 - own) * labels[other]
        return (torch.sigmoid(self._mixed.detach()) - soft) / soft.numel()

    def _loss(self, scores: Tensor, value: Tensor, gradient: Tensor, *more: Any) -> Tensor:
        sound, main, share = more
        gradient = torch.where(sound[:, None], gradient, 0.0)
        implicit = mix(main.T, gradient, share).T - share * main
        found = attach(scores, value.mean().to(scores.dtype), implicit)
        return found + attach(self._mixed, found.new_zeros(()), share * main)


def mixing(step: int, n: int) -> tuple[float, Tensor]:
    """The share that every example keeps at this step, and who it is mixed with."""
    random = np.random.default_rng(step)
    return float(random.beta(MIXED, MIXED)), torch.as_tensor(random.permutation(n))


class HeadAgain(Implicit):
    """At the end the head is trained again on cached features; kept where validation prefers it."""

    def finish(self, stepper: Stepper, columns: slice, parts: DataSplit) -> None:
        """Train the head of every averaged network again."""
        hidden = stepper.stack.hidden
        weight, bias, head, shift = stepper.average
        for column in range(columns.start, columns.stop):
            mine = slice(column * hidden, (column + 1) * hidden)
            model = nn.Sequential(nn.Linear(len(weight), hidden), nn.ReLU(), nn.Linear(hidden, 1))
            values = (weight[:, mine].T, bias[mine], head[:, column][None], shift[column][None])
            with torch.no_grad():
                for p, v in zip(model.parameters(), values, strict=True):
                    p.copy_(v)
            rows, judges = (
                [(torch.as_tensor(part.x), torch.as_tensor(part.y))]
                for part in (parts.train, parts.validation)
            )
            retarget(model, None, self.problem, rows, validation=judges)
            head[:, column] = model[2].weight.detach()[0]
            shift[column] = model[2].bias.detach()[0]

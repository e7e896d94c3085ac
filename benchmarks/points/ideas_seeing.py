"""Ideas for the default that look at the model as well as at its scores."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common.axes import WithAxis
from benchmarks.points.stack import Stack, Stepper
from setpoint import Implicit
from setpoint.axes import Everyone, PlainOutcome, Sample
from setpoint.datasets import DataSplit
from setpoint.losses import attach
from setpoint.rates import Array
from setpoint.solvers.closed_form import ExampleColumns
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


class SeenAxis(Everyone):
    """One threshold for everyone, found on other scores of the same examples.

    Attributes:
        seen: Those scores, ``[c, n]``.
    """

    seen: Array | None = None

    def hold(self, whole, own, step, widening, placed=None) -> PlainOutcome:
        """Hold the thresholds of the scores that were seen."""
        assert self.seen is not None
        found = self.choose(Sample(self.seen, whole.columns, whole.slices))
        return super().hold(whole, own, step, widening, found)


class AveragedThreshold(WithAxis):
    """Thresholds are found on what the averaged model makes of the batch."""

    axis_type = SeenAxis
    axis: SeenAxis

    def see(self, stepper: Stepper, rows: Tensor, columns: slice) -> None:
        """Score the batch by the averaged weights."""
        self.axis.seen = np.asarray(stepper.scores(rows, averaged=True)[:, columns], float).T


class Mixup(Implicit):
    """The main loss sees mixed examples, the implicit loss the batch as it is."""

    _seen: tuple[Stack, Tensor, slice] | None = None
    _main_slopes: Tensor

    def see(self, stepper: Stepper, rows: Tensor, columns: slice) -> None:
        """Keep what mixed examples are made of."""
        self._seen = stepper.stack, rows, columns

    def forward(self, scores: Tensor, labels: Tensor, **more: Any) -> Tensor:
        """The loss of a batch, with the main loss attached to the scores of mixed examples."""
        assert self._seen is not None
        stack, rows, columns = self._seen
        own, other = mixing(int(self.step_count), len(rows))
        mixed = stack(own * rows + (1 - own) * rows[other])[:, columns]
        soft = own * labels + (1 - own) * labels[other]
        self._main_slopes = (torch.sigmoid(mixed.detach()) - soft) / soft.numel()
        share = self.current_share()
        loss = super().forward(scores, labels, **more)
        return loss + attach(mixed, loss.new_zeros(()), share * self._main_slopes)

    def _main_gradient(self, *given: Any) -> Array:
        return self._main_slopes.double().numpy().T

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor | float, Tensor]:
        """The implicit part of the mix alone."""
        share = self.current_share()
        value, gradient = super().value_and_gradient(scores, labels, learns, columns)
        return value, gradient - share * self._main_slopes


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

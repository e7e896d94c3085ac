"""Criteria of the global batch: on several ranks the loss is that of all their examples.

Every rank gathers the scores of all, computes the same loss and the same gradient on them, and
passes on the rows that are its own. So thresholds, multipliers and memories are the same on all
ranks without a further word between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from setpoint.distributed import (
    Reduction,
    Row,
    average_gradients,
    gather_columns,
    gather_rows,
    rank_of,
    several_ranks,
    together,
    workers,
)
from setpoint.solvers.accumulated import Accumulated
from setpoint.solvers.wrapped import averaging_group, check_model

Self = TypeVar("Self", bound="BatchCriterion")


class BatchCriterion(nn.Module):
    """What criteria share under ``torch.distributed``: they know what becomes of gradients."""

    _reduction: Reduction | None = None  # as the user says
    _averaged = False  # as the attached model says
    _group: dist.ProcessGroup | None = None

    _gathers = True
    """Whether calls are made with the examples of all ranks; else the parts see to it."""

    def __call__(self, scores: Tensor, labels: Any, **more: Any) -> Any:
        """The loss of a batch, of all ranks together."""
        if not (self._gathers and several_ranks()):
            return super().__call__(scores, labels, **more)
        if not self._alone():
            scores, labels, more = self._gather(scores, labels, more)
        with together():
            return super().__call__(scores, labels, **more)

    def attach(self: Self, model: nn.Module) -> Self:
        """Tell the criterion which model it trains, before training on several ranks.

        Of a model wrapped in ``DistributedDataParallel`` gradients are averaged over its ranks: the
        criterion then multiplies its gradient (not its value) by their number, so that the average
        is the gradient of the whole batch. A ``reduction`` that was given stays. In a single
        process nothing changes; with ``torch.distributed``, attach after ``init_process_group``.

        Args:
            model: The model as it is called in training.

        Returns:
            The criterion itself.
        """
        check_model(model)
        if workers() > 1:
            group = averaging_group(model, self, told=self._reduction is not None)
            for part in self.modules():
                if isinstance(part, BatchCriterion):
                    part._averaged, part._group = True, group
        return self

    def accumulate(self, count: int) -> Accumulated:
        """Exact gradient accumulation: so many micro-batches count as the batch that they make.

        Args:
            count: How many micro-batches make a batch.

        Returns:
            What takes them in: ``accumulated.backward(model, x, y)``, for each.
        """
        return Accumulated(self, count)

    @property
    def reduction(self) -> Reduction | None:
        """What becomes of gradients on several ranks; None: not told yet."""
        return "mean" if self._reduction is None and self._averaged else self._reduction

    @reduction.setter
    def reduction(self, reduction: Reduction | None) -> None:
        if reduction not in (None, "mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
        for part in self.modules():
            if isinstance(part, BatchCriterion):
                part._reduction = reduction

    def _alone(self) -> bool:
        """Whether the examples at hand are all there are."""
        if self.reduction == "none" or not several_ranks(self._group):
            return True
        if self.reduction is None:
            raise RuntimeError(
                f"There are {workers(self._group)} ranks, and {type(self).__name__} does not know "
                "what becomes of their gradients. Call criterion.attach(model) with the model "
                "wrapped in DistributedDataParallel, or say it: reduction='mean' (averaged over "
                "ranks), 'sum' (added up) or 'none' (each rank trains by itself)."
            )
        return False

    def _factor(self) -> int:
        """What own gradients are multiplied by, for the reduction to make the whole of them."""
        return workers(self._group) if self.reduction == "mean" else 1

    def _gather(self, scores: Tensor, labels: Any, given: dict[str, Any]) -> Any:
        """Scores with their graph, labels, and what else was given, of all ranks."""
        learns = torch.is_grad_enabled() and scores.requires_grad
        mine = {"scores": scores.detach(), "labels": torch.as_tensor(labels), **given}
        found, sizes, agreed = gather_rows(mine, self._group, self._mode(scores))
        if not learns and agreed.endswith("True"):  # a rank without rows: it steps like the others
            scores = scores.detach().requires_grad_()
        whole = self._spliced(scores, found.pop("scores"), sizes)
        return whole, found.pop("labels"), found

    def _mode(self, scores: Tensor) -> str:
        """How a batch is used: the same on all ranks that have rows."""
        learns = torch.is_grad_enabled() and scores.requires_grad
        return f"{'training' if self.training else 'evaluation'}, gradients: {learns}"

    def _of_all(self, scores: Tensor) -> Tensor:
        """Scores alone, of all ranks."""
        if self._alone():
            return scores
        found, sizes, _ = gather_columns({"scores": scores.detach()}, self._group)
        return self._spliced(scores, found["scores"], sizes)

    def _row_of_all(self, row: Row, params: Sequence[Tensor]) -> Row:
        """A gradient on parameters that came from own rows, as that of all ranks' rows."""
        count = workers(self._group)
        if count == 1 or self.reduction == "none":
            return row
        rows = [list(row)]
        average_gradients(rows, params, self._group)
        left = count // self._factor()
        return [None if part is None else part * left for part in rows[0]]

    def _spliced(self, scores: Tensor, whole: Any, sizes: list[int]) -> Tensor:
        """The scores of all ranks, attached to the graph where they are this rank's own."""
        rank = rank_of(self._group)
        start = sum(sizes[:rank])
        whole = whole.to(scores.device)
        own = scores.to(whole.dtype).reshape(sizes[rank], *whole.shape[1:])
        own = scaled(own, self._factor())
        return torch.cat([whole[:start], own, whole[start + sizes[rank] :]])


def scaled(scores: Tensor, factor: int) -> Tensor:
    """The same numbers, with a gradient ``factor`` times as long."""
    return cast(Tensor, _Scaled.apply(scores, factor))  # type: ignore[no-untyped-call]


class _Scaled(torch.autograd.Function):
    """The same numbers, with a gradient some times as long."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, factor: int) -> Tensor:
        ctx.factor = factor
        return scores.view_as(scores)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.factor, None

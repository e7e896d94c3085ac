"""Criteria of the global batch: on several ranks the loss is that of all their examples.

Every rank gathers the scores of all, computes the same loss and the same gradient on them, and
passes on the rows that are its own. So thresholds, multipliers and memories are the same on all
ranks without further messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.parallel import DistributedDataParallel

from setpoint.axes.arrays import check_dense, odd_kind
from setpoint.distributed import (
    Reduction,
    Row,
    average_gradients,
    gather_rows,
    in_global_batch,
    own_rows,
    rank_of,
    several_ranks,
    workers,
)
from setpoint.losses import labelled
from setpoint.losses.log_likelihood import Loss
from setpoint.problems import (
    GoalLike,
    Problem,
    as_problem,
    refuse_classes,
    refuse_queries,
)
from setpoint.solvers.accumulate import Accumulated
from setpoint.solvers.main_loss import value_of
from setpoint.solvers.status import LastBatch
from setpoint.steps import Hard, Step

_SHARDED = ("FullyShardedDataParallel", "FSDPModule")
"""Wrappers that average as well; known by name, as importing them takes its time."""
_Self = TypeVar("_Self", bound="BatchCriterion")


def _no_scores(scores: Any) -> str:
    """Why something is no batch of scores, and what to do."""
    if not isinstance(scores, Tensor):
        kind = type(scores).__name__
        return (
            f"Scores must be a torch tensor, the output of the model; got {kind}. Write "
            "torch.as_tensor(scores), or judge arrays by Problem.evaluate."
        )
    return f"Scores must be a dense tensor with data; got a {odd_kind(scores)}."


class BatchCriterion(nn.Module):
    """A criterion whose loss is that of the batches of all ranks under ``torch.distributed``."""

    _reduction: Reduction | None = None  # as the user says
    _averaged = False  # as the attached model says
    _group: dist.ProcessGroup | None = None

    _options: tuple[str, ...] = ()
    """The attributes that :func:`repr` shows after the problem: the recipe of the criterion."""
    _gathers = True
    """Whether calls are made with the examples of all ranks; else the parts see to it."""
    _opaque = False
    """Whether a compiler sees one operator, :meth:`_call_compiled`, and does not look inside."""

    def __call__(self, scores: Tensor, labels: Any, **more: Any) -> Any:
        """The loss of a batch, of all ranks together."""
        if not isinstance(scores, Tensor) or odd_kind(scores) is not None:
            raise TypeError(_no_scores(scores))
        if isinstance(labels, Tensor):
            check_dense(labels, "Labels")
        if self._opaque and torch.compiler.is_compiling():
            return self._call_compiled(scores, labels, more)
        if not (
            dist.is_available() and dist.is_initialized() and self._gathers and several_ranks()
        ):
            return super().__call__(scores, labels, **more)
        if self._alone():
            with in_global_batch():
                return super().__call__(scores, labels, **more)
        scores, labels, more, sizes = self._gather(scores, labels, more)
        try:
            with in_global_batch():
                return super().__call__(scores, labels, **more)
        except (ValueError, TypeError) as error:
            error.args = tuple(own_rows(a, sizes) if isinstance(a, str) else a for a in error.args)
            raise

    def _call_compiled(self, scores: Tensor, labels: Any, more: dict[str, Any]) -> Tensor:
        raise NotImplementedError

    def attach(self: _Self, model: nn.Module) -> _Self:
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
        """Exact gradient accumulation: ``count`` micro-batches have the loss of their union.

        Args:
            count: How many micro-batches make a batch.

        Returns:
            An object to call for each of them: ``accumulated.backward(model, x, y)``.
        """
        return Accumulated(self, count)

    @property
    def reduction(self) -> Reduction | None:
        """What becomes of gradients on several ranks; None if it is not known yet."""
        return "mean" if self._reduction is None and self._averaged else self._reduction

    @reduction.setter
    def reduction(self, reduction: Reduction | None) -> None:
        if reduction not in (None, "mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
        for part in self.modules():
            if isinstance(part, BatchCriterion):
                part._reduction = reduction

    def __repr__(self) -> str:
        problem = getattr(self, "problem", None)
        shown = [] if problem is None else [str(problem)]
        shown += [f"{name}={getattr(self, name)!r}" for name in self._options]
        return f"{type(self).__name__}({', '.join(shown)})"

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
        """Scores with their graph, labels, what else was given, and the rows of each rank."""
        mine = {"scores": scores.detach(), "labels": torch.as_tensor(labels), **given}
        found, sizes, agreed = gather_rows(mine, self._group, self._mode(scores))
        if not learns(scores) and agreed.endswith(
            "True"
        ):  # a rank without rows: it steps like the others
            scores = scores.detach().requires_grad_()
        whole = self._spliced(scores, found.pop("scores"), sizes)
        return whole, found.pop("labels"), found, sizes

    def _mode(self, scores: Tensor) -> str:
        """How a batch is used: the same on all ranks that have rows."""
        return f"{'training' if self.training else 'evaluation'}, gradients: {learns(scores)}"

    def _of_all(self, scores: Tensor) -> Tensor:
        """Scores alone, of all ranks."""
        if self._alone():
            return scores
        found, sizes, _ = gather_rows({"scores": scores.detach()}, self._group)
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
        own = scale_gradient(own, self._factor())
        return torch.cat([whole[:start], own, whole[start + sizes[rank] :]])


def learns(*tensors: Any) -> bool:
    """Whether somebody wants a gradient on one of them."""
    return torch.is_grad_enabled() and any(
        isinstance(x, Tensor) and x.requires_grad for x in tensors
    )


def scale_gradient(scores: Tensor, factor: int) -> Tensor:
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


def check_problem(goal: GoalLike, who: str) -> Problem:
    """The problem of a goal, if it has binary labels and no queries.

    Args:
        goal: A problem, a sentence, or bounds.
        who: The name of the criterion, for the error.

    Raises:
        TypeError: It is no goal.
        NotImplementedError: It is about classes or queries; the message says which method can.
    """
    found = as_problem(goal, who)
    refuse_queries(found.query, who)
    refuse_classes(found, who)
    return found


def check_soft_step(step: object) -> Step:
    """``step``, if it has gradients."""
    if not isinstance(step, Step) or isinstance(step, Hard):
        raise TypeError(f"step must be a soft step such as Sigmoid(); got {step!r}.")
    return step


def check_model(model: object) -> None:
    """Only a module can be attached."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"attach takes the model that is trained; got {type(model).__name__}.")


def averaging_group(
    model: nn.Module, criterion: nn.Module, *, told: bool
) -> dist.ProcessGroup | None:
    """The ranks that the model's gradients are averaged over; None for all of them.

    Args:
        model: As it is called in training.
        criterion: What is attached to it.
        told: Whether the user said what becomes of gradients: then nothing needs to average.

    Raises:
        TypeError: There are several ranks and nobody averages, or the criterion has weights that
            the model does not have, so that nobody averages those.
    """
    sharded = any(kind.__name__ in _SHARDED for kind in type(model).__mro__)
    if not sharded and not isinstance(model, DistributedDataParallel):
        if told:
            return None
        raise TypeError(
            f"There are {workers()} ranks, and nothing averages the gradients of a "
            f"{type(model).__name__}: wrap it in DistributedDataParallel and attach that. If you "
            "add gradients up yourself, say criterion.reduction = 'sum' instead."
        )
    known = {id(p) for p in model.parameters()}
    left = [name for name, p in criterion.named_parameters() if id(p) not in known]
    if left:
        raise TypeError(
            f"The criterion trains weights that the model does not have ({left[0]}), so nobody "
            "averages them over ranks. Let the model hold them: LastLayer(problem, Split(model)) "
            "with DistributedDataParallel(split)."
        )
    group = getattr(model, "process_group", None)
    return None if group is dist.group.WORLD else group


class LossCriterion(BatchCriterion):
    """A criterion made of a differentiable loss function: :meth:`measure`.

    Args:
        problem: What the last batch is evaluated by in :meth:`stats`, or None.
        reduction: What becomes of the ranks' gradients; see :class:`BatchCriterion`.
    """

    def __init__(self, problem: Problem | None, reduction: Reduction | None) -> None:
        super().__init__()
        self.problem = problem
        self.reduction = reduction
        self._last: LastBatch | None = None

    def measure(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """The loss of a batch that is not empty, attached to the graph of the scores."""
        raise NotImplementedError

    def forward(
        self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Any = None
    ) -> Tensor:
        """The loss of a batch.

        Args:
            scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs, ``[n, K]``
                for an area of K classes.
            labels: 0 or 1, in the shape of the scores; of classes the column, ``[n]``.
            weights: Optional, one per example; weight 2 is two copies, weight 0 is absent.
            groups: A column of group values, or a dict of columns, for the problem's slices in
                :meth:`stats`; the loss does not look at them.
        """
        if scores.numel() == 0:
            return scores.sum()
        labels = torch.as_tensor(labels, device=scores.device)
        if labels.numel() == scores.numel():
            labels, weights = labelled(scores, labels, weights)
        loss = self.measure(scores, labels, weights)
        if labels.numel() == scores.numel():
            labels = labels.reshape(scores.shape)
        self._last = LastBatch(loss.detach(), scores.detach(), labels, weights, groups)
        return loss

    @property
    def status(self) -> str:
        """How the last batch went, in words."""
        return str(self.stats()["status"])

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers, with the exact threshold of the problem if it has one.

        Of all ranks' examples. Nothing is computed before it is asked for.
        """
        return {"status": "not started"} if self._last is None else self._last.stats(self.problem)


class GlobalBatch(BatchCriterion):
    """A loss function as a criterion that sees the examples of all ranks.

    In one process it is the loss itself. On several, every rank evaluates it on all scores and
    passes on the gradient of its own.

    Args:
        loss: Called ``loss(scores, labels)``, with ``weights=`` if there are any; such as
            :func:`setpoint.losses.auc_loss` or ``nn.BCEWithLogitsLoss()``.
        reduction: What becomes of the ranks' gradients: ``"mean"``, ``"sum"`` or ``"none"``;
            :meth:`attach` finds it out.

    Examples:
        >>> import torch
        >>> from setpoint.solvers import GlobalBatch
        >>> from setpoint.losses import auc_loss
        >>> criterion = GlobalBatch(auc_loss)           # then criterion.attach(wrapped_model)
        >>> criterion(torch.tensor([2.0, 0.5, 0.0]), torch.tensor([1, 1, 0])).item()
        0.25
    """

    def __init__(self, loss: Loss, *, reduction: Reduction | None = None) -> None:
        super().__init__()
        self.loss = loss
        self.reduction = reduction

    def forward(self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch."""
        if scores.numel() == 0:
            return scores.sum()
        return value_of(self.loss, scores, labels, weights)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.loss, '__qualname__', repr(self.loss))})"

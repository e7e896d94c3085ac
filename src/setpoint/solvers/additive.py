"""Criteria of the global batch that add up: a few sums of all ranks instead of all their scores.

Where nothing has to be sorted, the loss of the whole batch is a function of sums over examples, and
its gradient on a rank's own rows needs those rows and the sums. One message of some hundred bytes,
whatever the size of the batch. The first batch is gathered as usual: from then on all ranks know
what a batch looks like. Whatever does not look like it, or is not sound, on any rank, makes all of
them gather again, and the error is the one that every criterion gives.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from setpoint.distributed import (
    batch_columns,
    in_global_batch,
    layout_of,
    several_ranks,
    sum_tensors,
)
from setpoint.solvers.base import BatchCriterion, scale_gradient


class Sums(Protocol):
    """Sums over the rows of one rank, which are added up over ranks."""

    def numbers(self) -> Tensor:
        """Those that are added up, ``[k]``; as many for no rows at all."""


Own = TypeVar("Own", bound=Sums)
_Self = TypeVar("_Self", bound="AdditiveCriterion[Any]")


@dataclass(frozen=True)
class _Known:
    """What the batches of all ranks look like, and one without rows."""

    layout: str
    empty: dict[str, Any]
    learns: bool


class AdditiveCriterion(BatchCriterion, Generic[Own]):
    """A :class:`BatchCriterion` that adds up wherever :meth:`_adds` says so."""

    _known: _Known | None = None
    _shared: tuple[Own, Tensor] | None = None
    """Within a call that adds up: what was found in the own rows, and the sums of all ranks."""

    def __call__(self, scores: Tensor, labels: Any, **more: Any) -> Any:
        """The loss of a batch, of all ranks together."""
        compiling = torch.compiler.is_compiling()
        if (
            not compiling
            and self._gathers
            and several_ranks()
            and not self._alone()
            and self._adds()
        ):
            known = self._known
            added = None if known is None else self._added(known, scores, labels, more)
            if known is not None and added is not None:
                if known.learns and not scores.requires_grad:
                    scores = scores.detach().requires_grad_()  # no rows: it steps like the others
                with in_global_batch(), self._sharing(added):
                    return super().__call__(scale_gradient(scores, self._factor()), labels, **more)
        return super().__call__(scores, labels, **more)

    def attach(self: _Self, model: nn.Module) -> _Self:
        """As every criterion; other ranks may have other batches."""
        self._known = None
        return super().attach(model)

    @abstractmethod
    def _adds(self) -> bool:
        """Whether sums are all that is needed, with these options."""

    @abstractmethod
    def _own(self, scores: Tensor, labels: Any, *, weights: Any = None, groups: Any = None) -> Own:
        """The sums of some rows; raises for rows that cannot be used."""

    def _added(
        self, known: _Known, scores: Tensor, labels: Any, more: dict[str, Any]
    ) -> tuple[Own, Tensor] | None:
        """Own sums and those of all ranks; None if any rank has to be heard about its rows."""
        mine = {"scores": scores.detach(), "labels": torch.as_tensor(labels), **more}
        sound = True
        try:
            if len(scores):
                sound = layout_of(batch_columns(mine), self._mode(scores)) == known.layout
            own = self._own(**(mine if sound and len(scores) else known.empty))
        except (TypeError, ValueError):
            sound, own = False, self._own(**known.empty)
        numbers = own.numbers()
        head = numbers.new_tensor([not sound])
        unsound, *_ = totals = sum_tensors(torch.cat([head, numbers]), self._group)
        return (own, totals[1:]) if unsound == 0 else None

    @contextmanager
    def _sharing(self, added: tuple[Own, Tensor]) -> Iterator[None]:
        self._shared = added
        try:
            yield
        finally:
            self._shared = None

    def _gather(self, scores: Tensor, labels: Any, given: dict[str, Any]) -> Any:
        """As ever; keeps in mind what a batch looks like."""
        whole, labels, more = super()._gather(scores, labels, given)
        found = {"scores": whole.detach(), "labels": labels, **more}
        layout = layout_of(batch_columns(found), self._mode(whole))
        self._known = _Known(layout, _without_rows(found), whole.requires_grad)
        return whole, labels, more


def _without_rows(found: Any) -> Any:
    """The same columns without rows."""
    if isinstance(found, dict):
        return {name: _without_rows(column) for name, column in found.items()}
    return None if found is None else found[:0]

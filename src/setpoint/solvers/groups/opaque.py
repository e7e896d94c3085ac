"""The thresholds of groups, as an operator that a compiler does not look into.

Which groups are there, and what holds their thresholds, is found out in numpy on every batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from setpoint.solvers.enrolled import found
from setpoint.thresholds import Sample

if TYPE_CHECKING:
    from setpoint.solvers.groups.criterion import GroupImplicit

Held = tuple[Tensor, Tensor, Tensor, Tensor]
"""A value, its gradient ``[1, n]``, thresholds ``[g]`` (NaN: nobody is there), and whether all is
sound, ``[1]``."""


@dataclass(frozen=True)
class Compiled:
    """The last batch of a compiled step; the operator has kept what happened in it."""

    number: int
    share: Tensor | float
    main: Tensor | None = None

    @property
    def status(self) -> str:
        """As of a plain step."""
        return str(self._kept().status)

    def stats(self) -> dict[str, Any]:
        """As of a plain step."""
        numbers: dict[str, Any] = self._kept().stats()
        return numbers

    def _kept(self) -> Any:
        return replace(found(self.number).kept, share=self.share, main=self.main)


def as_operator(
    criterion: GroupImplicit, whole: Sample, own: Sample, share: Any, dtype: torch.dtype
) -> Held:
    """``criterion.read`` inside a compiled step."""
    samples = (whole.scores, whole.columns, own.scores, own.columns)
    given = torch.as_tensor(share, dtype=torch.float64)
    value, gradient, thresholds, sound = _hold(
        *(x.detach() for x in samples), given, criterion.number, dtype
    )
    return value, gradient, thresholds, sound


@torch.library.custom_op("setpoint::hold_groups", mutates_args=())
def _hold(
    scores: Tensor,
    columns: Tensor,
    own_scores: Tensor,
    own_columns: Tensor,
    share: Tensor,
    number: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    criterion: GroupImplicit = found(number)
    whole, own = Sample(scores, columns), Sample(own_scores, own_columns)
    there = bool(whole.totals[0, :2].sum() > 0)
    if there and bool(scores.isfinite().all()):  # where nothing can raise, NaN stays NaN
        return criterion.read(whole, own, float(share), dtype)
    value, gradient, thresholds, sound = _shapes(own_scores, columns)
    return (
        torch.zeros_like(value),
        torch.zeros_like(gradient),
        torch.full_like(thresholds, torch.nan),
        torch.zeros_like(sound),
    )


@_hold.register_fake
def _(
    scores: Tensor,
    columns: Tensor,
    own_scores: Tensor,
    own_columns: Tensor,
    share: Tensor,
    number: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _shapes(own_scores, columns)


def _shapes(own: Tensor, columns: Tensor) -> Held:
    groups = columns.shape[-1] // 2 - 1
    sound = own.new_empty(1, dtype=torch.bool)
    return own.new_empty([]), torch.empty_like(own), own.new_empty(groups), sound

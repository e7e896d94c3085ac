"""What is done in numpy, as operators that a compiler does not look into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from setpoint.solvers.enrolled import found

if TYPE_CHECKING:
    from setpoint.solvers.classes.adjusted import Adjusted
    from setpoint.solvers.classes.criterion import ClassImplicit


def as_operator(
    criterion: ClassImplicit, scores: Tensor, labels: Tensor, weights: Tensor | None, share: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """``criterion.read`` inside a compiled step."""
    counts = torch.ones_like(scores[:, 0]) if weights is None else weights
    given = torch.as_tensor(share, dtype=torch.float64)
    value, gradient, shifts = _read(
        scores.detach(), labels, counts.detach(), given, criterion.number
    )
    return value, gradient, shifts


def offsets_of(main: Adjusted) -> Tensor:
    """``main.offsets`` inside a compiled step."""
    offsets: Tensor = _offsets(main.seen, main.number)
    return offsets


@torch.library.custom_op("setpoint::read_classes", mutates_args=())
def _read(
    scores: Tensor, labels: Tensor, weights: Tensor, share: Tensor, number: int
) -> tuple[Tensor, Tensor, Tensor]:
    try:
        criterion: ClassImplicit = found(number)
        made = criterion.read(scores, labels, weights, None, share)
    except ValueError:  # scores that are not finite: where nothing can raise, NaN
        return tuple(torch.full_like(x, torch.nan) for x in _shapes(scores))  # type: ignore[return-value]
    return made


@torch.library.custom_op("setpoint::class_offsets", mutates_args=())
def _offsets(seen: Tensor, number: int) -> Tensor:
    main: Adjusted = found(number)
    return main.offsets_after(seen)


@_offsets.register_fake
def _(seen: Tensor, number: int) -> Tensor:
    return torch.empty_like(seen)


@_read.register_fake
def _(
    scores: Tensor, labels: Tensor, weights: Tensor, share: Tensor, number: int
) -> tuple[Tensor, Tensor, Tensor]:
    return _shapes(scores)


def _shapes(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = scores.shape
    sizes: tuple[list[int], ...] = ([], [rows, columns], [columns])
    value, gradient, shifts = (scores.new_empty(size, dtype=torch.float64) for size in sizes)
    return value, gradient, shifts

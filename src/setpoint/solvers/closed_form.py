"""Criteria whose gradient on the scores is known in closed form, and how compilers call them.

What they compute, they compute in numpy: a compiler sees one operator and does not look inside. It
passes tensors, numbers and text only, so the operator finds its criterion by a number and the names
of its arguments in a text. Inside, a step runs as it does without a compiler, state included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from setpoint.axes.arrays import Floats
from setpoint.losses import attach, exact_type
from setpoint.solvers.base import BatchCriterion, learns
from setpoint.solvers.memory import State

_registered: WeakValueDictionary[int, Any] = WeakValueDictionary()
_next_number = count()


class ExampleColumns(NamedTuple):
    """What else is known of each example of a batch; see :meth:`setpoint.Implicit.forward`."""

    weights: Tensor | None = None
    resampling: Tensor | None = None
    groups: Any = None
    queries: Any = None


class ClosedForm(BatchCriterion, State):
    """A criterion that knows its gradient on the scores: :meth:`value_and_gradient`.

    Attributes:
        number: The one by which compiled code finds it; a copy has its own.
    """

    number: int
    _opaque = True

    def __init__(self) -> None:
        super().__init__()
        self._register()

    def _register(self) -> None:
        self.number = next(_next_number)
        _registered[self.number] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._register()

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor | float, Tensor]:
        """The loss of a batch, and its gradient on the scores if it ``learns``.

        Tensors are in single precision at least; ``scores`` have no graph.
        """
        raise NotImplementedError

    def note_undefined(self) -> None:
        """Called instead of a step whose scores are not finite: compiled code cannot raise."""

    def loss(self, scores: Tensor, labels: Any, columns: ExampleColumns) -> Tensor:
        """The loss of a batch, attached to the graph of the scores; 0 without examples."""
        if scores.numel() == 0:
            return scores.sum()
        wanted = learns(scores, labels)
        value, gradient = self.value_and_gradient(scores.detach(), labels, wanted, columns)
        if learns(scores):
            return attach(scores, value, gradient)
        return torch.as_tensor(value, dtype=exact_type(scores), device=scores.device)

    def _call_compiled(self, scores: Tensor, labels: Any, more: dict[str, Any]) -> Tensor:
        """The loss inside compiled code; NaN if scores are not finite."""
        wanted = learns(scores, labels)
        given = {"labels": labels, **_flattened(more)}
        names = "\n".join(given)
        tensors = [torch.as_tensor(x, device=scores.device).detach() for x in given.values()]
        value, gradient = _call(scores.detach(), tensors, names, wanted, self.number)
        return attach(scores, value, gradient) if learns(scores) else value


@torch.library.custom_op(
    "setpoint::value_and_gradient",
    mutates_args=(),
    schema="(Tensor scores, Tensor[] given, str names, bool learns, int number)"
    " -> (Tensor, Tensor)",  # torch before 2.6 cannot read it from annotations in quotes
)
def _call(
    scores: Tensor, given: Sequence[Tensor], names: str, learns: bool, number: int
) -> tuple[Tensor, Tensor]:
    criterion: ClosedForm = _registered[number]
    dtype = exact_type(scores)
    if not bool(scores.isfinite().all()):
        criterion.note_undefined()
        nothing = torch.zeros_like(scores, dtype=dtype)
        return nothing.new_tensor(torch.nan), nothing
    labels, more = _nested(dict(zip(names.split("\n"), given, strict=True)))
    columns = ExampleColumns(**more)
    value, gradient = criterion.value_and_gradient(scores, labels, learns, columns)
    loss = torch.as_tensor(value, dtype=dtype, device=scores.device)
    return loss.clone(), gradient.to(dtype).reshape(scores.shape).clone()


@_call.register_fake
def _call_shapes(
    scores: Tensor, given: Sequence[Tensor], names: str, learns: bool, number: int
) -> tuple[Tensor, Tensor]:
    dtype = exact_type(scores)
    return scores.new_empty([], dtype=dtype), torch.empty_like(scores, dtype=dtype)


def gradient_like(scores: Tensor, slopes: Floats) -> Tensor:
    """Slopes ``[c, n]`` as a gradient on the scores: in their shape and on their device.

    In their precision, single at least.
    """
    dtype = np.float64 if scores.dtype == torch.float64 else np.float32
    gradient = torch.from_numpy(slopes.T.reshape(scores.shape).astype(dtype, copy=False))
    return gradient if scores.is_cpu else gradient.to(scores.device)


def _flattened(more: dict[str, Any]) -> dict[str, Any]:
    """Arguments that are there; columns of a dict under ``name.column``."""
    found: dict[str, Any] = {}
    for name, value in more.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{column}": values for column, values in value.items()}
        elif value is not None:
            found[name] = value
    return found


def _nested(flat: dict[str, Tensor]) -> tuple[Tensor, dict[str, Any]]:
    """The inverse: labels, and the other arguments."""
    labels = flat.pop("labels")
    more: dict[str, Any] = {}
    for name, value in flat.items():
        name, _, column = name.partition(".")
        if column:
            more.setdefault(name, {})[column] = value
        else:
            more[name] = value
    return labels, more

"""Between torch and numpy: on the processor small operations cost a third in numpy.

Both share the memory, so going from one to the other costs a microsecond and copies nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling

from setpoint.rates import Array


def in_numpy(scores: Tensor) -> bool:
    """Whether to compute in numpy: on the processor, and not under a compiler."""
    return scores.is_cpu and not is_compiling()


def library_of(scores: Array) -> Any:
    """Numpy or torch, whichever takes what :func:`array_of` makes of these scores."""
    return np if not isinstance(scores, Tensor) or in_numpy(scores) else torch


def array_of(values: Array) -> Array:
    """The same numbers for :func:`library_of`."""
    return values.numpy() if isinstance(values, Tensor) and in_numpy(values) else values


def tensor_of(values: Array) -> Tensor:
    """The same numbers as a tensor."""
    return values if isinstance(values, Tensor) else torch.from_numpy(values)


def alike(values: Array, given: Array) -> Array:
    """The same numbers as a tensor if what was given is one: nothing is turned to and fro."""
    return tensor_of(values) if isinstance(given, Tensor) else values

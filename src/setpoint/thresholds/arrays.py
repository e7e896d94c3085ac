"""Between torch and numpy: on the processor small operations cost a third in numpy.

Both share the memory, so going from one to the other costs a microsecond and copies nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.rates import Array


def in_numpy(scores: Tensor) -> bool:
    """Whether to compute in numpy: on the processor, and not under a compiler."""
    return scores.is_cpu and not torch.compiler.is_compiling()


def library_of(scores: Tensor) -> Any:
    """Numpy or torch, whichever takes what :func:`array_of` makes of these scores."""
    return np if in_numpy(scores) else torch


def array_of(values: Tensor) -> Array:
    """The same numbers for :func:`library_of`."""
    return values.numpy() if in_numpy(values) else values


def tensor_of(values: Array) -> Tensor:
    """The same numbers as a tensor."""
    return values if isinstance(values, Tensor) else torch.from_numpy(values)

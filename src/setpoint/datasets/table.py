"""A data set: one row of features and one label for each example."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Table(NamedTuple):
    """Features ``x`` [n, d] and labels ``y`` [n], 0 or 1; unpacks as ``x, y = table``."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]

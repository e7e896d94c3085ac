"""The split every comparison uses: half to train, a quarter to choose by, a quarter to judge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setpoint._checks import whole
from setpoint.datasets.table import Table


class Split(NamedTuple):
    """Three parts of one data set, standardised by what the training part alone shows."""

    train: Table
    validation: Table
    test: Table


def split(table: Table, seed: int) -> Split:
    """Shuffle by ``seed``, cut 50/25/25, and give every column mean 0 and deviation 1 on ``train``.

    A column that is constant on the training part becomes 0 there.

    Example:
        >>> from setpoint.datasets import letter
        >>> [len(part.y) for part in split(letter(), seed=0)]
        [10000, 5000, 5000]
    """
    x, y = table
    if len(x) != len(y) or len(y) < 4:
        raise ValueError(
            f"A split needs at least 4 examples with one label each; got {len(x)} and {len(y)}."
        )
    order = np.random.default_rng(whole(seed, "seed", least=0)).permutation(len(y))
    train, validation, test = np.split(order, [len(y) // 2, 3 * len(y) // 4])
    centre, deviation = x[train].mean(0, np.float64), x[train].std(0, np.float64)
    x = ((x - centre) / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)
    return Split(*(Table(x[rows], y[rows]) for rows in (train, validation, test)))

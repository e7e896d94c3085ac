"""Small real data inside the package, and the split that every comparison uses. Never torch."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import whole

__all__ = ["DataSplit", "Table", "letter", "split"]

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Table(NamedTuple):
    """Features ``x`` [n, d] and labels ``y`` [n], 0 or 1; unpacks as ``x, y = table``."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]


def letter(positive: str = "U") -> Table:
    """One letter against the others: ``x`` [20000, 16] as float32, ``y`` [20000] is 0 or 1.

    Source: D. Slate, Letter Recognition, UCI Machine Learning Repository, 1991,
    https://doi.org/10.24432/C5ZP40. Licence: CC BY 4.0
    (https://creativecommons.org/licenses/by/4.0/). The data are unchanged, only stored as bytes.

    Args:
        positive: The letter to find. U is the most frequent one (813 of 20,000) and the positive
            class in the experiments of the paper behind :class:`setpoint.Implicit`.

    Examples:
        >>> x, y = letter()
        >>> x.shape, int(y.sum())
        ((20000, 16), 813)
    """
    if not isinstance(positive, str) or len(positive) != 1 or positive not in ALPHABET:
        raise ValueError(f"positive must be a capital letter from A to Z; got {positive!r}.")
    with files("setpoint.datasets").joinpath("letter.npz").open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        x, place = stored["x"], stored["letter"]
    return Table(x.astype(np.float32), (place == ALPHABET.index(positive)).astype(np.int64))


class DataSplit(NamedTuple):
    """Three parts of one data set, standardised by what the training part alone shows."""

    train: Table
    validation: Table
    test: Table


def split(table: Table, seed: int) -> DataSplit:
    """Shuffle by ``seed``, cut 50/25/25, and give every column mean 0 and deviation 1 on ``train``.

    A column that is constant on the training part becomes 0 there.

    Examples:
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
    return DataSplit(*(Table(x[rows], y[rows]) for rows in (train, validation, test)))

"""UCI Letter: 20,000 capital letters in 20 fonts, described by 16 numbers from 0 to 15."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from setpoint.datasets.table import Table

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letter(positive: str = "U") -> Table:
    """One letter against the others: ``x`` [20000, 16] as float32, ``y`` [20000] is 0 or 1.

    Source: D. Slate, Letter Recognition, UCI Machine Learning Repository, 1991,
    https://doi.org/10.24432/C5ZP40. Licence: CC BY 4.0
    (https://creativecommons.org/licenses/by/4.0/). The data are unchanged, only stored as bytes.

    Args:
        positive: The letter to find. U is the most frequent one (813 of 20,000) and the positive
            class in the experiments of the paper behind :class:`setpoint.Implicit`.

    Example:
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

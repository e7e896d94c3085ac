"""Three parts of the data with three jobs: to learn from, to choose by, to promise on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share

Rows = NDArray[np.int64]
FEWEST = 20
"""With fewer of a class than this, nothing is split off: there is hardly enough to learn from."""


def three_parts(
    labels: NDArray[np.int64],
    validation: float,
    calibration: float,
    random: np.random.RandomState,
    fewest: int = FEWEST,
) -> dict[str, Rows]:
    """Rows of the parts ``train``, ``validation`` and ``calibration``, class by class.

    Data with fewer than ``fewest`` rows of a class are not split: then ``train`` and ``validation``
    are all rows, and ``calibration`` is empty.
    """
    shares = (
        share(validation, "validation_fraction"),
        share(calibration, "calibration_fraction"),
    )
    if sum(shares) >= 1:
        raise ValueError(
            "validation_fraction and calibration_fraction leave nothing to train on: "
            f"{shares[0]:g} + {shares[1]:g} must be below 1."
        )
    everyone = np.arange(len(labels))
    counts = np.bincount(labels, minlength=2)
    if counts.min() < fewest:
        return {"train": everyone, "validation": everyone, "calibration": everyone[:0]}
    parts: list[list[Rows]] = [[], [], []]
    for value in range(len(counts)):
        rows = random.permutation(np.flatnonzero(labels == value))
        ends = np.round(np.cumsum(shares) * len(rows)).astype(int)
        for part, piece in zip(parts, np.split(rows, ends), strict=True):
            part.append(piece)
    chosen, promised, learnt = (np.sort(np.concatenate(part)) for part in parts)
    if not len(chosen):
        chosen = learnt
    return {"train": learnt, "validation": chosen, "calibration": promised}

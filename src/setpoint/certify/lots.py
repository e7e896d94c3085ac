"""Which rows propose and which prove: drawn by lot, the same way every time, in whatever order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setpoint.certify.samples import Sample
from setpoint.certify.tails import Floats

Words = NDArray[np.uint64]
SHARE = 0.25
"""The part of the rows that proposes."""


def split(sample: Sample) -> tuple[Sample, Sample]:
    """The rows that propose, and those that prove."""
    rows = sample.in_order()
    chosen = lots(rows) < SHARE
    return rows.rows(chosen), rows.rows(~chosen)


def lots(sample: Sample) -> Floats:
    """A number between 0 and 1 for each row, of the scores, labels and slices, and nothing else.

    Rows are sorted; those alike in all of these are told apart by counting them. The numbers are
    a scrambling of the bits (splitmix64), as good as drawn by lot. All rows together seed it: were
    a row's lot its own, samples of the same few scores would be split alike, and the shares that
    such a split gets wrong would be wrong every time.
    """
    bits = (sample.scores.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    traits = [mask.astype(np.uint64) for mask in sample.traits]
    alike = np.zeros(len(bits), bool)
    alike[1:] = bits[1:] == bits[:-1]
    for trait in traits:
        alike[1:] &= trait[1:] == trait[:-1]
    key = _scramble(bits)
    for trait in (_places_in_runs(alike), *traits):
        key = _scramble(key ^ _scramble(trait + np.uint64(1)))
    seed = _scramble(np.add.reduce(key, keepdims=True))
    return _scramble(key ^ seed) / 2.0**64


def _places_in_runs(alike: NDArray[np.bool_]) -> Words:
    """0, 1, 2, ... within each run of rows that are like the one before."""
    place = np.arange(len(alike))
    return (place - np.maximum.accumulate(np.where(alike, 0, place))).astype(np.uint64)


def _scramble(x: Words) -> Words:
    """The finalizer of splitmix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))

"""Thresholds in torch: what they see, where they sit, soft counts around them."""

from setpoint.thresholds.arrays import alike, array_of, in_numpy, library_of, tensor_of
from setpoint.thresholds.batches import read, read_arrays
from setpoint.thresholds.counts import Reading
from setpoint.thresholds.memory import Memory
from setpoint.thresholds.sample import Sample
from setpoint.thresholds.state import State
from setpoint.thresholds.width import spread

__all__ = [
    "Memory",
    "Reading",
    "Sample",
    "State",
    "alike",
    "array_of",
    "in_numpy",
    "library_of",
    "read",
    "read_arrays",
    "spread",
    "tensor_of",
]

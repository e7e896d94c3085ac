"""Thresholds in torch: what they see, where they sit, soft counts around them."""

from setpoint.thresholds.arrays import array_of, in_numpy, library_of, tensor_of
from setpoint.thresholds.counts import Reading
from setpoint.thresholds.memory import Memory
from setpoint.thresholds.sample import Sample, read
from setpoint.thresholds.state import State
from setpoint.thresholds.width import spread

__all__ = [
    "Memory",
    "Reading",
    "Sample",
    "State",
    "array_of",
    "in_numpy",
    "library_of",
    "read",
    "spread",
    "tensor_of",
]

"""Thresholds in torch: what they see, where they sit, soft counts around them."""

from setpoint.thresholds.counts import Reading
from setpoint.thresholds.memory import Memory
from setpoint.thresholds.sample import Sample, in_numpy, read
from setpoint.thresholds.state import State
from setpoint.thresholds.width import spread

__all__ = ["Memory", "Reading", "Sample", "State", "in_numpy", "read", "spread"]

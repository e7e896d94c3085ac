"""Thresholds in torch: what they see, where they sit, soft counts around them."""

from setpoint.thresholds.counts import Reading, along
from setpoint.thresholds.memory import Memory
from setpoint.thresholds.sample import Sample, read
from setpoint.thresholds.width import spread

__all__ = ["Memory", "Reading", "Sample", "along", "read", "spread"]

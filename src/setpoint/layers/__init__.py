"""Layers that know functions and matrices, not rates: a root and its gradient."""

from setpoint.layers.hold import hold, through_threshold

__all__ = ["hold", "through_threshold"]

"""Layers that know functions and matrices, not rates: a root and its gradient."""

from setpoint.layers.hold import hold, own_slope

__all__ = ["hold", "own_slope"]

"""``setpoint demo``: the same models trained with cross-entropy and with Implicit, on real data."""

from setpoint.demo.run import run_demo

__all__ = ["run_demo"]

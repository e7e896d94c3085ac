"""Watch a certificate in use: tests of what it claims that may be looked at at any time."""

from setpoint.monitoring.joint import ClassMonitor, JointMonitor
from setpoint.monitoring.monitor import Monitor

__all__ = ["ClassMonitor", "JointMonitor", "Monitor"]

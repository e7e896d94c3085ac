"""Lightning: a callback that recalibrates the threshold, and barrier steps."""

from setpoint.integrations.lightning.barrier import barrier_step
from setpoint.integrations.lightning.recalibrate import Recalibrate

__all__ = ["Recalibrate", "barrier_step"]

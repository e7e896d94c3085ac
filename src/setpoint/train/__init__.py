"""Training: averaged weights for any loop, and a small loop of our own."""

from setpoint.train.averaged import Averaged
from setpoint.train.loop import Fitted, batches, fit

__all__ = ["Averaged", "Fitted", "batches", "fit"]

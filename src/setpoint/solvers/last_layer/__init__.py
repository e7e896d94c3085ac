"""Hold by the last layer only, and the split of a network that it needs."""

from setpoint.solvers.last_layer.criterion import LastLayer
from setpoint.solvers.last_layer.penalty import Penalty
from setpoint.solvers.last_layer.split import Split

__all__ = ["LastLayer", "Penalty", "Split"]

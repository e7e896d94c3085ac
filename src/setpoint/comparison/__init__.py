"""One problem by several methods: same splits, same budget, same rule of choice, one table."""

from setpoint.comparison.api import compare
from setpoint.comparison.tables import Comparison, MethodRow
from setpoint.comparison.trials import Trial

__all__ = ["Comparison", "MethodRow", "Trial", "compare"]

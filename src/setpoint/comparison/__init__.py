"""One problem by several methods: same splits, same budget, same rule of choice, one table."""

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint.comparison.api import compare
from setpoint.comparison.tables import Comparison, MethodRow
from setpoint.comparison.trials import MethodTrial

__all__ = ["Comparison", "MethodRow", "MethodTrial", "compare"]

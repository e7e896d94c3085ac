"""Small real data inside the package, and the split every comparison uses. Never torch."""

from setpoint.datasets.letter import letter
from setpoint.datasets.split import Split, split
from setpoint.datasets.table import Table

__all__ = ["Split", "Table", "letter", "split"]

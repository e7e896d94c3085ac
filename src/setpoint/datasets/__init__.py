"""Small real data inside the package, and the split every comparison uses. Never torch."""

from setpoint.datasets.tabular import DataSplit, Table, letter, split

__all__ = ["DataSplit", "Table", "letter", "split"]

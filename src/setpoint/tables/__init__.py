"""Reading tables: csv by the standard library, parquet by pyarrow (extra ``data``). Never torch.

The door is what reading scores needs; :mod:`setpoint.tables.training_file` is for tables to learn
from, and :mod:`setpoint.tables.encoder` turns their columns into features.
"""

from setpoint.tables.csv_file import cells, safe_cell, write_csv
from setpoint.tables.labels import LabelNames
from setpoint.tables.scores import Scores, open_table, read_scores
from setpoint.tables.source import NO_ROWS, RowRange, TableError, TableSource, need_column

__all__ = [
    "NO_ROWS",
    "LabelNames",
    "RowRange",
    "Scores",
    "TableError",
    "TableSource",
    "cells",
    "need_column",
    "open_table",
    "read_scores",
    "safe_cell",
    "write_csv",
]

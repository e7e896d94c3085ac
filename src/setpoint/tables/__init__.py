"""Reading tables: csv by the standard library, parquet and feather by pyarrow. Never torch.

The door is what reading scores needs; :mod:`setpoint.tables.training_file` is for tables to learn
from, and :mod:`setpoint.tables.features` turns their columns into features.
"""

from setpoint.tables.labels import LabelNames
from setpoint.tables.scores import (
    Scores,
    open_table,
    read_score_columns,
    read_scores,
    score_column,
    score_format,
)
from setpoint.tables.table import NO_ROWS, Chunk, TableError, TableSource, is_index, need_column

__all__ = [
    "NO_ROWS",
    "Chunk",
    "LabelNames",
    "Scores",
    "TableError",
    "TableSource",
    "is_index",
    "need_column",
    "open_table",
    "read_score_columns",
    "read_scores",
    "score_column",
    "score_format",
]

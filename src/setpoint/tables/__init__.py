"""Reading tables: csv by the standard library, parquet by pyarrow (extra ``data``). Never torch."""

from setpoint.tables.encoder import Encoder
from setpoint.tables.labels import Classes, LabelCount
from setpoint.tables.scores import Scores, open_table, read_scores
from setpoint.tables.source import Chunk, Source, TableError, need_column

__all__ = [
    "Chunk",
    "Classes",
    "Encoder",
    "LabelCount",
    "Scores",
    "Source",
    "TableError",
    "need_column",
    "open_table",
    "read_scores",
]

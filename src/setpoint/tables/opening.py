"""Which reader a path wants."""

from __future__ import annotations

from pathlib import Path

from setpoint.tables.csv_file import CsvSource
from setpoint.tables.errors import TableError
from setpoint.tables.parquet import SUFFIXES, ParquetSource
from setpoint.tables.shards import ShardSource, shards_in
from setpoint.tables.source import Source


def open_table(path: Path) -> Source:
    """The table in a csv file, in a parquet file if the name says so, or in a folder of these.

    Raises:
        TableError: There is no such file, or it is not a table.
    """
    if path.is_dir():
        files = shards_in(path)
        if not files:
            problem = "is a folder without parquet files; name a csv or parquet file."
            raise TableError(path, problem)
        return ShardSource(path, files)
    if not path.exists():
        raise TableError(path, "no such file.")
    return ParquetSource(path) if path.suffix.lower() in SUFFIXES else CsvSource(path)

"""A file read by several processes: each a part of the rows, all the same look at it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from setpoint.distributed import rank_of, rows_of_all, workers
from setpoint.tables import open_table
from setpoint.tables.parts import Part, count_rows
from setpoint.tables.share import RowShare
from setpoint.tables.source import Source
from setpoint.train.team import from_first

Found = TypeVar("Found")


def by_first(look: Callable[[], Found]) -> Found:
    """What rank 0 finds, on all ranks; what it cannot use is an error on all of them."""
    if workers() == 1:
        return look()
    found: Found | None = None
    trouble = None
    if rank_of() == 0:
        try:
            found = look()
        except (OSError, ValueError) as error:
            trouble = error
    told, answer = from_first((None if trouble is None else str(trouble), found))
    if trouble is not None:
        raise trouble
    if told is not None:
        raise ValueError(f"rank {rank_of()} stops with rank 0: {told}")
    result: Found = answer
    return result


def own_rows(source: Source, rows: int) -> RowShare:
    """The stretch of a table of so many rows that this rank reads."""
    size, rank = workers(), rank_of()
    return RowShare(source, rank * rows // size, (rank + 1) * rows // size)


def own_share(file: Path, label: str) -> Source:
    """This rank's stretch of a table whose length nobody knows yet."""
    source = open_table(file)
    if workers() == 1:
        return source
    return own_rows(source, by_first(lambda: count_rows(source, label)))


def whole(part: Part, scores: Any = None) -> tuple[Any, Any, Any]:
    """Scores, labels and groups of a part from all ranks, in the order of the file: each once."""
    found, _, _ = rows_of_all({"scores": scores, "y": part.y, "groups": part.groups})
    return found["scores"], found["y"], found["groups"]

"""What a ranker is given, checked: relevance, queries by name or size, parts of whole queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import whole
from setpoint.axes.segments import Grouped, query_column

Array = NDArray[Any]
STEPS, LEAST_PASSES = 300, 10
"""Without a number of passes: enough for so many steps, but never fewer passes than this."""


def read_relevance(y: Any) -> NDArray[np.int64]:
    """1 for every relevant document: those graded above 0."""
    grades = np.asarray(y)
    if grades.dtype.kind not in "biuf":
        raise ValueError(f"Relevance must be numbers; got {grades.dtype}.")
    wrong = ~(grades >= 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"Relevance must be at least 0; got {grades[row]} in row {row}.")
    return (grades > 0).astype(np.int64)


def read_queries(qid: Any, group: Any, count: int) -> Array:
    """The query of each row, from names or from sizes."""
    if (qid is None) == (group is None):
        raise ValueError(
            "A ranker needs to know which rows belong together: pass qid=, the query of each row, "
            "or group=, the number of rows of each query."
        )
    if group is None:
        return query_column("query", qid, np.empty(count, dtype=bool))
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(f"group must be whole numbers of rows, one a query; got {group!r:.60}.")
    if int(sizes.sum()) != count:
        raise ValueError(f"group adds up to {int(sizes.sum())} rows; there are {count}.")
    return np.repeat(np.arange(len(sizes)), sizes)


def query_parts(
    queries: Array, fraction: float, random: np.random.RandomState
) -> dict[str, NDArray[np.int64]]:
    """Rows of the parts ``train`` and ``validation``, whole queries each.

    With less than two queries, or a fraction of 0, both are all rows.
    """
    grouped = Grouped.by(queries)
    held_out = round(fraction * len(grouped))
    everyone = np.arange(len(queries))
    if held_out == 0 or len(grouped) < 2:
        return {"train": everyone, "validation": everyone}
    if held_out == len(grouped):
        raise ValueError(
            f"validation_fraction {fraction:g} of {len(grouped)} queries leaves none to train on."
        )
    names = grouped.names[random.permutation(len(grouped))[:held_out]]
    kept = np.isin(queries, names)
    return {"train": everyone[~kept], "validation": everyone[kept]}


def steps_of(epochs: int | str, each: int) -> int:
    """How many batches to train on, ``each`` a pass."""
    each = max(1, each)
    if epochs == "auto":
        return each * max(LEAST_PASSES, -(-STEPS // each))
    if isinstance(epochs, str):
        raise ValueError(f"epochs must be a number or 'auto'; got {epochs!r}.")
    return each * whole(epochs, "epochs", least=1)

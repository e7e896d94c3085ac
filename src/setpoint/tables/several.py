"""Labels of any number of classes, each called as the file writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.errors import TableError, listed, quoted
from setpoint.tables.source import Chunk, Source
from setpoint.tables.values import coded, normal, number_of

MOST_CLASSES = 1000
"""Different labels beyond which a column holds no classes."""


@dataclass(frozen=True)
class Several:
    """The values of a label column as texts; their order is that of the columns of scores."""

    names: tuple[str, ...]

    def encode(self, source: Source, chunk: Chunk, name: str) -> NDArray[np.int64]:
        """The number of each row's class, or an error with the row."""
        values, codes = coded(chunk.columns[name])
        known = {normal(text): place for place, text in enumerate(self.names)}
        numbers = np.array([known.get(normal(v), -1) for v in values], dtype=np.int64)
        found: NDArray[np.int64] = numbers[codes]
        if found.min(initial=0) < 0:
            place = int(np.argmin(found))
            value = values[codes[place]]
            shown = "missing" if value is None else quoted(value)
            problem = f"the label is {shown}; it must be one of {listed(list(self.names), 5)}."
            raise TableError(source.path, problem, row=chunk.rows[place], column=name)
        return found


def several_of(spelled: Mapping[str, set[str]]) -> Several:
    """All classes in order: numbers by size, texts by the alphabet.

    Args:
        spelled: For each class, as it is compared, every way it is written. One that is written in
            one way is called so; ``1`` and ``1.0`` in one file are called ``1``.
    """
    numeric = all(number_of(value) is not None for value in spelled)
    order = sorted(spelled, key=lambda v: (float(v), v) if numeric else (0.0, v))
    return Several(
        tuple(next(iter(spelled[v])) if len(spelled[v]) == 1 else v for v in order),
    )

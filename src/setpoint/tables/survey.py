"""The first pass over a training file: classes, columns, and which row goes where."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.encoder import Encoder, column_of
from setpoint.tables.errors import TableError, quoted
from setpoint.tables.labels import MOST, Classes, LabelCount
from setpoint.tables.roles import role_of
from setpoint.tables.several import MOST_CLASSES, Several
from setpoint.tables.source import Source, need_column
from setpoint.tables.summary import Summary

TRAIN, VALIDATION, CALIBRATION = 0, 1, 2
PARTS = ("train", "validation", "calibration")
STREAM = 0x5E7901  # numbers of our own: made-up data often come from default_rng(0) themselves


@dataclass(frozen=True)
class Shares:
    """How the rows are dealt out: each one by itself, by a number drawn from ``seed``.

    So a part is a random sample of the file whatever its order, the same on every pass, and the
    rows need not be counted first.
    """

    seed: int
    validation: float = 0.2
    calibration: float = 0.2

    def dealer(self, start: int = 0) -> Callable[[int], NDArray[np.int64]]:
        """A function that gives the parts of the next ``size`` rows, from row ``start`` on."""
        numbers = np.random.PCG64([self.seed, STREAM])
        draw = np.random.Generator(numbers.advance(start))  # a number a row
        edges = [1 - self.validation - self.calibration, 1 - self.calibration]
        return lambda size: np.searchsorted(edges, draw.random(size), side="right")


@dataclass(frozen=True)
class Survey:
    """What the first pass found."""

    classes: Classes | Several
    encoder: Encoder
    rows: int
    notes: tuple[str, ...]


def survey(
    source: Source,
    label: str,
    shares: Shares,
    *,
    positive: str | None = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    several: bool = False,
) -> Survey:
    """Read the file once and decide how each column is used.

    Raises:
        TableError: The label is missing or has not two values (two at least if it may have
            ``several``), or no column can be used.
    """
    for names, option in (([label], "--label"), (drop, "--drop"), (keep, "--keep")):
        for name in names:
            need_column(source, name, option)
    unreadable = tuple(getattr(source, "unreadable", ()))
    left = [n for n in source.names if n != label and n not in drop and n not in unreadable]
    labels = LabelCount(source, label, MOST_CLASSES if several else MOST)
    columns = [Summary(name) for name in left]
    deal, rows = shares.dealer(), 0
    for chunk in source.chunks([label, *left]):
        labels.update(chunk)
        training = deal(len(chunk)) == TRAIN
        for column in columns:
            column.update(chunk.columns[column.name], training, chunk.rows)
        rows += len(chunk)
    classes = labels.several() if several else labels.classes(positive)
    notes = [f"column {name!r} left out: neither numbers nor text." for name in unreadable]
    used = []
    for column in columns:
        if column.numeric and column.infinite is not None:
            problem = "the value is infinite; mend or remove the row, or --drop the column."
            raise TableError(source.path, problem, row=column.infinite, column=column.name)
        if column.odd is not None and column.name not in keep:
            problem = f"{quoted(column.odd.text)} is no number, and nearly all other values are; "
            problem += "mend it or leave it empty (--keep takes the column as text)."
            raise TableError(source.path, problem, row=column.odd.row, column=column.name)
        role, note = role_of(column, keep)
        notes += [note] if note else []
        used += [column_of(column, role)] if role != "drop" else []
    if not used:
        why = f" ({notes[0]})" if notes else ""
        raise TableError(source.path, f"no column is left to learn from{why}")
    return Survey(classes, Encoder(tuple(used)), rows, tuple(notes))

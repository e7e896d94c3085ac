"""The rows of a file with a group to be fair to: one part to train on, one to judge by."""

from __future__ import annotations

import argparse
import sys
from typing import Any

HELD_OUT = 0.3  # of the rows, to judge by
LEAST = 10  # rows of each class and group in either part, below which rates say nothing


class Grouped:
    """Tensors of a file: features, labels and one-hot groups to train on, and to judge by."""

    def __init__(self, train: Any, held_out: Any, seen: Any) -> None:
        from numpy import unique

        self.groups = [] if train.groups is None else sorted(map(str, unique(train.groups)))
        self.positive, self.columns = seen.classes.positive, seen.encoder.to_json()
        self.train, self.held_out = self._tensors(train), self._tensors(held_out)

    def _tensors(self, part: Any) -> tuple[Any, Any, Any]:
        import numpy as np
        import torch

        names = self.groups
        alike = np.ones((len(part), 1))
        if names:
            alike = np.stack([part.groups == name for name in names], axis=1)
        return (
            torch.from_numpy(np.ascontiguousarray(part.x)),
            torch.from_numpy(part.y),
            torch.from_numpy(alike.astype(np.float32)),
        )


def read_grouped(given: argparse.Namespace) -> Grouped:
    """The file, read twice: what its columns hold, then the rows."""
    from setpoint.tables import need_column, open_table
    from setpoint.tables.training_file import Shares, read_parts, survey

    source = open_table(given.file)
    if given.group is not None:
        need_column(source, given.group, "--group")
    shares = Shares(given.seed, validation=HELD_OUT, calibration=0.0)
    unseen = [] if given.group is None or given.learn_from_group else [given.group]
    options = {"positive": given.positive, "drop": (*given.drop, *unseen), "keep": given.keep}
    seen = survey(source, given.label, shares, **options)
    if not given.quiet:
        for note in (f"{given.file}: {seen.rows:,} rows.", *seen.notes):
            print(note, file=sys.stderr)
    reading = read_parts(
        source, given.label, seen.classes, seen.encoder, shares.dealer(), seen.rows, given.group
    )
    with reading as (train, held_out, _):
        _check(given, train, held_out)
        return Grouped(train, held_out, seen)


def _check(given: argparse.Namespace, train: Any, held_out: Any) -> None:
    """Enough rows of both classes to have rates, in every group, two groups at least."""
    from setpoint.tables import TableError
    from setpoint.tables.source import listed

    names = sorted({str(g) for part in (train, held_out) for g in _groups_of(part)})
    if given.group is not None and len(names) < 2:
        problem = f"a group column has two values at least; this one has only {listed(names)}."
        raise TableError(given.file, problem, column=given.group)
    for part in (train, held_out):
        for name in names or [""]:
            mine = part.y[part.groups == name] if names else part.y
            few = min(int(mine.sum()), int(len(mine) - mine.sum()))
            if few < LEAST:
                whose = f" of the group {name!r}" if names else ""
                problem = f"too few rows: a part has {few} of a class{whose}; {LEAST} is the least."
                raise TableError(given.file, problem, column=given.group)


def _groups_of(part: Any) -> Any:
    return () if part.groups is None else part.groups

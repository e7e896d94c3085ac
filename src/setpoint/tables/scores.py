"""Scores and labels of a file, for certificates: no model, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.errors import TableError
from setpoint.tables.labels import Classes, LabelCount
from setpoint.tables.source import Source, need_column
from setpoint.tables.values import need_groups, need_numbers


@dataclass(frozen=True)
class Scores:
    """One score a row; labels (0 or 1) and groups (texts) where columns were named for them."""

    scores: NDArray[np.float64]
    labels: NDArray[np.int64] | None
    groups: NDArray[Any] | None
    classes: Classes | None

    def __len__(self) -> int:
        return len(self.scores)


def read_scores(
    source: Source,
    score: str,
    label: str | None = None,
    group: str | None = None,
    positive: str | None = None,
    *,
    classes: Classes | None = None,
    one_will_do: bool = False,
) -> Scores:
    """The named columns, checked: scores finite, two classes, no group missing.

    The two classes are found in the file unless ``classes`` names them; with ``one_will_do`` all
    rows may be of one.

    Raises:
        TableError: The file, the row and column of the first value that cannot be used.
    """
    for name, what in ((score, "--score"), (label, "--label"), (group, "--group")):
        if name is not None:
            need_column(source, name, what)
    wanted = dict.fromkeys(name for name in (score, label, group) if name is not None)
    chunks = list(source.chunks(wanted))
    if not chunks:
        raise TableError(source.path, "has a header and no rows.")
    scores = np.concatenate([need_numbers(source, c, score, "scores") for c in chunks])
    labels = groups = None
    if label is not None:
        if classes is None:
            count = LabelCount(source, label)
            for chunk in chunks:
                count.update(chunk)
            classes = count.classes(positive, one_will_do=one_will_do)
        labels = np.concatenate([classes.encode(source, c, label) for c in chunks])
    if group is not None:
        groups = np.concatenate([need_groups(source, c, group) for c in chunks])
    return Scores(scores, labels, groups, classes)


def read_texts(source: Source, name: str, option: str) -> NDArray[Any]:
    """One column as texts, none missing."""
    need_column(source, name, option)
    return np.concatenate([need_groups(source, chunk, name) for chunk in source.chunks([name])])

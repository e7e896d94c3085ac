"""What every run says of itself, whatever it decides: plain data, and no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.batch import check_length

SPLITS = ("train", "validation", "calibration", "test")


class Scored(NamedTuple):
    """Scores, labels and (or None) group values of the examples of one split.

    Of two classes the scores are ``[n]`` and the labels 0/1; of several ``[n, K]``, and the labels
    are columns.
    """

    scores: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Described:
    """What a run asked for, what it was given and how it was made.

    Args:
        goal: The sentence.
        splits: Scores, labels and groups (or None) of train, validation, calibration and test;
            any may be absent, and plain tuples will do.
        certificate: As from ``Certificate.to_json``, as a dict; None if nothing was certified.
        label: The column that was learned.
        method: What it was trained with, ``implicit``.
        model: What was trained, ``mlp``.
        seed: What all randomness came from.
        versions: Of the libraries, by name.
        created: When, in ISO format.
        history: One dict an epoch: epoch, loss, metrics by name.
        baseline: What another model scored on the same splits, row by row.
        baseline_name: What to call it.
        columns: The features used.
        group: The column that groups come from.
        notes: What was done to the data, in sentences.
    """

    goal: str = field(kw_only=False)
    splits: Mapping[str, Any] = field(kw_only=False)
    certificate: Mapping[str, Any] | None = None
    label: str = "label"
    method: str = ""
    model: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    history: Sequence[Mapping[str, Any]] = ()
    baseline: Mapping[str, Any] | None = None
    baseline_name: str = "cross-entropy"
    columns: Sequence[str] = ()
    group: str = "group"
    notes: Sequence[str] = ()

    @property
    def judged(self) -> str:
        """The split nearest to new data, whose rows the model knows least: test, or the best."""
        return next(name for name in reversed(SPLITS) if name in self.splits)


def checked(splits: Mapping[str, Any], what: str, read: Callable[..., Scored]) -> dict[str, Scored]:
    """Splits by their known names, in order, each read."""
    unknown = [name for name in splits if name not in SPLITS]
    if unknown:
        raise ValueError(f"{what} are named {', '.join(SPLITS)}; got {unknown[0]!r}.")
    if not splits:
        raise ValueError(f"{what} are at least one of {', '.join(SPLITS)}; got none.")
    return {name: read(*splits[name]) for name in SPLITS if name in splits}


def read_groups(groups: Any, rows: NDArray[Any]) -> NDArray[Any] | None:
    """A group value for every row, or None."""
    if groups is None:
        return None
    found = np.asarray(groups)
    check_length(found, rows, "groups")
    return found

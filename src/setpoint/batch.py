"""Checked inputs: scores, labels and weights of numpy or torch, with errors that name the row.

Written on what the two libraries share, so that training and evaluation refuse the same things in
the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from setpoint._checks import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Array = Any


class ScoredExamples(NamedTuple):
    """What is known of some examples, as it was handed in: columns of numpy, torch or lists.

    Attributes:
        scores: ``[n]``; ``[n, c]`` for ``c`` binary outputs, ``[n, K]`` for K classes.
        labels: 0 or 1; of classes the column.
        weights: Optional, weight 2 counts an example twice.
        groups: A column of group values, or a dict of columns.
        queries: The query of each example.
        classes: What the columns of the scores are called.
    """

    scores: Any
    labels: Any
    weights: Any = None
    groups: Any = None
    queries: Any = None
    classes: Any = None


def check_scores(scores: _Array) -> None:
    """Raise a ValueError that names the first row whose score is not a finite number."""
    finite = abs(scores) < float("inf")  # False for NaN too
    if not finite.all():
        row, value = _first(~finite, scores)
        raise ValueError(
            f"Scores must be finite; got {value} in row {row}. Look at the model's output there: "
            "a division by zero, an overflow, or a learning rate that is too high."
        )


def check_labels(labels: _Array, scores: _Array) -> None:
    """Labels are 0 or 1, one for each score."""
    check_length(labels, scores, "labels")
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        row, value = _first(wrong, labels)
        hint = ""
        if value == -1:
            hint = (
                " If -1 marks negatives, pass labels > 0; if it marks missing labels, leave these "
                "rows out."
            )
        raise ValueError(f"Labels must be 0 or 1; got {value:g} in row {row}.{hint}")


def missing_labels(labels: _Array) -> _Array | None:
    """Which labels are missing (NaN or -1), or None if none is.

    Where no label is 0, -1 may well mean negative: it is then left to :func:`check_labels`.
    """
    if not ((labels != 0) & (labels != 1)).any():
        return None
    missing = labels != labels
    if (labels == 0).any():
        missing = missing | (labels == -1)
    return missing if missing.any() else None


def check_weights(weights: _Array, scores: _Array) -> None:
    """Weights are finite and not negative, one for each score."""
    check_length(weights, scores, "weights")
    right = (weights >= 0) & (weights < float("inf"))
    refuse_rows(~right, weights, "Weights must be finite and at least 0", form="")


def check_length(values: _Array, scores: _Array, name: str) -> None:
    """Raise a ValueError unless there is one value for each score."""
    if tuple(values.shape) != tuple(scores.shape):
        raise ValueError(
            f"{name} must have the shape of the scores, {tuple(scores.shape)}; "
            f"got {tuple(values.shape)}."
        )


def as_column(values: NDArray[Any]) -> NDArray[Any]:
    """``[n, 1]`` as ``[n]``; any other shape as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def column_of(groups: Any, column: str, columns: set[str]) -> Any:
    """The column a slice is picked by: of a dict by name, or the only one there is."""
    if groups is None:
        raise ValueError(f'The problem looks at slices by "{column}"; pass groups=.')
    if not isinstance(groups, Mapping):
        if len(columns) > 1:
            names = ", ".join(sorted(columns))
            raise ValueError(
                f"The problem needs the columns {names}; pass groups={{name: column}}."
            )
        return groups
    if column not in groups:
        known = ", ".join(map(str, groups)) or "none"
        raise ValueError(f'The problem needs a group column "{column}"; groups has: {known}.')
    return groups[column]


def refuse_rows(wrong: _Array, values: _Array, rule: str, *, form: str = "g") -> None:
    """Raise a ValueError with the rule, the value and the row of the first wrong entry, if any."""
    if wrong.any():
        row, value = _first(wrong, values)
        raise ValueError(f"{rule}; got {value:{form}} in row {row}.")


def _first(wrong: _Array, values: _Array) -> tuple[int, float]:
    """Row and value of the first wrong entry."""
    flat = wrong.reshape(-1).tolist().index(True)
    width = 1 if len(wrong.shape) < 2 else wrong.shape[1]
    return flat // width, float(values.reshape(-1)[flat].item())


def describe(positives: float, negatives: float) -> str:
    """``3 positives and 97 negatives``."""
    return f"{plural(positives, 'positive')} and {plural(negatives, 'negative')}"

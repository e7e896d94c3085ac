"""Several binary outputs of one model, by name, each with the rows that have a label of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import as_array
from setpoint.batch import missing_labels


def output_names(outputs: Sequence[str]) -> tuple[str, ...]:
    """Names of binary outputs; a ValueError if one is there twice."""
    names = () if isinstance(outputs, str) else tuple(map(str, outputs))
    if not names or len(set(names)) < len(names):
        raise ValueError(f"outputs must be different names, one per column; got {outputs!r:.80}.")
    return names


def check_output_columns(outputs: Sequence[str], columns: int) -> None:
    """Raise if there is not one column of scores for each name."""
    if columns != len(outputs):
        raise ValueError(
            f"outputs= names {len(outputs)} outputs ({', '.join(outputs[:5])}), and the scores "
            f"have {columns} columns."
        )


def columns_of_outputs(
    scores: Any, labels: Any, outputs: Sequence[str], weights: Any = None
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
    """Name, scores, labels and weights of every output, of the rows that have a label of it.

    Args:
        scores: ``[n, c]``.
        labels: ``[n, c]``, 0 or 1; NaN or -1 where an example was not labelled for an output.
        outputs: A name for each column.
        weights: Optional, ``[n]``.

    Raises:
        ValueError: There is not one column for each name, or labels have another shape.
    """
    names, s, y = output_names(outputs), as_array(scores, "scores"), as_array(labels, "labels")
    check_output_columns(names, 1 if s.ndim == 1 else s.shape[1])
    if y.shape != s.shape:
        raise ValueError(
            f"labels must have the shape of the scores, {s.shape}, one column for each of "
            f"{', '.join(names[:5])}; got {y.shape}."
        )
    w = None if weights is None else as_array(weights, "weights")
    missing = missing_labels(y)
    absent = np.zeros(y.shape, bool) if missing is None else missing
    for place, name in enumerate(names):
        own, truth, gone = (x.reshape(len(s), -1)[:, place] for x in (s, y, absent))
        known = ~gone
        yield name, own[known], truth[known], None if w is None else w[known]


def of_each(values: Any, outputs: Sequence[str]) -> dict[str, Any]:
    """One entry for every output: of a mapping by name, of a sequence in order, None of None."""
    if values is None:
        return dict.fromkeys(outputs)
    if isinstance(values, Mapping):
        return {name: values[name] for name in outputs}
    return dict(zip(outputs, as_array(values, "thresholds").tolist(), strict=True))

"""From a batch to the sample that thresholds see: checked, in ``[c, n]``, weighed by slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.batch import check_labels, check_length, check_scores, check_weights, column_of
from setpoint.rates import Where
from setpoint.thresholds.arrays import array_of
from setpoint.thresholds.sample import Sample


def read(
    slices: tuple[Where, ...],
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    groups: Any = None,
) -> Sample:
    """A checked sample from a batch: scores ``[n]``, ``[n, 1]`` or ``[n, c]``, labels alike."""
    return read_arrays(slices, scores, labels, weights, groups).tensors()


def read_arrays(
    slices: tuple[Where, ...], scores: Tensor, labels: Tensor, weights: Any, groups: Any
) -> Sample:
    """The same in numpy or torch, whichever :func:`setpoint.thresholds.library_of` says."""
    s, y = _pair(scores, labels)
    w = None
    if weights is not None:
        weights = _exact(torch.as_tensor(weights, device=scores.device))
        weights = weights if weights.ndim == 2 else weights[:, None]
        w = array_of(weights.expand(s.shape) if len(weights) == len(s) else weights)
    if not torch.compiler.is_compiling():
        _check(s, y, w)
    return Sample(s.T, _columns(slices, s, y, w, groups))


def _check(scores: Any, labels: Any, weights: Any) -> None:
    check_scores(scores)
    check_labels(labels, scores)
    if weights is not None:
        check_weights(weights, scores)


def _columns(slices: tuple[Where, ...], scores: Any, labels: Any, weights: Any, groups: Any) -> Any:
    """What every example weighs in each class of each slice, ``[c, n, k]``; numpy or torch.

    In memory every column is one piece: so they are read, one after the other.
    """
    names = {column for where in slices for column, _ in where}
    positive = labels.T > 0
    masks = []
    for where in slices:
        inside = [positive, ~positive]
        if where:
            members = _members(where, groups, names, scores)
            inside = [of_class & members for of_class in inside]
        masks += inside
    columns: Any
    if isinstance(scores, Tensor):
        columns = torch.stack(masks, 1).to(scores.dtype)
    else:
        columns = np.empty((len(positive), len(masks), len(scores)))
        for place, mask in enumerate(masks):
            columns[:, place] = mask
    columns = columns if weights is None else columns * weights.T[:, None]
    return columns.swapaxes(1, 2)


def _pair(scores: Tensor, labels: Tensor) -> tuple[Any, Any]:
    """Scores and labels as ``[n, c]``, in numpy or torch."""
    if not isinstance(labels, Tensor) or labels.device != scores.device:
        labels = torch.as_tensor(labels, device=scores.device)
    if not scores.is_floating_point():
        raise TypeError(f"Scores must be floating-point logits; got {scores.dtype}.")
    if scores.ndim not in (1, 2):
        raise ValueError(
            "Scores are [n] or [n, 1] for a binary classifier, [n, c] for c binary outputs; "
            f"got the shape {tuple(scores.shape)}."
        )
    if scores.ndim == 2 and scores.shape[1] > 1:
        if labels.ndim == 1 and labels.shape[0] == scores.shape[0]:
            raise ValueError(
                f"Scores of shape {tuple(scores.shape)} with one label an example look like "
                "classes; this criterion takes binary outputs, with labels of the scores' shape."
            )
        return array_of(_exact(scores)), array_of(_exact(labels))
    n = scores.shape[0]
    if labels.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"labels must be one an example, [{n}] or [{n}, 1]; got {tuple(labels.shape)}."
        )
    return array_of(_exact(scores)).reshape(n, 1), array_of(_exact(labels)).reshape(n, 1)


def _exact(values: Tensor) -> Tensor:
    """Without a gradient, and in double precision if they are no integers."""
    if not values.is_floating_point():
        return values
    return values.detach().float() if values.is_mps else values.detach().double()


def _members(where: Where, groups: Any, names: set[str], scores: Any) -> Any:
    """Who belongs to a slice, ``[n]``; group columns may be tensors or arrays of strings."""
    inside: Any = True
    for column, value in where:
        given = column_of(groups, column, names)
        matches = given == value if isinstance(given, Tensor) else np.asarray(given) == value
        device = scores.device if isinstance(scores, Tensor) else "cpu"
        matches = torch.as_tensor(matches, device=device).reshape(-1)
        if not isinstance(scores, Tensor):
            matches = matches.numpy()
        check_length(matches, scores[:, 0], "groups")
        inside = matches & inside
    return inside

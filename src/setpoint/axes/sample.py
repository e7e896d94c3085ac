"""The examples that thresholds see: checked scores, and the weights of both classes in every slice.

Everything is ``[c, n]``: ``c`` outputs (one for a binary classifier) of ``n`` examples, in float64.
An example of weight zero is absent, which is also how a half-filled memory is empty.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats, as_array, to_numpy
from setpoint.axes.cuts import Cuts, tables_of
from setpoint.batch import (
    ScoredExamples,
    check_labels,
    check_length,
    check_scores,
    check_weights,
    column_of,
    describe,
    missing_labels,
)
from setpoint.rates import BY_AMOUNT, Array, Tables, Where


class Sample:
    """Scores ``[c, n]`` and the weights ``[c, n, k]`` of positives and negatives in every slice.

    The columns come in pairs, positives then negatives, one pair per slice; everyone is the first.
    Arrays of numpy, or tensors: :meth:`tensors`.

    Attributes:
        totals: The weight of each column, ``[c, k]``.
        unweighted: Whether every example has weight one.
        unit: What an example of weight one weighs here, ``[c, 1]``: less once others have joined.
        unlabelled: Whether some labels are missing: such examples weigh nothing.
        positive: Which examples have label 1, ``[c, n]``, as they were read.
        ranked: The scores in the precision they came in: enough for their order, and faster.
    """

    positive: NDArray[np.bool_]
    unlabelled = False
    unit: Array = 1.0

    def __init__(
        self,
        scores: Array,
        columns: Array,
        slices: tuple[Where, ...] = ((),),
        *,
        totals: Array = None,
        unweighted: bool = False,
    ) -> None:
        self.scores, self.columns, self.slices = scores, columns, slices
        self.ranked = scores
        self.totals = columns.sum(1) if totals is None else totals
        self.unweighted = unweighted

    @cached_property
    def cuts(self) -> Cuts:
        """The sorted scores with the counts at every cut."""
        pairs = {
            where: (self.columns[..., 2 * i], self.columns[..., 2 * i + 1])
            for i, where in enumerate(self.slices)
        }
        return Cuts.sort(self.scores, pairs)

    @property
    def content(self) -> str:
        """How many positives and negatives there are, in words."""
        return describe(*self.totals[0, :2].tolist())

    @property
    def weights(self) -> Array:
        """What every example weighs, ``[c, n]``."""
        return self.columns[..., :2].sum(-1)

    @property
    def both_classes(self) -> Array:
        """Whether an output has positives and negatives, ``[c]``."""
        return (self.totals[:, :2] > 0).all(-1)

    def tables_at(self, thresholds: Array) -> Tables:
        """True counts at thresholds ``[c, m]``, or those of each example, ``[c, m, n]``."""
        scores, columns, totals = (exact(x) for x in (self.scores, self.columns, self.totals))
        at = exact(thresholds)
        accepted = (scores[:, None] > (at if at.ndim == 3 else at[..., None])) @ columns
        return tables_of(accepted, totals, self.slices)

    def tensors(self, device: Any = None) -> Sample:
        """The same examples as tensors, for criteria that compute with these."""
        import torch

        parts = (torch.from_numpy(np.ascontiguousarray(x)) for x in (self.scores, self.columns))
        scores, columns = (x.to(device) for x in parts)
        return Sample(scores, columns, self.slices)

    def joined(self, other: Sample) -> Sample:
        """Both samples; weights scaled so that their sum stays that of this one.

        Only a goal that counts heads (``alerts``) can tell the difference: ``k`` means ``k`` of a
        batch, however long the memory.
        """
        columns = np.concatenate([self.columns, other.columns], 1)
        mine, all_ = (x[..., :2].sum((1, 2), keepdims=True) for x in (self.columns, columns))
        factor = np.divide(mine, all_, out=np.ones_like(all_), where=all_ > 0)
        scores = np.concatenate([self.scores, other.scores], 1)
        joined = Sample(scores, columns * factor, self.slices)
        joined.unit = factor[..., 0]
        return joined

    def standing_for(self, whole: Sample) -> Sample:
        """This sample with the class totals of ``whole``: its mean stands for the whole.

        Averaged over memory and batch instead, the gradient would shrink by the share of the batch.
        """
        mine = self.totals
        factor = np.divide(whole.totals, mine, out=np.zeros_like(mine), where=mine > 0)
        return Sample(self.scores, self.columns * factor[:, None], self.slices)


def read_sample(
    slices: tuple[Where, ...], scores: Any, labels: Any, weights: Any = None, groups: Any = None
) -> Sample:
    """A checked sample of a batch.

    Args:
        slices: The slices whose counts are needed; ``()``, everyone, is the first.
        scores: ``[n]``, ``[n, 1]`` or ``[n, c]`` for ``c`` binary outputs.
        labels: 0 or 1, in the shape of the scores; NaN or -1 where one is missing.
        weights: Optional, ``[n]`` or in the shape of the scores.
        groups: A column of group values, or a dict of columns, for slices.
    """
    given, y = _pair(scores, labels)
    s = given.astype(np.float64, copy=False)
    if not np.isfinite(given).all():
        check_scores(s)
    positive, negative = y == 1, y == 0
    counts, missing = (np.count_nonzero(positive), np.count_nonzero(negative)), None
    if y.shape != s.shape or sum(counts) < y.size:
        missing = missing_labels(y)
        check_labels(y if missing is None else np.where(missing, 0, y), s)
    w = None
    if weights is not None:
        w = exact(weights)
        w = w if w.ndim == 2 else w[:, None]
        w = np.broadcast_to(w, s.shape) if len(w) == len(s) else w
        check_weights(w, s)
    columns = _weight_columns(slices, s, (positive.T, negative.T), w, groups)
    unweighted = w is None and missing is None
    counted = unweighted and columns.shape[::2] == (1, 2)  # one output, everyone: it has been done
    totals = np.array([counts], dtype=float) if counted else None
    sample = Sample(s.T, columns, slices, totals=totals, unweighted=unweighted)
    sample.positive, sample.unlabelled = positive.T, missing is not None
    if w is None and given.dtype == np.float32:
        sample.ranked = given.T
    return sample


def exact(values: Any) -> NDArray[Any]:
    """Numbers of numpy or torch (any dtype, any device) in float64; integers and booleans stay."""
    found = _as_array(values, "values")
    return found if found.dtype.kind in "biu" else found.astype(np.float64, copy=False)


def _as_array(values: Any, name: str) -> NDArray[Any]:
    """As :func:`setpoint.axes.arrays.as_array`, for what training passes at every step."""
    try:
        found: NDArray[Any] = values.numpy()
    except (AttributeError, RuntimeError, TypeError):  # no tensor, with a graph, or elsewhere
        return as_array(values, name)
    return found


def _pair(scores: Any, labels: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores and labels as ``[n, c]``."""
    s, y = _as_array(scores, "scores"), _as_array(labels, "labels")
    if s.dtype.kind != "f":
        raise TypeError(f"Scores must be floating-point logits; got {scores.dtype}.")
    if s.ndim not in (1, 2):
        raise ValueError(
            "Scores are [n] or [n, 1] for a binary classifier, [n, c] for c binary outputs; "
            f"got the shape {s.shape}."
        )
    n = len(s)
    if s.ndim == 2 and s.shape[1] > 1:
        if y.shape == (n,):
            two = " Of two logits pass their difference, scores[:, 1] - scores[:, 0]."
            raise ValueError(
                f"Scores of shape {s.shape} with one label per example look like classes; this "
                "goal takes binary outputs, with labels of the scores' shape. Rates of classes say "
                "of which: recall of 0, macro(recall); for accuracy write maximize top_k(1)."
                f"{two * (s.shape[1] == 2)}"
            )
        return s, y
    if y.shape not in ((n,), (n, 1)):
        raise ValueError(f"labels must be one per example, [{n}] or [{n}, 1]; got {y.shape}.")
    return s.reshape(n, 1), y.reshape(n, 1)


def _weight_columns(
    slices: tuple[Where, ...],
    scores: Floats,
    classes: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    weights: Floats | None,
    groups: Any,
    *,
    needed: bool = False,
) -> Floats:
    """What every example weighs in each class of each slice, ``[c, n, k]``.

    In memory every column is one piece: so they are read, one after the other.
    """
    positive, negative = classes
    columns: Floats = np.empty((len(positive), 2 * len(slices), len(scores)))
    columns[:, 0], columns[:, 1] = positive, negative
    for i, where in enumerate(slices[1:], 1):
        inside = members(slices, where, groups, scores[:, 0], needed=needed)
        columns[:, 2 * i], columns[:, 2 * i + 1] = positive & inside, negative & inside
        for column, value in where:
            if value == BY_AMOUNT:
                columns[:, 2 * i] *= read_amounts(
                    group_column(slices, column, groups, scores[:, 0])
                )
    if weights is not None:
        columns *= weights.T[:, None]
    by_example: Floats = columns.swapaxes(1, 2)
    return by_example


def read_to_evaluate(slices: tuple[Where, ...], examples: ScoredExamples) -> Sample:
    """A checked sample of one output, for evaluation.

    Takes plain lists too; no examples at all, or none in a slice, are an error.
    """
    s, y = one_output(examples.scores, "scores"), one_output(examples.labels, "labels")
    if s.size == 0:
        raise ValueError("There are no scores to evaluate: pass at least one example.")
    check_scores(s)
    check_labels(y, s)
    w = None if examples.weights is None else one_output(examples.weights, "weights")
    if w is not None:
        check_weights(w, s)
        w = w[:, None]
    classes = (y == 1)[None], (y == 0)[None]
    columns = _weight_columns(slices, s[:, None], classes, w, examples.groups, needed=True)
    return Sample(s[None], columns, slices, unweighted=w is None)


def members(
    slices: tuple[Where, ...], where: Where, groups: Any, scores: Floats, *, needed: bool = False
) -> NDArray[np.bool_]:
    """Which examples are in a slice, ``[n]``; if some are ``needed``, none is an error."""
    inside = np.ones(len(scores), dtype=bool)
    for column, value in where:
        if value == BY_AMOUNT:
            continue
        array = group_column(slices, column, groups, scores)
        matches = np.asarray(array == value)
        if needed and not np.any(matches):
            known = ", ".join(map(repr, list(dict.fromkeys(array.tolist()))[:5]))
            raise ValueError(f"No example has {column} = {value!r}; the column holds {known}.")
        inside &= matches
    return inside


def read_amounts(amounts: Any) -> Floats:
    """What each row is worth: finite, and at least 0."""
    array = to_numpy(amounts, "amounts").astype(np.float64)
    right = (array >= 0) & (array < np.inf)
    if not right.all():
        row = int(np.argmin(right))
        raise ValueError(f"amounts must be finite and at least 0; got {array[row]} in row {row}.")
    return array


def group_column(
    slices: tuple[Where, ...], column: str, groups: Any, scores: Floats
) -> NDArray[Any]:
    """One value for each example, of the column that slices are picked by; of any type."""
    given = column_of(groups, column, {name for where in slices for name, _ in where})
    array = as_array(given, "groups")
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    check_length(array, scores, "groups")
    return array


def one_output(values: Any, name: str) -> Floats:
    """``[n]`` or ``[n, 1]`` as ``[n]``."""
    array = to_numpy(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one number per example, [n] or [n, 1]; got the shape {array.shape}. "
            "Of predict_proba take the column of the positives, scores[:, 1]. Several outputs are "
            'evaluated one by one; in certify such outputs are named: outputs=["a", "b"].'
        )
    return array

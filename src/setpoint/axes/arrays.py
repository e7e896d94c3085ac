"""Arrays of numpy, and how values of other libraries become them."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.rates import Array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def quiet() -> AbstractContextManager[object]:
    """Divide by zero without a warning: 0/0 is a value here, not an accident."""
    return np.errstate(all="ignore")


def no_nan(values: Array) -> Array:
    """Costs with NaN, which is 0/0, as infinite: the worst that a cost can be."""
    return np.where(values == values, values, np.inf)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """A column of numpy, torch (any dtype, any device), pandas, polars or a list, as an array.

    Floats of torch that numpy does not have become float32, which holds them exactly. Values that
    are missing (pandas' ``NA``, None) are NaN among numbers and None among texts.

    Raises:
        TypeError: Entries are masked, a tensor is sparse or has no data, or the values are complex
            numbers, dates or records.
    """
    if hasattr(values, "detach"):
        check_dense(values, name)
        values = values.detach().cpu()
        if values.is_floating_point() and values.dtype.itemsize < 4:
            values = values.float()
    check_unmasked(values, name)
    try:
        array = np.asarray(values)
    except ValueError:
        raise TypeError(f"{name} must be numbers, one per example; got {values!r:.60}.") from None
    if array.dtype.kind == "O":
        array = _without_na(array)
    if array.dtype.kind in "cmMV":
        raise TypeError(f"{name} must be real numbers; got values of the type {array.dtype}.")
    return array


_DENSE = {"quantized": "dequantize()", "nested": "to_padded_tensor(...)", "sparse": "to_dense()"}
"""What makes an ordinary tensor of an odd one."""


def check_dense(tensor: Any, name: str) -> None:
    """TypeError if a tensor of torch is no ordinary one, has no data or holds complex numbers."""
    odd = odd_kind(tensor)
    if odd is not None:
        raise TypeError(f"{name} must be a dense tensor with data; got a {odd}.")
    if tensor.is_complex():
        raise TypeError(f"{name} must be real numbers; got values of the type {tensor.dtype}.")


def odd_kind(tensor: Any) -> str | None:
    """What a tensor of torch is if not an ordinary one, and what to do; else None."""
    kind = "meta" if tensor.is_meta else "quantized" if tensor.is_quantized else ""
    kind = "nested" if tensor.is_nested else kind or str(tensor.layout)
    if kind == "torch.strided":
        return None
    cure = next((how for odd, how in _DENSE.items() if odd in kind), None)
    return f"{kind} tensor" + ("" if cure is None else f": call its {cure} first")


def check_unmasked(values: Any, name: str) -> None:
    """TypeError if entries of an array are masked: other functions would read what is below."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.flatnonzero(np.ma.getmaskarray(values).reshape(len(values), -1).any(1))[0])
        raise TypeError(f"{name} has masked entries, the first in row {row}: leave those rows out.")


def _without_na(array: NDArray[Any]) -> NDArray[Any]:
    """Objects with None for pandas' NA; of numbers and truth values an array of floats."""
    flat = [None if type(x).__name__ == "NAType" else x for x in array.reshape(-1).tolist()]
    known = [x for x in flat if x is not None]
    if known and len(known) < len(flat) and all(isinstance(x, (bool, int, float)) for x in known):
        return np.array([np.nan if x is None else x for x in flat], float).reshape(array.shape)
    found: NDArray[Any] = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found.reshape(array.shape)


def to_numpy(values: Any, name: str) -> NDArray[Any]:
    """Numbers of numpy, torch or plain lists, as float64; see :func:`as_array`."""
    array = as_array(values, name)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        if name == "labels":
            raise text_labels(array) from None
        raise TypeError(f"{name} must be numbers; got {values!r:.60}.") from None


def text_labels(labels: NDArray[Any]) -> TypeError:
    """The error for labels that are texts, with the line that makes numbers of them."""
    known = (str(label) for label in labels.reshape(-1).tolist() if label == label)  # no NaN
    rarest = Counter(known).most_common()[-1][0]
    return TypeError(
        f"labels must be 0 or 1; got {labels.reshape(-1)[0]!s:.40}. Say which is the positive one: "
        f"numpy.asarray(labels) == {rarest!r:.40}, say."
    )


def rounded_like(scores: Any, thresholds: Any) -> Any:
    """Numbers in the precision of the scores, if these are floats."""
    if hasattr(scores, "new_tensor"):
        floats = scores.is_floating_point()
        return scores.new_tensor(thresholds).double().cpu().numpy() if floats else thresholds
    dtype = getattr(scores, "dtype", np.dtype(float))
    floats = isinstance(dtype, np.dtype) and dtype.kind == "f"
    return np.asarray(thresholds, dtype=dtype).astype(float) if floats else thresholds

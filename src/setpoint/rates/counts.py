"""The four counts of a thresholded classifier, and weighted sums of them.

``TP + FP`` is not a number but a recipe: handed a table of counts (python floats, numpy arrays or
torch tensors, hard or soft) it gives the number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from setpoint._checks import number

Array = Any
"""A float, a numpy array or a torch tensor: whatever supports ``+ - * /``."""


@dataclass(frozen=True)
class Counts:
    """A table of counts. ``positives`` and ``negatives`` are the exact class totals.

    With soft steps ``tp + fn`` need not add up to ``positives``, which is why the totals are told.
    """

    tp: Array
    fp: Array
    fn: Array
    tn: Array
    positives: Array
    negatives: Array


@dataclass(frozen=True)
class Count:
    """A weighted sum of TP, FP, FN, TN and the number one.

    >>> str(2 * TP + FN)
    '2 TP + FN'
    """

    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0
    one: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = number(getattr(self, field.name), f"The weight of {field.name.upper()}")
            object.__setattr__(self, field.name, value + 0.0)  # -0.0 becomes 0.0

    def __add__(self, other: Count) -> Count:
        if not isinstance(other, Count):
            return NotImplemented
        return Count(*(a + b for a, b in zip(self.weights, other.weights, strict=True)))

    def __mul__(self, factor: float) -> Count:
        return Count(*(factor * a for a in self.weights))

    __rmul__ = __mul__

    def __sub__(self, other: Count) -> Count:
        return self + -1 * other

    @property
    def weights(self) -> tuple[float, float, float, float, float]:
        """The five weights in the order TP, FP, FN, TN, one."""
        return (self.tp, self.fp, self.fn, self.tn, self.one)

    @cached_property
    def common(self) -> tuple[float, float]:
        """What both outcomes of a class share, for positives and for negatives.

        It is taken from the exact class total: ``2 TP + FN`` is ``positives + TP``.
        """
        pairs = ((self.tp, self.fn), (self.fp, self.tn))
        return tuple(min(p) if p[0] * p[1] > 0 else 0.0 for p in pairs)  # type: ignore[return-value]

    @cached_property
    def slopes(self) -> tuple[float, float, float, float]:
        """How the sum changes with TP, FP, FN and TN while the class totals stay."""
        positives, negatives = self.common
        return (
            self.tp - positives,
            self.fp - negatives,
            self.fn - positives,
            self.tn - negatives,
        )

    @cached_property
    def _terms(self) -> tuple[tuple[float, str], ...]:
        names = ("tp", "fp", "fn", "tn", "positives", "negatives")
        pairs = zip((*self.slopes, *self.common), names, strict=True)
        return tuple((weight, name) for weight, name in pairs if weight)

    def of(self, table: Counts) -> Array:
        """The number this sum stands for in ``table``."""
        total: Array = self.one or None
        for weight, name in self._terms:
            value = getattr(table, name)
            term = value if weight == 1 else weight * value
            total = term if total is None else total + term
        return 0.0 if total is None else total

    def __str__(self) -> str:
        return signed_sum(zip(self.weights, ("TP", "FP", "FN", "TN", ""), strict=True))


def numeral(x: float) -> str:
    """The shortest text that reads back as exactly ``x``: ``0.01``, ``1``, ``1e-05``."""
    short = f"{x:g}"
    return short if float(short) == x else repr(x)


def signed_sum(terms: Any) -> str:
    """``2 TP + FN - 0.5``: a sum from pairs of weight and name (the empty name: a constant)."""
    text = ""
    for weight, name in terms:
        if not weight:
            continue
        size = "" if abs(weight) == 1 and name else numeral(abs(weight))
        sign = "-" if weight < 0 else "+"
        lead = f" {sign} " if text else "-" if weight < 0 else ""
        text += f"{lead}{size}{' ' if size and name else ''}{name}"
    return text or "0"


TP = Count(tp=1)
FP = Count(fp=1)
FN = Count(fn=1)
TN = Count(tn=1)
ONE = Count(one=1)
POSITIVES = TP + FN
NEGATIVES = FP + TN
EVERYONE = POSITIVES + NEGATIVES

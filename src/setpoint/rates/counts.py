"""Tables of counts of a thresholded classifier, and weighted sums of TP, FP, FN and TN.

``TP + FP`` is not a number but a recipe: given a table of counts (python floats, numpy arrays or
torch tensors, hard or soft) it gives the number. Imports no array library.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, TypeVar

from setpoint._checks import is_number, number
from setpoint.rates.slices import ClassSet, numeral

Array = Any
"""A float, a numpy array or a torch tensor: whatever supports ``+ - * /``."""
MATRIX = 4
"""In a gradient, after TP, FP, FN and TN: the slopes by every entry of the confusion matrix."""
OverClasses = Literal["macro", "lowest", "highest"]
K = TypeVar("K", bound=Hashable)


@dataclass
class Counts:
    """A table of counts. ``positives`` and ``negatives`` are the exact class totals.

    With soft steps ``tp + fn`` need not add up to ``positives``: the totals are given separately.
    """

    tp: Array
    fp: Array
    fn: Array
    tn: Array
    positives: Array
    negatives: Array

    @property
    def classes(self) -> Any:
        """With several classes the confusion matrix (:class:`Confusion`), else None."""
        return None


@dataclass
class ClassCounts(Counts):
    """The numbers of right (``tp``) and wrong (``fn``) decisions, with their confusion matrix."""

    confusion: Any = None

    @property
    def classes(self) -> Any:
        """The confusion matrix."""
        return self.confusion


class Confusion(Protocol):
    """A confusion matrix, hard or soft, as rates of classes read it.

    Where there is one value per class, the classes are the first axis.
    """

    def against_rest(self, classes: ClassSet) -> Counts:
        """The counts of a set of classes against all others."""

    def each(self) -> Counts:
        """The counts of every class against the rest."""

    def gather(self, kind: OverClasses, values: Array) -> Array:
        """The mean, smallest or largest of one value per class; 0/0 counts as the table says."""

    def shares(self, kind: OverClasses, values: Array) -> Array:
        """The derivative of :meth:`gather` by the value of each class."""

    def entries(self, classes: ClassSet | None, slopes: tuple[Array, ...]) -> Array:
        """Slopes by every entry, from slopes by TP, FP, FN, TN (None: of each class in turn)."""

    def hits(self, k: int) -> Array:
        """Of each class, how many examples have it among their ``k`` highest shifted scores."""

    def truth(self) -> Array:
        """How many there are of each class."""

    def cost(self, costs: Array) -> Array:
        """The sum of the costs ``[true, predicted]`` of all decisions."""

    def chosen(self, classes: ClassSet) -> Array:
        """1 for the members of a set of classes, else 0."""


def confusion(table: Counts, what: object) -> Confusion:
    """The confusion matrix behind a table, or an error that says what ``what`` needs."""
    if table.classes is None:
        raise TypeError(
            f"`{what}` is about several classes, and here decisions are between two. Use scores "
            "[n, K] with one whole number per example as the label, with Implicit(problem), "
            "problem.choose or problem.evaluate."
        )
    found: Confusion = table.classes
    return found


def _shared(a: float, b: float) -> float:
    """The part of two weights that they have in common: none if their signs differ."""
    if (a > 0) != (b > 0) or not a or not b:
        return 0.0
    return a if abs(a) <= abs(b) else b


@dataclass(frozen=True, repr=False)
class Count:
    """A weighted sum of TP, FP, FN, TN and the number one.

    Examples:
        >>> 2 * TP + FN
        2 TP + FN
    """

    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0
    one: float = 0.0
    slopes: tuple[float, float, float, float] = field(init=False, compare=False)
    """How the sum changes with TP, FP, FN and TN while the class totals stay.

    What both outcomes of a class share is taken from the exact class total: ``2 TP + FN`` is
    ``positives + TP``.
    """
    _terms: tuple[tuple[float, str], ...] = field(init=False, compare=False)
    __array_ufunc__ = None  # numpy scalars leave the arithmetic to us

    def __post_init__(self) -> None:
        for part in fields(self)[:5]:
            value = number(getattr(self, part.name), f"The weight of {part.name.upper()}")
            object.__setattr__(self, part.name, value + 0.0)  # -0.0 becomes 0.0
        # computed once and plainly: a compiler for tensors must be able to read it
        p, n = _shared(self.tp, self.fn), _shared(self.fp, self.tn)
        slopes = (self.tp - p, self.fp - n, self.fn - p, self.tn - n)
        names = ("tp", "fp", "fn", "tn", "positives", "negatives")
        terms = ((w, name) for w, name in zip((*slopes, p, n), names, strict=True) if w)
        object.__setattr__(self, "slopes", slopes)
        object.__setattr__(self, "_terms", tuple(terms))

    def __add__(self, other: Count) -> Count:
        if not isinstance(other, Count):
            return NotImplemented
        return Count(*(a + b for a, b in zip(self.weights, other.weights, strict=True)))

    def __mul__(self, factor: float) -> Count:
        if not is_number(factor):
            return NotImplemented
        return Count(*(float(factor) * a for a in self.weights))

    __rmul__ = __mul__

    def __neg__(self) -> Count:
        return -1 * self

    def __sub__(self, other: Count) -> Count:
        return self + -other if isinstance(other, Count) else NotImplemented

    @property
    def weights(self) -> tuple[float, float, float, float, float]:
        """The five weights in the order TP, FP, FN, TN, one."""
        return (self.tp, self.fp, self.fn, self.tn, self.one)

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

    __repr__ = __str__


TP = Count(tp=1)
FP = Count(fp=1)
FN = Count(fn=1)
TN = Count(tn=1)
ONE = Count(one=1)
POSITIVES = TP + FN
NEGATIVES = FP + TN
EVERYONE = POSITIVES + NEGATIVES


def signed_sum(terms: Iterable[tuple[float, str]]) -> str:
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


def divide(top: Array, bottom: Array) -> Array:
    """``top / bottom`` where 0/0 is NaN, for floats as for arrays."""
    try:
        return top / bottom
    except ZeroDivisionError:
        return float("nan") if top == 0 else float("inf") * top


def larger(a: Array, b: Array) -> Array:
    """The larger of two, exactly; NaN stays NaN."""
    if not hasattr(a, "clip"):
        a, b = b, a
    if not hasattr(a, "clip"):
        return a if a >= b or a != a else b
    # numpy and torch both have it, and broadcast; torch 2.9 ignores a bound that is NaN
    return a.clip(min=b) if hasattr(b, "clip") or b == b else a + b


def sign(value: Array) -> Array:
    """1, 0 or -1."""
    return (value > 0) * 1.0 - (value < 0) * 1.0


def weighted_sum(*terms: tuple[Array, dict[K, Array]]) -> dict[K, Array]:
    """The sum of ``weight * values``, entry by entry; what an entry lacks is zero."""
    total: dict[K, Array] = {}
    for weight, values in terms:
        for key, value in values.items():
            total[key] = total[key] + weight * value if key in total else weight * value
    return total

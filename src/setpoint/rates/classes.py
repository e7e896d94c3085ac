"""Rates of classes: how classes are called, and the table of who was taken for whom.

Where there are more than two classes, a rate is one of a class (or of a set of classes) against the
rest: ``recall.of("cat")``. All of them read one table, the confusion matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from setpoint.rates.arrays import Array
from setpoint.rates.counts import Counts
from setpoint.rates.slices import ordered, quote

ClassName = str | int
Classes = tuple[ClassName, ...]
"""The classes a rate is of: each by its name, or by its number (the column of the scores)."""
Kind = Literal["macro", "lowest", "highest"]
MATRIX = 4
"""In a gradient, after TP, FP, FN and TN: the slopes by every entry of the confusion matrix."""


@dataclass(frozen=True)
class ClassCounts(Counts):
    """How many decisions were right (``tp``) and wrong (``fn``), and who was taken for whom."""

    confusion: Any = None

    @property
    def classes(self) -> Any:
        """Who was taken for whom."""
        return self.confusion


class Confusion(Protocol):
    """Who was taken for whom, hard or soft: everything a problem of classes may ask for.

    Where values come one for each class, the classes are the first axis.
    """

    def against_rest(self, classes: Classes) -> Counts:
        """The counts of a set of classes against all others."""

    def each(self) -> Counts:
        """The counts of every class against the rest."""

    def gather(self, kind: Kind, values: Array) -> Array:
        """The mean, smallest or largest of one value a class; 0/0 as the table says."""

    def shares(self, kind: Kind, values: Array) -> Array:
        """What each class contributes to :meth:`gather`: its derivative."""

    def entries(self, classes: Classes | None, slopes: tuple[Array, ...]) -> Array:
        """From slopes by TP, FP, FN, TN (of all classes one by one: None) to slopes by entry."""

    def hits(self, k: int) -> Array:
        """Of each class, how many have their own among the ``k`` highest shifted scores."""

    def truth(self) -> Array:
        """How many there are of each class."""

    def cost(self, costs: Array) -> Array:
        """The sum of the costs ``[true, predicted]`` of all decisions."""

    def chosen(self, classes: Classes) -> Array:
        """1 for the members of a set of classes, else 0."""


def confusion(table: Counts, what: object) -> Confusion:
    """The confusion matrix behind a table, or an error that says what ``what`` needs."""
    if table.classes is None:
        raise TypeError(
            f"`{what}` is about several classes, and here decisions are between two. Use scores "
            "[n, K] with one whole number an example as the label, with Implicit(problem), "
            "problem.choose or problem.evaluate."
        )
    found: Confusion = table.classes
    return found


def class_names(given: tuple[object, ...]) -> Classes:
    """Checked names in a fixed order, so that equal sets are equal."""
    names: dict[ClassName, None] = {}
    for one in given:
        ((_, name),) = ordered([("class", one)])  # type: ignore[list-item]
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise TypeError(f"A class is called by its name or its number; got {one!r}.")
        if isinstance(name, int) and not 0 <= name < 10**9:
            raise ValueError(f"The number of a class is a column of the scores; got {name}.")
        names[name] = None
    if not names:
        raise TypeError('A rate of a class needs the class: recall.of("cat").')
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


def describe_classes(classes: Classes) -> str:
    """``"cat" or "dog"``."""
    return " or ".join(map(quote, classes))

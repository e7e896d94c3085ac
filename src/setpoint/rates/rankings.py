"""Areas of several classes: AUC_mu and one against all. They look at scores, not at decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from setpoint.rates.arrays import Array
from setpoint.rates.classes import Classes
from setpoint.rates.counts import POSITIVES, TP
from setpoint.rates.expression import Expression, Gradient, Tables
from setpoint.rates.rate import Rate
from setpoint.rates.slices import Value

AREAS = ("auc_mu", "one_vs_all_auc")


@dataclass(frozen=True, repr=False)
class ClassArea(Expression):
    """How well the scores rank classes: ``auc_mu`` by pairs, ``one_vs_all_auc`` by own score."""

    kind: str
    _is_factor = True
    about_classes = True

    def __post_init__(self) -> None:
        if self.kind not in AREAS:
            raise ValueError(f"Areas of classes are {' and '.join(AREAS)}; got {self.kind!r}.")
        self._note(1.0)

    def value(self, tables: Tables) -> Array:
        """Refused: it is no function of counts."""
        raise TypeError(f"{self.kind} is read off scores, not off decisions: use problem.evaluate.")

    def gradient(self, tables: Tables) -> Gradient:
        """Refused, too."""
        raise TypeError(f"{self.kind} has no gradient by counts: train it with Program(problem).")

    def rates(self) -> Iterator[Rate]:
        """A rate on the same examples."""
        yield Rate(TP, POSITIVES)

    def on(self, /, **where: Value) -> Expression:
        """Refused: it is known for everyone only."""
        raise ValueError(f"{self.kind} is known for everyone only; pass the rows of the slice.")

    def of_classes(self, classes: Classes) -> Expression:
        """Refused: it goes through all classes."""
        raise ValueError(f"{self.kind} goes through all classes; for one of them use roc_auc().")

    @property
    def is_share(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return self.kind


auc_mu = ClassArea("auc_mu")
one_vs_all_auc = ClassArea("one_vs_all_auc")

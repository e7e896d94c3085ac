"""Confusion matrices for several classes, before the shifts and with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.axes.arrays import Floats


@dataclass(frozen=True)
class Confusions:
    """Two confusion matrices of the same examples, ``[true, predicted]``.

    Attributes:
        names: What the classes are called.
        before: With the highest score deciding.
        after: With the highest shifted score deciding.
    """

    names: tuple[Any, ...]
    before: Floats
    after: Floats

    @classmethod
    def of(
        cls, names: tuple[Any, ...], labels: Any, before: Any, after: Any, weights: Any = None
    ) -> Confusions:
        """From true classes and both decisions, each the number of a class."""
        made = (confusion_matrix(labels, given, len(names), weights) for given in (before, after))
        return cls(names, *made)

    def recalls(self, matrix: Floats) -> Floats:
        """The share of each class that is found; NaN for a class that is not there."""
        return _shares(matrix.diagonal(), matrix.sum(1))

    def precisions(self, matrix: Floats) -> Floats:
        """The share of each class's predictions that is right; NaN where there are none."""
        return _shares(matrix.diagonal(), matrix.sum(0))

    def most_frequent(self, most: int) -> tuple[Confusions, int]:
        """The ``most`` frequent classes with the others taken together, and how many those are.

        A decision among classes that are taken together is counted where it is right or wrong.
        """
        count = len(self.names)
        if count <= most:
            return self, 0
        frequent = np.sort(np.argsort(-self.before.sum(1), kind="stable")[:most])
        rest = np.setdiff1d(np.arange(count), frequent)
        together = [[i] for i in frequent] + [rest.tolist()]
        to = np.array([[i in group for i in range(count)] for group in together], float)
        names = (*(self.names[i] for i in frequent), "others")
        return Confusions(names, *(to @ m @ to.T for m in (self.before, self.after))), len(rest)

    def __str__(self) -> str:
        return "\n\n".join(
            f"{title}\n{self._text(matrix)}"
            for title, matrix in (("before", self.before), ("after", self.after))
        )

    def _text(self, matrix: Floats) -> str:
        names = [str(name)[:12] for name in self.names]
        cells = [[f"{x:g}" for x in row] for row in matrix]
        recalls = ["-" if np.isnan(x) else f"{x:.1%}" for x in self.recalls(matrix)]
        lines = [["true \\ predicted", *names, "recall"]]
        lines += [[n, *row, r] for n, row, r in zip(names, cells, recalls, strict=True)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        )


def confusion_matrix(labels: Any, decided: Any, count: int, weights: Any = None) -> Floats:
    """The weight of each true class that was decided for each class, ``[true, predicted]``."""
    cells = np.asarray(labels, np.int64) * count + np.asarray(decided, np.int64)
    given = None if weights is None else np.asarray(weights, np.float64)
    return np.bincount(cells, given, count * count).reshape(count, count).astype(np.float64)


def _shares(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(part / whole)

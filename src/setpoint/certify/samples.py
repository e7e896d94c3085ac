"""The calibration sample: checked once, each part of it sorted once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.certify.dtypes import below
from setpoint.certify.parts import EVERYONE, NEGATIVES, POSITIVES, Part
from setpoint.rates import Counts, Where

Bools = NDArray[np.bool_]


class Sample:
    """Scores, labels and slices.

    Args:
        scores: One score an example, in the precision that decisions will be made in.
        labels: 0 or 1 for each; None if only acceptance counts.
        slices: The examples of each slice that is asked about, beside everyone.
        dtype: The name of the precision.
    """

    def __init__(
        self,
        scores: NDArray[Any],
        labels: Bools | None,
        slices: Mapping[Where, Bools],
        dtype: str,
    ) -> None:
        self.scores, self.labels, self.dtype = scores, labels, dtype
        self._slices = dict(slices)
        self._sorted: dict[Part, NDArray[Any]] = {}

    def sorted(self, part: Part) -> NDArray[Any]:
        """The scores of a part, from low to high."""
        if part not in self._sorted:
            if part.kind == EVERYONE and self.labels is not None:
                halves = [self.sorted(Part(part.where, kind)) for kind in (POSITIVES, NEGATIVES)]
                # two runs that are sorted already: a stable sort merges them
                self._sorted[part] = np.sort(np.concatenate(halves), kind="stable")
            else:
                self._sorted[part] = np.sort(self.scores[self._members(part)])
        return self._sorted[part]

    def size(self, part: Part) -> int:
        """How many examples a part has."""
        return len(self.sorted(part))

    def over(self, part: Part, score: Any) -> Any:
        """How many scores of a part are above ``score``."""
        scores = self.sorted(part)
        return len(scores) - np.searchsorted(scores, self._cast(score), "right")

    def reaching(self, part: Part, score: Any) -> Any:
        """How many scores of a part are at least ``score``."""
        scores = self.sorted(part)
        return len(scores) - np.searchsorted(scores, self._cast(score), "left")

    def below(self, score: float) -> float:
        """The next number below, in the precision of the scores."""
        return below(score, self.dtype)

    def table(self, where: Where, thresholds: Any, prevalence: float | None) -> Counts:
        """Counts at thresholds; at another ``prevalence``, the same classes in other numbers."""
        p, n = Part(where, POSITIVES), Part(where, NEGATIVES)
        tp, fp = self.over(p, thresholds) * 1.0, self.over(n, thresholds) * 1.0
        positives, negatives = float(self.size(p)), float(self.size(n))
        if prevalence is not None and positives and negatives:
            total = positives + negatives
            a, b = total * prevalence / positives, total * (1 - prevalence) / negatives
            tp, fp, positives, negatives = a * tp, b * fp, a * positives, b * negatives
        return Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)

    @property
    def traits(self) -> list[Bools]:
        """What is known of each row beside its score."""
        return [*([] if self.labels is None else [self.labels]), *self._slices.values()]

    def in_order(self) -> Sample:
        """The same rows in an order that is their own, whatever order they came in."""
        if self.labels is not None and not self._slices:  # both classes are sorted already
            halves = [self.sorted(Part((), kind)) for kind in (NEGATIVES, POSITIVES)]
            labels = np.repeat([False, True], [len(half) for half in halves])
            return Sample(np.concatenate(halves), labels, {}, self.dtype)
        return self.rows(np.lexsort([self.scores, *self.traits]))

    def rows(self, chosen: NDArray[Any]) -> Sample:
        """Some of the rows, as a sample of their own."""
        labels = None if self.labels is None else self.labels[chosen]
        slices = {where: inside[chosen] for where, inside in self._slices.items()}
        return Sample(self.scores[chosen], labels, slices, self.dtype)

    def _cast(self, score: Any) -> Any:
        """In the precision of the scores: searching would otherwise convert all of them."""
        return np.asarray(score, dtype=self.scores.dtype)

    def _members(self, part: Part) -> Bools:
        inside = self._slices.get(part.where)
        if part.kind == EVERYONE:
            return np.ones(len(self.scores), bool) if inside is None else inside
        if self.labels is None:
            raise ValueError("This goal counts positives and negatives: pass labels.")
        of_class = self.labels if part.kind == POSITIVES else ~self.labels
        return of_class if inside is None else of_class & inside


def have(count: float, part: Part) -> str:
    """``1,200 negatives with group = 'a'``."""
    noun = {POSITIVES: "positive", NEGATIVES: "negative"}.get(part.kind, "example")
    return plural(count, noun) + there(part.where)


def there(where: Where) -> str:
    """`` with group = 'a'``; nothing for everyone."""
    return "".join(f" with {column} = {value!r}" for column, value in where)

"""Parts of the data: whose share of accepted examples is unknown, and how rates are made of them.

At a threshold a slice of the data has three unknown shares: of its positives that are accepted, of
its negatives that are accepted, and of positives among everyone (the prior). Every rate is a
quotient of sums of these, so that it moves one way with each of them (though not always known
which), and a sum of rates is bounded once the shares are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.batch import check_labels, check_length, column_of
from setpoint.certificates.dtypes import below, read_scores
from setpoint.rates import Combination, Counts, Expression, Rate, Where

POSITIVES, NEGATIVES, EVERYONE, PRIOR = "positives", "negatives", "everyone", "prior"
Cells = tuple[float, float, float, float]


class Part(NamedTuple):
    """The positives, the negatives, everyone, or the share of positives, in a slice."""

    where: Where
    kind: str

    def overlaps(self, other: Part) -> bool:
        """Whether what is known of one may depend on the other.

        Given the labels, the scores of a class say nothing about the share of positives.
        """
        kinds = {self.kind, other.kind}
        if kinds == {POSITIVES, NEGATIVES} or (PRIOR in kinds and kinds & {POSITIVES, NEGATIVES}):
            return False
        mine, theirs = dict(self.where), dict(other.where)
        return all(theirs.get(column, value) == value for column, value in mine.items())


def signs(expression: Expression, prevalence: float | None) -> dict[Part, int | None]:
    """The parts an expression depends on: 1 if it rises with the share, -1 falls, None: either."""
    found: dict[Part, int | None] = {}
    for weight, term in _terms(expression):
        for rate in term.rates():
            for part, slope in rate_signs(rate, prevalence).items():
                sign = None if slope is None or term is not rate else slope * weight
                if sign == 0:
                    continue
                found[part] = sign if found.get(part, sign) == sign else None
    return found


def rate_signs(rate: Rate, prevalence: float | None) -> dict[Part, int | None]:
    """The same for one rate; 0 where a share does not matter."""
    top, below = cells(rate)
    if prevalence is None and all(c[0] == c[1] and c[2] == c[3] for c in (top, below)):
        # acceptance is all that counts
        return {Part(rate.where, EVERYONE): _sign([top[0] * below[2] - top[2] * below[0]])}
    tp, fp, fn, tn = range(4)
    by_positives = _sign(_minors(top, below, tp, fn, (fp, tn)))
    by_negatives = _sign(_minors(top, below, fp, tn, (tp, fn)))
    found = {
        Part(rate.where, POSITIVES): by_positives,
        Part(rate.where, NEGATIVES): by_negatives,
    }
    if prevalence is None:
        pairs = [(i, j) for i in (tp, fn) for j in (fp, tn)]
        found[Part(rate.where, PRIOR)] = _sign(
            top[i] * below[j] - top[j] * below[i] for i, j in pairs
        )
    return {part: sign for part, sign in found.items() if sign != 0}


def cells(rate: Rate) -> tuple[Cells, Cells]:
    """The weights of TP, FP, FN and TN above and below the line."""
    top, below = rate.numerator.weights[:4], rate.denominator.weights[:4]
    return top, below


def _minors(top: Cells, below: Cells, yes: int, no: int, others: tuple[int, int]) -> list[float]:
    """Whose common sign is that of the derivative by the accepted share of a class.

    With numerator ``a0 + a x`` and denominator ``b0 + b x`` it is the sign of ``a b0 - a0 b``, and
    ``a0``, ``b0`` are averages of the weights listed here.
    """
    a, b = top[yes] - top[no], below[yes] - below[no]
    return [a * below[i] - top[i] * b for i in (no, *others)]


def _sign(values: Iterable[float]) -> int | None:
    """The sign that all values have, zeros aside; None if they differ."""
    found = {(v > 0) - (v < 0) for v in values} - {0}
    return None if len(found) > 1 else found.pop() if found else 0


def _terms(expression: Expression) -> list[tuple[int, Expression]]:
    if not isinstance(expression, Combination):
        return [(1, expression)]
    return [(1 if weight > 0 else -1, term) for weight, term in expression.terms]


# The calibration sample: checked once, each part of it sorted once.


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


# Scores, labels, groups and clusters of numpy, torch or plain lists, checked.


def read_sample(scores: Any, labels: Any, groups: Any, wheres: tuple[Where, ...]) -> Sample:
    """A checked sample with the slices ``wheres``."""
    s, dtype = read_scores(scores)
    y = None if labels is None else read_labels(labels, s)
    return Sample(s, y, read_slices(groups, wheres, s), dtype)


def read_slices(
    groups: Any, wheres: tuple[Where, ...], scores: NDArray[Any], *, empty: bool = False
) -> dict[Where, Bools]:
    """Who belongs to each slice; nobody is an error unless slices may be ``empty``."""
    columns = {column for where in wheres for column, _ in where}
    found = {where: _slice(where, groups, columns, scores) for where in wheres if where}
    for where, inside in found.items():
        if not (empty or inside.any()):
            text = " and ".join(f"{column} = {value!r}" for column, value in where)
            raise ValueError(f"No example has {text}: look for it in the data, or leave it out.")
    return found


def read_labels(labels: Any, scores: NDArray[Any]) -> Bools:
    """Labels as booleans."""
    array = np.asarray(labels.detach().cpu() if hasattr(labels, "detach") else labels)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            first = array.reshape(-1)[:1].tolist()[0]
            raise TypeError(
                f"labels must be 0 or 1; got {first!r:.40}. Say which is the positive one: "
                f"numpy.asarray(labels) == {first!r:.40}, say."
            ) from None
    if array.dtype.kind == "b":
        check_length(array, scores, "labels")
        return array
    check_labels(array, scores)
    return np.asarray(array == 1)


def read_column(column: Any, scores: NDArray[Any], name: str = "groups") -> NDArray[Any]:
    """One value for each score."""
    array = np.asarray(column.detach().cpu() if hasattr(column, "detach") else column)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    check_length(array, scores, name)
    return array


def _slice(where: Where, groups: Any, columns: set[str], scores: NDArray[Any]) -> Bools:
    inside = np.ones(len(scores), bool)
    for column, value in where:
        inside &= np.asarray(read_column(column_of(groups, column, columns), scores) == value)
    return inside

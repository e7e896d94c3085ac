"""One shift per class (ICO, section 6.2): decisions are ``argmax(score - shift)``.

The shifts are chosen together on true counts, then held together: softly, decisions are
``softmax((score - shift) / width)``. Every class holds something: a target of its own, if one stops
its shift, or else its share of the predictions among the classes that have none. With the shifts
adding up to zero these are K - 1 equations for K - 1 unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.axes.axis import Axis, Outcome, not_met, too_coarse, undefined
from setpoint.axes.choice import size_of
from setpoint.axes.class_data import ClassData, best_others, read_data, sum_by
from setpoint.axes.class_search import FoundShifts, class_room, find_shifts
from setpoint.axes.confusion import ConfusionMatrix, hard_tables
from setpoint.axes.implicit_function import Held, hold
from setpoint.axes.order_statistics import spread
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import (
    MATRIX,
    Across,
    ClassArea,
    Counts,
    Expression,
    Rate,
    Setpoint,
    Tables,
    TopK,
    Where,
)
from setpoint.steps import Step


class Classes(Axis[ClassData]):
    """One shift per class; see :class:`setpoint.axes.axis.Axis`."""

    advice = "Use larger or balanced batches, or drop strict=True."

    def __init__(self, problem: Specification, **options: Any) -> None:
        super().__init__(problem, **options)
        if isinstance(problem.objective, ClassArea):
            raise ValueError(
                f"`{problem}` is about the order of scores: there are no shifts to hold. Train it "
                "with Program(problem)."
            )

    def read(self, examples: ScoredExamples) -> ClassData:
        """A checked sample of a batch: scores ``[n, K]``, labels ``[n]``."""
        return read_data(self.problem, examples._replace(classes=self.classes))

    def hold(self, whole: ClassData, own: ClassData, step: Step, widening: float) -> ClassOutcome:
        """Choose the shifts of all classes, and hold them."""
        found = find_shifts(self.problem, whole)
        reach = margin_spread(whole, found.edge) if len(whole.scores) else 0.0
        width = float(step.width_of(np.float64(reach))) * widening or 1.0
        soft = ClassSoft(whole, found.edge, width)
        targets = {i: soft.by_count(rate) for i, rate in found.anchors.items()}
        anchors = ClassAnchors(soft, {i: by for i, by in targets.items() if np.isfinite(by).all()})
        held = hold(soft, anchors, self.sign * soft.by_count(self.problem.objective))
        rate = float(self.problem.objective.of(soft.tables))
        gradient = np.zeros((whole.size, soft.p.shape[1]))
        if np.isfinite(rate) and np.isfinite(held.gradient).all():
            gradient[whole.rows] = held.gradient
        value = self.sign * rate if np.isfinite(rate) else 0.0
        numbers = np.array([value]), gradient.reshape(1, -1), np.ones(1, dtype=bool)
        # shifts are not compared with scores: there is nothing to round them to
        seats = found.shifts, found.shifts
        return ClassOutcome(*numbers, *seats, self.problem, found, soft, held, rate)


class ClassSoft:
    """Soft decisions between classes, and their counts.

    Counts lie in one vector: per slice the confusion matrix ``[K, K]``, then for every ``k`` that
    the problem asks the first ``k`` of, the hits of each class ``[K]``.
    """

    def __init__(self, data: ClassData, shifts: Floats, width: float) -> None:
        self.data, self.shifts, self.width, self.ks = data, shifts, width, sorted(data.ks)
        self.slices = tuple(data.inside)
        z = (data.scores - shifts) / width
        powers = np.exp(z - z.max(1, keepdims=True, initial=-np.inf))
        self.p: Floats = powers / powers.sum(1, keepdims=True)
        self.chances = {k: chance_of(z, data.labels, k) for k in self.ks}
        weights = data.inside[()]
        self.weight = weights.sum()
        self.coverages: Floats = weights @ self.p / self.weight
        # shifts are known up to a common constant: that of the most frequent class is left out
        self.moving = np.delete(np.arange(self.p.shape[1]), int(np.argmax(self.coverages)))

    @cached_property
    def tables(self) -> dict[Where, Counts]:
        """The soft counts of every slice; classes that are not there do not count in means."""
        labels, count = self.data.labels, self.p.shape[1]
        tables = {}
        for where, weights in self.data.inside.items():
            truth = np.zeros((len(labels), count))
            truth[np.arange(len(labels)), labels] = weights
            hit = {k: sum_by(labels, weights * own, count) for k, (own, _) in self.chances.items()}
            tables[where] = ConfusionMatrix(truth.T @ self.p, self.data.members, hit).table()
        return tables

    def by_count(self, expression: Expression) -> Floats:
        """How an expression changes with each count, in one vector."""
        count = self.p.shape[1]
        matrices = np.zeros((len(self.slices), count, count))
        hits = np.zeros((len(self.slices), len(self.ks), count))
        for (where, i), slope in expression.gradient(self.tables).items():
            place = self.slices.index(where)
            if i < 0:
                hits[place, self.ks.index(-i)] += slope
            else:
                matrices[place] += by_entry(i, slope, count)
        return np.concatenate([matrices.reshape(-1), hits.reshape(-1)])

    def by_threshold(self, by_count: Floats) -> Floats:
        """The same by the shifts that may move, ``[K - 1]``."""
        return np.asarray(-self.pull(by_count).sum(0)[self.moving])

    def pull(self, by_count: Floats) -> Floats:
        """The gradient on the scores, ``[n, K]``, from that on the counts."""
        count, total = self.p.shape[1], np.zeros_like(self.p)
        entries = len(self.slices) * count * count
        matrices = by_count[:entries].reshape(-1, count, count)
        hits = by_count[entries:].reshape(len(self.slices), -1, count)
        for where, matrix, own in zip(self.slices, matrices, hits, strict=True):
            weights = self.data.inside[where][:, None]
            for k, slope in zip(self.ks, own, strict=True):
                total += weights * slope[self.data.labels][:, None] * self.chances[k][1]
            if matrix.any():
                total += weights * self._pull_entries(matrix)
        return total / self.width

    def _pull_entries(self, slopes: Floats) -> Floats:
        """``p_j sum_i p_i (D_j - D_i)`` for the row of the true class: nothing cancels in it."""
        result = np.empty_like(self.p)
        for label in np.unique(self.data.labels):
            rows = self.data.labels == label
            differences = slopes[label][:, None] - slopes[label]
            result[rows] = self.p[rows] * (self.p[rows] @ differences.T)
        return result

    def coverage_slopes(self) -> Floats:
        """How the shares of predictions change with the shifts, ``[K, K]``: minus a Laplacian."""
        beside = (self.p * self.data.inside[()][:, None]).T @ self.p
        np.fill_diagonal(beside, 0.0)
        np.fill_diagonal(beside, -beside.sum(1))
        return np.asarray(beside / (self.width * self.weight))


class ClassAnchors:
    """What classes keep: targets of their own by count, and the shares of the free classes."""

    def __init__(self, soft: ClassSoft, targets: dict[int, Floats]) -> None:
        self.soft, self.targets = soft, targets
        columns = range(soft.p.shape[1])
        self.free = np.array([i for i in columns if i not in targets], int)
        # of the free classes all except the most frequent: their shares add up to one
        kept = self.free if len(self.free) > 1 else self.free[:0]
        if len(kept):
            kept = np.delete(kept, int(np.argmax(soft.coverages[kept])))
        self.kept = kept

    @cached_property
    def slopes(self) -> Floats:
        """One row per thing kept, one column per shift that may move."""
        soft = self.soft
        rows = [soft.by_threshold(by_count) for by_count in self.targets.values()]
        if len(self.kept):
            slopes, coverages = soft.coverage_slopes()[:, soft.moving], soft.coverages
            whole, together = coverages[self.free].sum(), slopes[self.free].sum(0)
            rows += [(slopes[i] - coverages[i] / whole * together) / whole for i in self.kept]
        return np.array(rows).reshape(-1, len(soft.moving))

    def total(self, multipliers: Floats, towards: Floats) -> Floats:
        """The sum of what is kept, each with its multiplier, by count."""
        soft, count = self.soft, len(self.targets)
        by_class = np.zeros(len(soft.coverages))
        if len(self.kept):
            whole, shares = soft.coverages[self.free].sum(), multipliers[count:]
            by_class[self.kept] = shares / whole
            by_class[self.free] -= shares @ soft.coverages[self.kept] / whole**2
        columns = len(by_class)
        entries = np.zeros((len(soft.slices), columns, columns))
        entries[soft.slices.index(())] = by_class / soft.weight
        hits = np.zeros(len(soft.slices) * len(soft.ks) * columns)
        total = np.concatenate([entries.reshape(-1), hits])
        for multiplier, by_count in zip(multipliers, self.targets.values(), strict=False):
            total = total + multiplier * by_count
        return total


@dataclass(eq=False)
class ClassOutcome(Outcome):
    """A batch with one shift per class; see :class:`setpoint.axes.axis.Outcome`."""

    problem: Specification
    found: FoundShifts
    soft: ClassSoft
    held: Held
    rate: float

    @property
    def data(self) -> ClassData:
        """The examples."""
        return self.soft.data

    @cached_property
    def hard(self) -> Tables:
        """True counts at the reported shifts."""
        return hard_tables(self.data, self.data.scores - self.found.shifts)

    def numbers(self) -> dict[str, Any]:
        """Plain numbers."""
        with np.errstate(all="ignore"):
            first = self.problem.subject_to[0].expression if self.problem.subject_to else None
            return {
                "threshold": self.found.shifts.tolist(),
                "held_rate": None if first is None else _number_or_none(first.of(self.hard)),
                "soft_objective": _number_or_none(self.rate),
                "hard_objective": _number_or_none(self.problem.objective.of(self.hard)),
                "multiplier": self.held.multipliers.tolist(),
                "examples_in_band": self.examples_in_band(),
            }

    def examples_in_band(self) -> float:
        """How many examples share the gradient: those between two classes."""
        between = self.data.weights * (1 - (self.soft.p**2).sum(1))
        squares = float((between**2).sum())
        return float(between.sum()) ** 2 / squares if squares > 0 else 0.0

    def trouble(self) -> str:
        """The first thing that is missing, missed, undefined or flat."""
        with np.errstate(all="ignore"):
            found = self._missing() or self._missed()
            if not found and not np.isfinite(self.rate):
                found = undefined(self.problem.objective)
            return found or ("flat: no score between two classes" if self.held.flat else "")

    def _missing(self) -> str:
        """Classes that the problem looks at and the batch does not have."""
        asked = np.zeros(len(self.data.names))
        for node in self.problem.nodes():
            if isinstance(node, Across):
                asked += 1
            elif isinstance(node, (Rate, TopK)) and node.classes and _counts_truth(node):
                members = self.data.members[node.classes]
                asked += members if members.sum() == 1 else 0
        gone = np.flatnonzero((asked > 0) & (self.data.truth == 0))
        if not len(gone):
            return ""
        names = ", ".join(repr(self.data.names[i]) for i in gone[:3])
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        return f"no examples of {names}{more} in the batch"

    def _missed(self) -> str:
        for target in self.problem.points[0]:
            value = float(target.expression.of(self.hard))
            if np.isnan(value):
                return undefined(target.expression)
            gap = float(target.gap(self.hard))
            if gap > class_room(target, self.data, self.hard):
                return not_met(target, gap, f"{value:.4g}")
            if isinstance(target, Setpoint) and isinstance(target.expression, Rate):
                aim = min(target.level, 1 - target.level)
                coarse = too_coarse(target.expression, size_of(target.expression, self.hard), aim)
                if coarse:
                    return coarse
        return ""


def margin_spread(data: ClassData, shifts: Floats) -> float:
    """The spread of the margins ``score - (best of the others)``, the mean over classes.

    Two classes have one margin (the other is its negative), and this is its spread.
    """
    if data.scores.shape[1] == 2:
        margins = (data.scores[:, 1] - data.scores[:, 0])[None]
    else:
        shifted = data.scores - shifts
        margins = (shifted - best_others(shifted)).T
    weights = np.broadcast_to(data.weights, margins.shape)
    return float(np.mean(spread(margins, weights)))


def by_entry(kind: int, slope: Floats, count: int) -> Floats:
    """Slopes by entry of the matrix; of right (TP) and wrong (FN) decisions alone for 0 and 2."""
    if kind == MATRIX:
        return slope
    right = np.eye(count)
    return slope * (right if kind == 0 else 1 - right if kind == 2 else 0 * right)


def chances(z: Floats, k: int) -> Floats:
    """The chance of every class to be in a random set of ``k``, ``[n, K]``; for all of them 1.

    A set is drawn with a probability proportional to the product of ``exp(z)`` of its members: for
    one member that is a softmax, and as the scores are stretched the set becomes that of the ``k``
    highest. Sums over all sets are elementary symmetric polynomials, added up in logarithms.
    """
    count = z.shape[1]
    if k <= 0:
        return np.zeros_like(z)
    if k >= int((z > -np.inf).sum(1).min()):
        return np.where(z > -np.inf, 1.0, 0.0)
    ahead = _polynomials(z, k)
    behind = _polynomials(z[:, ::-1], k)
    total = ahead[count][:, k]
    result = np.empty_like(z)
    for i in range(count):
        others = [ahead[i][:, a] + behind[count - 1 - i][:, k - 1 - a] for a in range(k)]
        result[:, i] = np.exp(z[:, i] + np.logaddexp.reduce(others, axis=0) - total)
    return np.minimum(result, 1.0)


def chance_of(z: Floats, labels: NDArray[np.int64], k: int) -> tuple[Floats, Floats]:
    """The chance of each example's own class ``[n]``, and its slopes by ``z`` ``[n, K]``.

    With ``c`` the chance of another class, and ``c'`` the same once the own one is in, the slope is
    ``own * (c' - c)``.
    """
    rows = np.arange(len(labels))
    every = chances(z, k)
    own = every[rows, labels]
    rest = z.copy()
    rest[rows, labels] = -np.inf
    slopes = own[:, None] * (chances(rest, k - 1) - every)
    slopes[rows, labels] = own * (1 - own)
    return own, slopes


def _polynomials(z: Floats, k: int) -> list[Floats]:
    """After each class the logarithms of the polynomials of order 0 to ``k``, ``[n, k + 1]``."""
    sums = np.full((len(z), k + 1), -np.inf)
    sums[:, 0] = 0.0
    found = [sums]
    for column in z.T:
        longer = sums.copy()
        longer[:, 1:] = np.logaddexp(sums[:, 1:], sums[:, :-1] + column[:, None])
        sums = longer
        found.append(sums)
    return found


def _counts_truth(node: Expression) -> bool:
    """Whether a rate needs examples of its class: recall does, coverage does not."""
    if not isinstance(node, Rate):
        return True
    bottom = node.denominator
    return bottom.tp == bottom.fn and bottom.tp != 0 and bottom.fp == bottom.tn == 0


def _number_or_none(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None

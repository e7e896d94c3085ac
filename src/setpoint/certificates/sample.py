"""The calibration sample: scores, labels and groups of numpy, torch or lists, checked and sorted.

A :class:`Subset` names the examples that a rate is about, such as the negatives of group "a"; a
:class:`CalibrationSample` sorts the scores of each subset once and counts how many exceed a
threshold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import number, plural
from setpoint.axes.arrays import Bools, Floats, as_array, text_labels
from setpoint.axes.sample import one_output
from setpoint.batch import (
    as_column,
    check_labels,
    check_length,
    check_scores,
    column_of,
    missing_labels,
)
from setpoint.certificates.copies import multiplicities_of
from setpoint.certificates.decisions import SCORE_PRECISIONS
from setpoint.rates import Counts, Expression, Where

if TYPE_CHECKING:
    from setpoint.certificates.goals import Share
    from setpoint.certificates.tie_breaking import TieOrder

POSITIVES, NEGATIVES, EVERYONE, PRIOR = "positives", "negatives", "everyone", "prior"
Prevalence = float | tuple[float, float] | None
"""The share of positives to come, the lowest and the highest it may be, or None: as in the data."""
_DISTINCT_ENOUGH = 30
"""Distinct scores that all repeat equally often are copies: chance does not do that."""

_UNLABELLED_ENOUGH = 20
"""So many rows without a label lie below all others by chance less than once in 10^18 samples."""
_BY_CHANCE = 1e-6
"""How rarely rows whose labels are missing at random get a caveat."""
_DECIMALS = 9
"""Scores that are written with fewer decimals may be rounded."""
_NEIGHBOURS = 64
"""Rows so near to each other that chance spreads them evenly."""
_MANY = 0.2
"""Scores that come in steps (trees, few bits) have fewer distinct values than this share."""


class CannotPromise(ValueError):
    """A goal or data of which nothing can be proved, whatever the scores are."""


class Subset(NamedTuple):
    """The positives, the negatives or everyone in a slice, or its share of positives (prior)."""

    where: Where
    kind: str

    @property
    def is_prior(self) -> bool:
        """Whether it is a share of positives: it has no examples that a threshold accepts."""
        return self.kind == PRIOR

    @property
    def is_whole(self) -> bool:
        """Whether its examples are known without a threshold, unlike those of precision."""
        return self.kind in (POSITIVES, NEGATIVES, EVERYONE)

    def overlaps(self, other: Subset) -> bool:
        """Whether what is known of one may depend on the other.

        Given the labels, the scores of a class say nothing about the share of positives.
        """
        kinds = {self.kind, other.kind}
        if kinds == {POSITIVES, NEGATIVES} or (PRIOR in kinds and kinds & {POSITIVES, NEGATIVES}):
            return False
        mine, theirs = dict(self.where), dict(other.where)
        return all(theirs.get(column, value) == value for column, value in mine.items())


class CalibrationSample:
    """Scores, labels and slices.

    Args:
        scores: One score per example, in the precision that decisions will be made in.
        labels: Booleans; None if only acceptance counts.
        slices: A mask of the examples of each slice that the goal asks about.
        precision: The name of the scores' precision.
        prevalence: The share of positives that was declared for deployment, or the lowest and the
            highest that it may be; None: as in the data.
    """

    def __init__(
        self,
        scores: NDArray[Any],
        labels: Bools | None,
        slices: Mapping[Where, Bools],
        precision: str,
        prevalence: Prevalence = None,
    ) -> None:
        self.scores, self.labels, self.precision = scores, labels, precision
        self.prevalence = prevalence
        self.slices = dict(slices)
        self.kept: Bools | None = None
        """Which of the rows given have a label, if some have none."""
        self.others: CalibrationSample | None = None
        """The rows without a label, if there are any."""
        self.label_caveats: tuple[str, ...] = ()
        """Whether rows with and without a label differ, in sentences."""
        self.lowest_threshold = -np.inf
        """No threshold lies below: reviewed alerts say nothing about the rows below them."""
        self.clusters: int | None = None
        """How many clusters the rows come from, if one row of each stands for it."""
        self.drawn: NDArray[np.intp] | None = None
        """Which of all rows stand for their clusters."""
        self.amounts: Floats | None = None
        """What each row is worth, if costs go by it."""
        self.order: TieOrder | None = None
        """How scores and lots became the numbers that are scores here, if ties are broken."""
        self.largest_amount: float | None = None
        """The largest amount that a row can have."""
        self._sorted: dict[Subset, NDArray[Any]] = {}

    def sorted(self, subset: Subset) -> NDArray[Any]:
        """The scores of a subset, from low to high."""
        if subset not in self._sorted:
            if subset.kind == EVERYONE and self.labels is not None:
                halves = [self.sorted(Subset(subset.where, k)) for k in (POSITIVES, NEGATIVES)]
                # two runs that are sorted already: a stable sort merges them
                self._sorted[subset] = np.sort(np.concatenate(halves), kind="stable")
                return self._sorted[subset]
            self._sorted[subset] = np.sort(self.scores[self.inside(subset)])
        return self._sorted[subset]

    def pairs_in_order(self) -> float:
        """In how many pairs of a positive and a negative it scores higher; ties count half."""
        high, low = (self.sorted(Subset((), kind)) for kind in (POSITIVES, NEGATIVES))
        return float(sum(np.searchsorted(low, high, side).sum() for side in ("left", "right")) / 2)

    def inside(self, subset: Subset) -> Bools:
        """A mask of the examples of a subset."""
        inside = self.slices.get(subset.where, np.ones(len(self.scores), bool))
        if subset.kind == EVERYONE:
            return inside
        if self.labels is None:
            raise ValueError("This goal counts positives and negatives: pass labels.")
        return np.asarray(inside & (self.labels == (subset.kind == POSITIVES)))

    @property
    def examples(self) -> int:
        """How many examples there are."""
        return len(self.scores)

    def multiplicities(self, subset: Subset) -> NDArray[np.int64]:
        """How often each score of a subset occurs; of very many scores, of a sample of them."""
        return multiplicities_of(self.sorted(subset), self.examples)

    def unlabelled(self, where: Where = ()) -> tuple[int, float]:
        """How many rows of a slice have no label, and the highest of their scores."""
        if self.others is None:
            return 0, -np.inf
        scores = self.others.scores[self.others.inside(Subset(where, EVERYONE))]
        return len(scores), float(scores.max(initial=-np.inf))

    @property
    def wheres(self) -> tuple[Where, ...]:
        """Everyone, and the slices."""
        return ((), *self.slices)

    def only_alerts(self, where: Where = (), old: float | None = None) -> float | None:
        """Where the rows without a label end, if all labelled ones of a slice score higher.

        Args:
            where: The slice.
            old: Where alerts began, if that is known; by default the rows without a label tell.
        """
        everyone = Subset(where, EVERYONE)
        if old is None:
            count, end = self.unlabelled(where)
        else:
            count, end = _UNLABELLED_ENOUGH, number(old, "old_threshold")
        if count < _UNLABELLED_ENOUGH or not self.size(everyone):
            return None
        return end if self.sorted(everyone)[0] > end else None

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the labels in their order, of the scores if there are none.

        Models that are scored on the same rows share it: it tells certificates of one table.
        """
        known = self.scores if self.labels is None else np.packbits(self.labels)
        return hashlib.sha256(f"{self.examples} ".encode() + known.tobytes()).hexdigest()[:16]

    def size(self, subset: Subset) -> int:
        """How many examples a subset has."""
        return len(self.sorted(subset))

    def above(self, subset: Subset, score: Any, *, reaching: bool = False) -> Any:
        """How many scores of a subset are above ``score``, or at least as high if ``reaching``."""
        scores = self.sorted(subset)
        cast = np.asarray(score, dtype=scores.dtype)  # else searching converts all scores
        return len(scores) - np.searchsorted(scores, cast, "left" if reaching else "right")

    def weight_above(self, subset: Subset, score: Any) -> Any:
        """What the examples of a subset above ``score`` count in a measured rate."""
        return self.above(subset, score) * 1.0

    def values(self, expression: Expression, thresholds: Any) -> Floats:
        """An expression as it is measured at each of several thresholds of everyone; 0/0 is NaN."""
        at = np.asarray(thresholds)
        tables = {
            where: self.measured(where, at) for where in {r.where for r in expression.rates()}
        }
        with np.errstate(all="ignore"):
            value = expression.of(tables)
        return np.broadcast_to(np.asarray(value, float), np.shape(thresholds))

    def prices(self, expression: Expression) -> bool:
        """Whether an expression is a cost that the rows' amounts enter."""
        return False

    def cost_bounds(
        self, expression: Expression, threshold: float, tail: float
    ) -> tuple[float, float]:
        """Bounds of a mean cost from below and above, each wrong with probability ``tail``."""
        raise NotImplementedError

    def score_text(self, threshold: float) -> str:
        """A threshold in words."""
        if self.order is None:
            return f"{threshold:.6g}"
        return "{:.6g} (lot {:.3g})".format(*self.order.pair(threshold))

    def decided_scores(self, where: Where) -> NDArray[Any]:
        """All scores of a slice that a threshold decides about, from low to high."""
        return self.sorted(Subset(where, EVERYONE))

    def loosest(self, share: Share, score: float, delta: float) -> float:
        """The loosest score at which a share is proved by more than ``score`` rests on."""
        return score

    def table(self, where: Where, thresholds: Any) -> Counts:
        """The counts of a slice at thresholds."""
        return self._table(where, thresholds, self.above)

    def measured(self, where: Where, thresholds: Any) -> Counts:
        """What rates are measured by: weighted, and at the declared prevalence if there is one.

        Of an interval that is its middle.
        """
        declared = self.prevalence
        middle = sum(declared) / 2 if isinstance(declared, tuple) else declared
        return self._table(where, thresholds, self.weight_above, middle)

    def _table(
        self,
        where: Where,
        thresholds: Any,
        above: Callable[[Subset, Any], Any],
        prevalence: float | None = None,
    ) -> Counts:
        if self.labels is None:  # of a rate that counts acceptance alone
            everyone = Subset(where, EVERYONE)
            accepted, total = above(everyone, thresholds) * 1.0, float(above(everyone, -np.inf))
            return Counts(accepted, 0 * accepted, total - accepted, 0 * accepted, total, 0.0)
        p, n = Subset(where, POSITIVES), Subset(where, NEGATIVES)
        tp, fp = above(p, thresholds) * 1.0, above(n, thresholds) * 1.0
        positives, negatives = (float(above(subset, -np.inf)) for subset in (p, n))
        if prevalence is not None and positives and negatives:
            total = positives + negatives
            a, b = total * prevalence / positives, total * (1 - prevalence) / negatives
            tp, fp, positives, negatives = a * tp, b * fp, a * positives, b * negatives
        return Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)

    def rows(self, chosen: NDArray[Any]) -> CalibrationSample:
        """Some of the rows, as a sample of their own."""
        labels = None if self.labels is None else self.labels[chosen]
        slices = {where: inside[chosen] for where, inside in self.slices.items()}
        given = (self.scores[chosen], labels, slices, self.precision, self.prevalence)
        found = CalibrationSample(*given)
        found.order, found.lowest_threshold = self.order, self.lowest_threshold
        return found

    def inherit(self, rows: CalibrationSample) -> None:
        """Take over what is known of the rows that this sample was made of."""
        self.kept, self.others, self.order = rows.kept, rows.others, rows.order
        self.label_caveats = rows.label_caveats


def count_text(count: float, subset: Subset) -> str:
    """``1,200 negatives with group = 'a'``."""
    noun = {POSITIVES: "positive", NEGATIVES: "negative"}.get(subset.kind, "example")
    return plural(count, noun) + slice_text(subset.where)


def slice_text(where: Where) -> str:
    """`` with group = 'a'``; nothing for everyone."""
    return "".join(f" with {column} = {value!r}" for column, value in where)


def only_alerts(
    text: str, sample: CalibrationSample, where: Where, end: float, *, given: bool = False
) -> CannotPromise:
    """The error for a goal about rejected rows, if the labels of a slice are of alerts alone.

    Args:
        text: The goal.
        sample: The labelled rows.
        where: The slice.
        end: Where alerts begin.
        given: Whether that was said; else it is where rows without a label end.
    """
    rows = plural(sample.size(Subset(where, EVERYONE)), "labelled row") + slice_text(where)
    place = f"among those without a label, which end at {end:g}"
    if given:
        place = f"below the old threshold {end:g}"
    return CannotPromise(
        f"None of the {rows} lies {place}: they are alerts that were reviewed, and say nothing "
        f"about what was rejected. For `{text}` label a random sample of the rejected rows too "
        f"(label_plan(..., reviewed={end:g}), `setpoint plan --reviewed {end:g}`); of alerts "
        "alone, precision can be certified."
    )


def calibration_sample(
    scores: Any,
    labels: Any,
    groups: Any,
    wheres: tuple[Where, ...],
    prevalence: Prevalence = None,
) -> CalibrationSample:
    """A checked sample with the slices ``wheres``."""
    array, precision = scores_and_precision(scores)
    return sample_of(array, precision, labels, read_slices(groups, wheres, array), prevalence)


def sample_of(
    scores: NDArray[Any],
    precision: str,
    labels: Any,
    slices: Mapping[Where, Bools],
    prevalence: Prevalence,
) -> CalibrationSample:
    """A sample of the examples that have a label; of all of them if no labels are given."""
    if labels is None:
        return CalibrationSample(scores, None, slices, precision, prevalence)
    positive, known = labels_and_known(labels, scores)
    sample = CalibrationSample(scores, positive, slices, precision, prevalence)
    if not known.all():
        others = {where: inside[~known] for where, inside in slices.items()}
        sample = sample.rows(known)
        sample.kept = known
        sample.others = CalibrationSample(scores[~known], None, others, precision)
        sample.label_caveats = _labels_by_score(scores[known], scores[~known])
    return sample


def _labels_by_score(labelled: NDArray[Any], others: NDArray[Any]) -> tuple[str, ...]:
    """A caveat if scores with and without a label differ, by the test of Kolmogorov and Smirnov.

    By chance it comes once in a million samples.
    """
    n, m, both = len(labelled), len(others), np.concatenate([labelled, others])
    shares = [np.searchsorted(np.sort(x), both, "right") / len(x) for x in (labelled, others)]
    if np.abs(shares[0] - shares[1]).max() <= np.sqrt(
        -np.log(_BY_CHANCE / 2) / 2 * (1 / n + 1 / m)
    ):
        return ()
    return (
        f"labels depend on scores: the median is {np.median(labelled):.4g} where there is a label, "
        f"{np.median(others):.4g} in {plural(m, 'row')} without; if labels were chosen by score, "
        "label by a plan (label_plan)",
    )


def scores_and_precision(scores: Any) -> tuple[NDArray[Any], str]:
    """Scores ``[n]`` of numpy, torch or a list, and the precision they come in.

    Half precisions are kept in float32, which holds them exactly; whole numbers become float64.
    """
    name = str(getattr(scores, "dtype", "float64")).removeprefix("torch.").lower()
    name = name if name in SCORE_PRECISIONS else "float64"
    array = one_output(scores, "scores")
    array = array if name == "float64" else array.astype(np.float32)  # exact: it came from there
    if array.size == 0:
        raise ValueError("There are no scores: pass those of at least one example.")
    check_scores(array)
    return array, name


def binary_labels(labels: Any, scores: NDArray[Any]) -> Bools:
    """Labels as booleans; every row must have one."""
    array = _label_numbers(labels)
    check_labels(array, scores)
    return np.asarray(array == 1)


def labels_and_known(labels: Any, scores: NDArray[Any]) -> tuple[Bools, Bools]:
    """Which rows are positive, and which have a label: NaN and -1 mark those without one."""
    array = _label_numbers(labels)
    check_length(array, scores, "labels")
    found = missing_labels(array)
    missing = np.zeros(len(array), bool) if found is None else np.asarray(found)
    if missing.all():
        raise ValueError("No row has a label: all are NaN or -1.")
    check_labels(np.where(missing, 0, array), scores)
    return np.asarray(array == 1), ~missing


def _label_numbers(labels: Any) -> NDArray[Any]:
    array = as_array(labels, "labels")
    array = as_column(array)
    if array.dtype.kind in "biuf":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise text_labels(array) from None


def read_slices(
    groups: Any, wheres: tuple[Where, ...], scores: NDArray[Any], *, empty: bool = False
) -> dict[Where, Bools]:
    """A mask per slice; CannotPromise if one has no rows, unless slices may be ``empty``."""
    columns = {column for where in wheres for column, _ in where}
    found = {}
    for where in filter(None, wheres):
        inside = np.ones(len(scores), bool)
        for column, value in where:
            inside &= np.asarray(read_column(column_of(groups, column, columns), scores) == value)
        if not (empty or inside.any()):
            text = " and ".join(f"{column} = {value!r}" for column, value in where)
            wanted = "look for it in the data, or leave it out"
            raise CannotPromise(f"No example has {text}, of {len(scores):,} given: {wanted}.")
        found[where] = inside
    return found


def read_column(column: Any, scores: NDArray[Any], name: str = "groups") -> NDArray[Any]:
    """One value for each score."""
    array = as_array(column, name)
    array = as_column(array)
    check_length(array, scores, name)
    return array


def check_copies(sample: CalibrationSample) -> tuple[str, ...]:
    """Refuse rows that are all there several times; point out what looks like it."""
    kinds = (POSITIVES, NEGATIVES) if sample.labels is not None else ("everyone",)
    shares, distinct = {}, {}
    for kind in kinds:
        counts = sample.multiplicities(Subset((), kind))
        if not len(counts):
            continue
        times = int(np.gcd.reduce(counts))
        if times > 1 and len(counts) >= _DISTINCT_ENOUGH:
            raise CannotPromise(
                f"Every score of the {kind} appears {times} times (or a multiple of it): these are "
                "copies. A copy is no further evidence; certify the rows as they were drawn."
            )
        shares[kind] = float(counts[counts > 1].sum() / counts.sum())
        distinct[kind] = len(counts) / float(counts.sum())
    if len(shares) == 2 and max(shares.values()) > 0.1 and min(shares.values()) < 0.01:
        kind = max(shares, key=shares.__getitem__)
        if _are_rounded(sample, kind):
            return ()
        return (
            f"{100 * shares[kind]:.0f} % of the {kind} share their score with another, the other "
            "class hardly ever: if they were oversampled, the certificate is void",
        )
    if shares and min(shares.values()) > 0.1 and max(distinct.values()) > _MANY:
        return (
            f"{100 * min(shares.values()):.0f} % of the scores and more belong to several rows: "
            "as it should be if scores are rounded; if rows are copies, the certificate is void",
        )
    return ()


def _are_rounded(sample: CalibrationSample, kind: str) -> bool:
    """Whether ties within a class come of rounding: scores of one class occur in the other, too.

    Or, where the classes lie apart, there are as many ties as that many decimals make.
    """
    if type(sample).sorted is not CalibrationSample.sorted:
        return False
    positive, negative = (sample.sorted(Subset((), each)) for each in (POSITIVES, NEGATIVES))
    fewer, more = sorted((positive, negative), key=len)
    return bool(np.isin(fewer, more).mean() > 0.01) or _tied_by_decimals(
        positive if kind == POSITIVES else negative
    )


def _tied_by_decimals(scores: NDArray[Any]) -> bool:
    """Whether sorted scores have few decimals, and no more ties than chance makes of them.

    Of some neighbouring rows it is known how many different decimals chance would give them.
    """
    exact = scores.astype(float)
    written = (np.round(exact, d).astype(scores.dtype) for d in range(_DECIMALS))
    decimals = next((d for d, each in enumerate(written) if np.array_equal(each, scores)), None)
    size = min(len(scores), _NEIGHBOURS)
    if decimals is None or size == 0:
        return False
    cells = np.rint(exact[: len(exact) // size * size] * 10.0**decimals).reshape(-1, size)
    places = cells[:, -1] - cells[:, 0] + 1
    expected = places * (1 - (1 - 1 / places) ** size)
    different = 1 + (np.diff(cells, axis=1) > 0).sum(1)
    return bool(different.sum() > 0.9 * expected.sum())

"""A certificate: a threshold, what is proved about it, and everything needed to judge that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from setpoint._checks import is_number
from setpoint._extras import HIGHER
from setpoint.certificates.decisions import (
    SCORE_PRECISIONS,
    exceeds,
    exceeds_by_group,
    raised,
    rounded,
)
from setpoint.certificates.goals import as_capacity, goal_to_certify
from setpoint.certificates.proofs import CERTIFIED, INFEASIBLE, NOT_CERTIFIED
from setpoint.certificates.storage import (
    need,
    need_clusters_and_period,
    need_label_names,
    read_fields,
    to_json,
)
from setpoint.certificates.text import (
    TextRows,
    claim_rows,
    html_table,
    share_text,
    text_table,
    titled,
    value_text,
)
from setpoint.rates import Value, numeral

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from setpoint import Monitor
    from setpoint.axes.arrays import Bools
    from setpoint.certificates.drift import Check

_Record = TypeVar("_Record", bound="Record")


@dataclass(frozen=True)
class Claim:
    """One bound: what was measured of it, what is proved, and from which counts."""

    bound: str
    measured: float | None
    proved: float | None
    counts: str


@dataclass(frozen=True)
class Estimate:
    """A rate at the threshold, with a two-sided interval of the certificate's confidence."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """One threshold and the counts at it.

    The threshold is None if there is none, and minus infinity to accept all. Without labels, the
    number of positives is unknown.
    """

    group: Value | None
    threshold: float | None
    examples: int
    positives: int | None
    alerts: int
    true_alerts: int | None

    def describe(self, precision: str, lot: float | None = None) -> str:
        """``score > 2.5 (float64), accepts 60 of 1,000 rows (40 of 200 positives)``."""
        if self.threshold is None:
            positive = "" if self.positives is None else f", {self.positives:,} of them positive"
            return f"none; {self.examples:,} rows{positive}"
        accepted = f"accepts {self.alerts:,} of {self.examples:,} rows"
        if self.positives is not None and self.true_alerts is not None:
            accepted += f" ({self.true_alerts:,} of {self.positives:,} positives)"
        if self.threshold == -math.inf:
            return f"none needed: {accepted}"
        equal = "" if lot is None else f", or equal to it with a lot above {lot:.6g}"
        return f"score > {numeral(self.threshold)} ({precision}){equal}, {accepted}"


class Record:
    """What every certificate has: a verdict on a goal, with its storage and its text."""

    kind: ClassVar[str]
    version: ClassVar[int]
    statuses: ClassVar[tuple[str, ...]] = (CERTIFIED, NOT_CERTIFIED, INFEASIBLE)
    added: ClassVar[tuple[str, ...]] = ()
    """Fields that older files of this version lack; they have their defaults then."""
    __dataclass_fields__: ClassVar[dict[str, Any]]
    goal: str
    status: str
    confidence: float
    caveats: tuple[str, ...]

    @property
    def certified(self) -> bool:
        """Whether every bound of the goal is proved."""
        return self.status == CERTIFIED

    @property
    def verdict(self) -> str:
        """The status; with caveats ``"certified, but it accepts nobody"``."""
        return f"{self.status}, but {'; '.join(self.caveats)}" if self.caveats else self.status

    @property
    def exit_code(self) -> int:
        """0 if certified, 1 if not or with a caveat: what commands return to the shell."""
        return 0 if self.certified and not self.caveats else 1

    def __bool__(self) -> bool:
        return self.certified

    def check(self, scores: Any, labels: Any = None, *, groups: Any = None) -> Check:
        """Compare new data with the certificate."""
        raise NotImplementedError

    def tested_on(self: _Record, scores: Any, labels: Any, **given: Any) -> _Record:
        """The same certificate, with a caveat if labelled test rows contradict it.

        Args:
            scores: Of the test rows.
            labels: Theirs.
            **given: What else :meth:`check` takes: groups, clusters, amounts.
        """
        found = self.check(scores, labels, **given) if self.certified else None
        if found is None or found.verdict != "broken":
            return self
        alarm = next(finding for finding in found.findings if finding.alarm)
        known = alarm.measured
        seen = "undefined" if known is None else value_text(alarm.name, known)
        caveat = f"{found.examples:,} test rows contradict it: `{alarm.name}` is {seen} there"
        return replace(self, caveats=(*self.caveats, caveat))

    def to_json(self) -> str:
        """The certificate as JSON, with a checksum."""
        return to_json(self)

    @classmethod
    def from_json(cls: type[_Record], text: str) -> _Record:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        given = read_fields(cls, text)
        need(given["status"] in cls.statuses, f"status is one of {', '.join(cls.statuses)}")
        sure = given["confidence"]
        need(isinstance(sure, float) and 0 < sure < 1, "confidence is between 0 and 1")
        need(isinstance(given["goal"], str), "goal is a sentence")
        return cls(**cls._checked(given))

    @classmethod
    def _checked(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The fields of a file after all other checks."""
        raise NotImplementedError

    def __str__(self) -> str:
        return text_table(self._headline(), self._rows())

    def _repr_html_(self) -> str:
        status = NOT_CERTIFIED if self.caveats else self.status
        return html_table(self._headline(), self._rows(), status)

    def _headline(self) -> str:
        """``certified: fpr <= 0.01 with 95 % confidence``."""
        raise NotImplementedError

    def _rows(self) -> TextRows:
        """A name and a text per line."""
        raise NotImplementedError


@dataclass(frozen=True)
class Certificate(Record):
    """What :func:`setpoint.certify` found: frozen, and readable by people and machines.

    ``print`` shows all of it; in a notebook it is a table. A certificate that is not certified has
    no threshold and refuses to decide.

    Examples:
        >>> import numpy as np
        >>> from setpoint import Certificate, certify
        >>> labels = np.arange(3000) % 3 == 0
        >>> scores = np.random.default_rng(0).normal(size=3000) + 2.5 * labels
        >>> certificate = certify(scores, labels, "fpr <= 0.05")
        >>> certificate.status, certificate.claims[0].counts
        ('certified', 'at most 83 of 2,000 negatives may lie above the threshold')
        >>> certificate.decide([0.0, 4.0]).tolist()
        [False, True]
        >>> Certificate.from_json(certificate.to_json()) == certificate
        True
        >>> certificate.check(scores, labels).verdict
        'ok'
    """

    kind = "setpoint certificate"
    version = 2
    added = (
        *("given_thresholds", "largest_amount", "old_threshold", "lots", "lot_seed"),
        "label_names",
    )

    goal: str
    """What was asked for; ``Problem.parse`` or ``certify`` read it back."""
    status: str
    """``"certified"``, ``"not certified"`` or ``"infeasible"`` (too few examples for any proof)."""
    confidence: float
    """The certificate is wrong for at most ``1 - confidence`` of all calibration samples."""
    guarantee: str
    """``"pac"``: with confidence, for this threshold. ``"mean"``: on average over samples."""
    candidates: int
    """Among how many models this one was chosen on the same data."""
    prevalence: float | tuple[float, float] | None
    """The share of positives that was declared for deployment, or the lowest and the highest that
    it may be; None: as in the data."""
    dtype: str
    """The precision in which scores are compared."""
    column: str | None
    """The column that tells groups apart, if every group has its own threshold."""
    points: tuple[Point, ...]
    """The threshold, or one for each group, with the counts at it."""
    claims: tuple[Claim, ...]
    """For each bound what was measured and what is proved."""
    objective: tuple[Estimate, ...]
    """The objective at the threshold, with a two-sided interval that holds by itself."""
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    """Why the verdict is what it is, and what to notice."""
    advice: tuple[str, ...]
    """What would change the verdict."""
    caveats: tuple[str, ...] = ()
    """Why a certified threshold is of no use; each completes "certified, but ..."."""
    fingerprint: str = ""
    """Of the labels in their order (of the scores, without labels): tells who used these rows."""
    clusters: int | None = None
    """How many clusters the rows come from, if each of them counts once."""
    period: tuple[str, ...] = ()
    """When the first and the last of the rows were measured, if that is known."""
    given_thresholds: bool = False
    """Whether the thresholds were chosen on other data (``thresholds=``) and only proved here."""
    largest_amount: float | None = None
    """The largest amount that a row can have, if costs go by amounts."""
    old_threshold: float | None = None
    """Where alerts began while the rows were labelled, if that was said."""
    outputs: tuple[str, ...] = ()
    """Of several outputs the names, in the order of the scores' columns."""
    lots: tuple[float, ...] = ()
    """For each point: scores that equal the threshold are accepted if their lot is above it."""
    lot_seed: int = 0
    """Of the lots, which are drawn from the ids of rows."""
    label_names: tuple[str, ...] = ()
    """What a file called the negative and the positive class; empty for labels 0 and 1."""

    @property
    def threshold(self) -> float:
        """The one threshold; accept what is above it."""
        self._need_threshold()
        if self.column is not None:
            raise ValueError(f"There is one threshold for each {self.column:.60}: see thresholds.")
        (point,) = self.points
        assert point.threshold is not None
        return point.threshold

    @property
    def thresholds(self) -> dict[Value, float]:
        """The threshold of each group."""
        self._need_threshold()
        if self.column is None:
            raise ValueError("There is one threshold for everyone: see threshold.")
        return {p.group: p.threshold for p in self.points if None not in (p.group, p.threshold)}  # type: ignore[misc]

    @property
    def threshold_or_none(self) -> float | dict[Value, float] | None:
        """The threshold, a dict of them by group, or None if nothing is certified."""
        if not self.certified:
            return None
        return self.threshold if self.column is None else self.thresholds

    def decide(self, scores: Any, groups: Any = None, *, ids: Any = None) -> Any:
        """``score > threshold`` for new scores, numpy or torch, in the calibrated precision.

        Args:
            scores: New scores of the same model, of any shape.
            groups: The group of each score, if every group has its own threshold.
            ids: The id of each row, if ties are broken by lot.

        Returns:
            Booleans of the shape (and, for torch, on the device) of the scores. Of several outputs
            scores are ``[n, k]``; one without a threshold is never accepted.
        """
        if self.outputs and groups is None:
            from setpoint.certificates.many_outputs import each_column

            known = {
                str(g): partial(exceeds, threshold=t, precision=self.dtype)
                for g, t in self.thresholds.items()
            }
            return each_column(known, scores, self.outputs)
        wins = self._winners(ids, np.shape(scores))
        if self.column is None:
            return exceeds(scores, self.threshold, self.dtype, wins and wins[None])
        if groups is None:
            raise ValueError(f"There is one threshold for each {self.column:.60}: pass groups=.")
        return exceeds_by_group(scores, groups, self.thresholds, self.column, self.dtype, wins)

    def resolve_ties(self, scores: Any, ids: Any, groups: Any = None) -> NDArray[Any]:
        """Scores of which ``score > threshold`` is the decision: winners of a lot lie just above.

        For what compares scores with the threshold by itself: :meth:`monitor`, pages.

        Args:
            scores: One per row.
            ids: The id of each row.
            groups: The group of each row, if every group has its own threshold.
        """
        wins = self._winners(ids, np.shape(scores))
        found = rounded(scores, self.dtype)
        for point in self.points:
            if wins is not None and point.threshold is not None:
                own = wins[point.group]
                own &= True if point.group is None else np.asarray(groups) == point.group
                found = raised(found, point.threshold, own, self.dtype)
        return found

    def _winners(self, ids: Any, shape: tuple[int, ...]) -> dict[Value | None, Bools] | None:
        """For each group who is accepted with a score that equals its threshold; None: nobody."""
        self._need_threshold()
        if not self.lots:
            return None
        if ids is None:
            raise ValueError("Ties are broken by a lot drawn from the row's id: pass ids=.")
        from setpoint.certificates.tie_breaking import winners

        pairs = zip(self.points, self.lots, strict=True)
        return {point.group: winners(ids, self.lot_seed, lot, shape) for point, lot in pairs}

    def check(
        self,
        scores: Any,
        labels: Any = None,
        *,
        groups: Any = None,
        clusters: Any = None,
        times: Any = None,
        ids: Any = None,
        amounts: Any = None,
        significance: float = 0.001,
    ) -> Check:
        """Compare new data with the certificate: do the bounds still hold, do as many alerts come?

        Args:
            scores: New scores of the same model.
            labels: Their labels, if known by now: then the certified rates themselves are tested.
            groups: The group of each score, if the certificate is about groups.
            clusters: What each row belongs to; needed if the certificate is about clusters.
            times: When each row was measured; needed if the certificate is about alerts in a day.
            ids: The id of each row; needed if ties are broken by lot.
            amounts: What each row is worth; needed with labels, if costs go by amounts.
            significance: The chance of a false alarm in a check without drift.

        Returns:
            A verdict in words, with its numbers and an exit code for cron.
        """
        from setpoint.certificates.drift import check_drift

        self._need_threshold()
        capacity = as_capacity(self.goal)
        if capacity is not None:
            from setpoint.certificates.drift import check_capacity

            return check_capacity(self, capacity, scores, times, significance)
        if self.outputs and np.ndim(scores) != 1:
            from setpoint.certificates.many_outputs import certified_columns

            rows = (scores, labels, groups, clusters)
            scores, labels, groups, clusters = certified_columns(self, *rows)
        if self.clusters is not None and clusters is None:
            raise ValueError("The certificate is about a row of each cluster: pass clusters=.")
        if self.lots:
            column = groups
            if isinstance(groups, Mapping):
                column = None if self.column is None else groups[self.column]
            scores = self.resolve_ties(scores, ids, column)
        return check_drift(self, scores, labels, groups, significance, clusters, amounts)

    def monitor(
        self,
        false_alarm: float = 0.05,
        *,
        watch: Iterable[str] = ("rates", "alerts", "scores"),
        reference: Any = None,
        features: Sequence[str] = (),
        by: str = "day",
    ) -> Monitor:
        """Watch the certificate after deployment, looking as often as one likes.

        Args:
            false_alarm: The chance of ever raising an alarm while nothing has changed.
            watch: The kinds of tests that share it: ``"rates"`` (needs labels), ``"alerts"`` (the
                share of alerts), ``"scores"`` (their whole distribution).
            reference: The calibration scores, with which new ones are compared; by default the
                first 1,000 rows that come.
            features: Names of columns that will be watched, too.
            by: ``"hour"``, ``"day"``, ``"week"`` or ``"month"``: what rows with times are put
                together by.

        Returns:
            A monitor, to be given new rows by ``update``.
        """
        self._need_threshold()
        made: Monitor = HIGHER["Monitor"]()(
            self, false_alarm, watch=watch, reference=reference, features=features, by=by
        )
        return made

    def _need_threshold(self) -> None:
        if not self.certified:
            why = f": {self.notes[0]}" if self.notes else ""
            raise ValueError(f"There is no threshold, the goal is {self.status}{why:.300}.")

    def _headline(self) -> str:
        sure = f"with {share_text(self.confidence)} confidence"
        return f"{self.verdict}: {self.goal} {'on average' if self.guarantee == 'mean' else sure}"

    def _rows(self) -> TextRows:
        for point, lot in zip_longest(self.points, self.lots):
            name = "threshold" if self.column is None else f"{self.column} = {point.group!r}"
            yield name, point.describe(self.dtype, lot)
        if self.period:
            yield "measured", "from {} to {}".format(*self.period)
        yield from claim_rows(self.claims)
        sure = f"two-sided {share_text(self.confidence)} interval"
        for estimate in self.objective:
            ends = (estimate.value, estimate.low, estimate.high)
            value, low, high = (value_text(estimate.name, end) for end in ends)
            yield estimate.name, f"{value} measured, between {low} and {high} ({sure})"
        yield from titled("notes", self.notes)
        yield from titled("assumes", self.assumptions)
        yield from titled("would change it", self.advice)

    @classmethod
    def _checked(cls, given: dict[str, Any]) -> dict[str, Any]:
        need(given["guarantee"] in ("pac", "mean"), 'guarantee is "pac" or "mean"')
        need(given["dtype"] in SCORE_PRECISIONS, f"dtype is one of {', '.join(SCORE_PRECISIONS)}")
        need(isinstance(given["column"], (str, type(None))), "column is a name or null")
        prior, count = given["prevalence"], given["candidates"]
        ends = prior if isinstance(prior, list) else [0.5, 0.5] if prior is None else [prior, prior]
        right = len(ends) == 2 and all(type(end) is float for end in ends)
        need(right and 0 <= ends[0] <= ends[1] <= 1, "prevalence is a share, or two in order")
        names = given["outputs"]
        need(len(set(names)) == len(names), "outputs have different names")
        need(type(count) is int and count >= 1, "candidates is a whole number of at least 1")
        need_clusters_and_period(given)
        need(isinstance(given["fingerprint"], str), "fingerprint is a text")
        need_label_names(given)
        need(type(given["given_thresholds"]) is bool, "given_thresholds is true or false")
        lots, points = given["lots"], given["points"]
        need(len(lots) in (0, len(points)), "there is a lot for each point, or none")
        need(all(0 <= lot < 1 for lot in lots), "lots are between 0 and 1")
        seed = given["lot_seed"]
        need(type(seed) is int and 0 <= seed < 2**32, "lot_seed is a whole number below 2^32")
        for name in ("largest_amount", "old_threshold"):
            need(given[name] is None or is_number(given[name]), f"{name} is a number or null")
        try:
            if as_capacity(given["goal"]) is None:
                goal_to_certify(given["goal"])
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(
                f"This is no valid certificate: its goal cannot be read. {error}"
            ) from None
        prior = tuple(prior) if isinstance(prior, list) else prior
        return {**given, "prevalence": prior, "points": _checked_points(**given)}


def _checked_points(
    points: tuple[Point, ...],
    column: str | None,
    status: str,
    given_thresholds: bool,
    **_: object,
) -> tuple[Point, ...]:
    """Null is minus infinity (accept all) where there are thresholds, else no threshold.

    Thresholds that were given stay what they are, proved or not.
    """
    need(bool(points), "it has at least one point")
    need(column is not None or len(points) == 1, "one threshold, or a column of groups")
    need(all((p.group is None) == (column is None) for p in points), "groups have names")
    need(len({p.group for p in points}) == len(points), "groups are all different")
    need(all(p.alerts <= p.examples for p in points), "there are no more alerts than examples")
    if status != CERTIFIED and not given_thresholds:
        own = column is not None
        need(own or points[0].threshold is None, "only a certified goal has a threshold")
        return points
    return tuple(
        replace(p, threshold=-math.inf if p.threshold is None else float(p.threshold))
        for p in points
    )

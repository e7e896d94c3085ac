"""Three-way decisions: accept, review, reject, with both automatic sides proved.

Scores above ``upper`` are accepted, scores up to ``lower`` are rejected, those between are
reviewed by people. ``accept`` is a bound that holds at the threshold ``upper`` (of those accepted
automatically at least 99 % are positive: ``precision >= 0.99``), ``reject`` one that holds at
``lower`` (of those rejected at least 99.9 % are negative: ``npv >= 0.999``).

Each bound is proved at many thresholds at once, by the method of its kind, with half of ``delta``.
Both families of proofs hold together with probability ``1 - delta``, so any pair of proved
thresholds may be taken: the one that leaves the fewest rows between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share, whole
from setpoint._extras import HIGHER
from setpoint.certificates.calibration_drift import drift_caveat
from setpoint.certificates.certificate import Certificate, Claim, Estimate, Point, Record
from setpoint.certificates.clusters import by_cluster
from setpoint.certificates.decisions import SCORE_PRECISIONS, exceeds, halfway
from setpoint.certificates.goals import Inequality, goal_to_certify, inequalities
from setpoint.certificates.proofs import (
    CERTIFIED,
    INFEASIBLE,
    NOT_CERTIFIED,
    Proof,
    ThresholdRange,
    ThresholdRule,
    evidence,
    values_at,
)
from setpoint.certificates.sample import (
    EVERYONE,
    CalibrationSample,
    CannotPromise,
    Subset,
    calibration_sample,
    only_alerts,
)
from setpoint.certificates.search import PROOF_METHODS
from setpoint.certificates.storage import need, need_clusters_and_period, need_label_names
from setpoint.certificates.tails import lower, upper
from setpoint.certificates.text import (
    TextRows,
    assumptions,
    claim_rows,
    share_text,
    titled,
)
from setpoint.certificates.times import period_of, times_of_rows
from setpoint.rates import numeral

if TYPE_CHECKING:
    from setpoint.certificates.drift import Check

ACCEPT, REVIEW, REJECT = "accept", "review", "reject"


@dataclass(frozen=True)
class ThreeWayCertificate(Record):
    """What :func:`certify_three_way` found.

    Attributes:
        goal: Both bounds in words.
        status: ``"certified"``, ``"not certified"`` or ``"infeasible"`` (too few examples).
        confidence: Both bounds hold together with this confidence.
        accept: The bound on what is accepted automatically.
        reject: The bound on what is rejected automatically.
        upper: Scores above it are accepted; None if nothing is.
        lower: Scores up to it are rejected; None if nothing is.
        dtype: The precision in which scores are compared.
        examples: How many calibration rows there were.
        reviews: How many of them are between the thresholds.
        claims: What was measured and what is proved of each bound.
        shares: The share of rows of each decision, each with an interval of the confidence.
        notes: Why the verdict is what it is.
        candidates: Among how many models this one was chosen on the same data.
        caveats: Why certified thresholds are of no use; each completes "certified, but ...".
        label_names: What a file called the negative and the positive class.
        fingerprint: Of the labels in their order: tells who used these rows.
        assumptions: What must be true for both bounds to hold.
        clusters: How many clusters the rows come from, if each of them counts once.
        period: When the first and the last of the rows were measured, if that is known.

    Examples:
        >>> import numpy as np
        >>> from setpoint.certificates import certify_three_way
        >>> y = np.arange(20_000) % 5 == 0
        >>> s = np.random.default_rng(0).normal(size=20_000) + 4 * y
        >>> found = certify_three_way(s, y, "precision >= 0.99", "npv >= 0.99")
        >>> found.certified, found.lower < found.upper
        (True, True)
    """

    kind = "setpoint three-way certificate"
    version = 1
    added = (
        *("candidates", "caveats", "label_names", "fingerprint"),
        *("assumptions", "clusters", "period"),
    )

    goal: str
    status: str
    confidence: float
    accept: str
    reject: str
    upper: float | None
    lower: float | None
    dtype: str
    examples: int
    reviews: int
    claims: tuple[Claim, ...]
    shares: tuple[Estimate, ...]
    notes: tuple[str, ...]
    candidates: int = 1
    caveats: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    fingerprint: str = ""
    assumptions: tuple[str, ...] = ()
    clusters: int | None = None
    period: tuple[str, ...] = ()

    @property
    def sides(self) -> tuple[Certificate, Certificate]:
        """The certificates of ``upper`` and of ``lower``, each with half of the risk."""
        above, between = (round(self.examples * each.value) for each in self.shares[:2])
        ends = zip(
            (self.accept, self.reject),
            (self.upper, self.lower),
            (above, above + between),
            self.claims[::-1],
            strict=True,
        )
        accept, reject = (
            Certificate(
                goal=goal,
                status=self.status,
                confidence=(1 + self.confidence) / 2,
                guarantee="pac",
                candidates=self.candidates,
                prevalence=None,
                dtype=self.dtype,
                column=None,
                points=(Point(None, end, self.examples, None, alerts, None),),
                claims=(claim,),
                objective=(),
                assumptions=self.assumptions,
                notes=(f"one side of: {self.goal}",),
                advice=(),
                clusters=self.clusters,
                period=self.period,
            )
            for goal, end, alerts, claim in ends
        )
        return accept, reject

    @property
    def thresholds(self) -> tuple[float, float]:
        """The lower and the upper threshold."""
        if self.lower is None or self.upper is None:
            raise ValueError(f"There are no thresholds, the goal is {self.status}.")
        return self.lower, self.upper

    def check(
        self,
        scores: Any,
        labels: Any = None,
        *,
        groups: Any = None,
        clusters: Any = None,
        significance: float = 0.001,
    ) -> Check:
        """Compare new data with both sides, each with half of the ``significance``.

        Args:
            scores: New scores of the same model.
            labels: Their labels, if known by now: then both bounds are tested.
            groups: None: there are two thresholds for everyone.
            clusters: What each row belongs to; needed if the certificate is about clusters.
            significance: The chance of a false alarm in a check without drift.
        """
        from setpoint.certificates.drift import BROKEN, DRIFT, OK, UNCHECKED

        self.thresholds  # noqa: B018 (raises if there are none)
        above, below = (
            side.check(
                scores, labels, groups=groups, clusters=clusters, significance=significance / 2
            )
            for side in self.sides
        )
        both = (above.verdict, below.verdict)
        worst = next(verdict for verdict in (BROKEN, DRIFT, UNCHECKED, OK) if verdict in both)
        named = [
            replace(finding, name=f"{finding.name}, {name}")
            for name, side in ((ACCEPT, above), (REJECT, below))
            for finding in side.findings
        ]
        found = tuple(named)
        return replace(
            above, verdict=worst, goal=self.goal, significance=significance, findings=found
        )

    def monitor(
        self,
        false_alarm: float = 0.05,
        *,
        reference: Any = None,
        features: Sequence[str] = (),
        by: str = "day",
    ) -> Any:
        """Watch both sides after deployment, each with half of the false alarms.

        Ranks of scores and features are the same on both sides, and are tested once.

        Args:
            false_alarm: The chance of ever raising an alarm while nothing has changed.
            reference: See :meth:`Certificate.monitor`.
            features: The same.
            by: The same.

        Returns:
            A :class:`setpoint.monitoring.JointMonitor`, to be given new rows by ``update``.

        Raises:
            ValueError: The certificate is not certified, or one side decides nothing.
        """
        self.thresholds  # noqa: B018  raises if there are none
        accept, reject = self.sides
        first = accept.monitor(false_alarm / 2, reference=reference, features=features, by=by)
        second = reject.monitor(false_alarm / 2, watch=("rates", "alerts"), by=by)
        return HIGHER["JointMonitor"]()({ACCEPT: first, REJECT: second})

    def decide(self, scores: Any) -> NDArray[np.str_]:
        """``"accept"``, ``"review"`` or ``"reject"`` for each new score.

        Raises:
            ValueError: The certificate is not certified, or scores are not finite.
        """
        over, above = (np.asarray(exceeds(scores, t, self.dtype)) for t in self.thresholds)
        return np.where(above, ACCEPT, np.where(over, REVIEW, REJECT))

    def _headline(self) -> str:
        return f"{self.verdict}: {self.goal} with {share_text(self.confidence)} confidence"

    def _rows(self) -> TextRows:
        if self.upper is not None and self.lower is not None:
            yield ACCEPT, f"score > {numeral(self.upper)} ({self.dtype})"
            yield REJECT, f"score <= {numeral(self.lower)}"
            yield REVIEW, f"what is between: {self.reviews:,} of {self.examples:,} rows"
        if self.period:
            yield "measured", "from {} to {}".format(*self.period)
        yield from claim_rows(self.claims)
        sure = f"two-sided {share_text(self.confidence)} interval"
        for each in self.shares:
            value, low, high = map(share_text, (each.value, each.low, each.high))
            yield f"{each.name} share", f"{value} measured, between {low} and {high} ({sure})"
        yield from titled("notes", self.notes)
        yield from titled("assumes", self.assumptions)

    @classmethod
    def _checked(cls, given: dict[str, Any]) -> dict[str, Any]:
        need(given["dtype"] in SCORE_PRECISIONS, f"dtype is one of {', '.join(SCORE_PRECISIONS)}")
        ends = given["lower"], given["upper"]
        if given["status"] == CERTIFIED:
            need(
                all(type(end) is float and math.isfinite(end) for end in ends), "it has thresholds"
            )
            need(ends[0] <= ends[1], "lower is not above upper")
        else:
            need(ends == (None, None), "only a certified goal has thresholds")
        for name in ("accept", "reject"):
            goal_to_certify(given[name])
        need_label_names(given)
        need(isinstance(given["fingerprint"], str), "fingerprint is a text")
        need_clusters_and_period(given)
        return given


def certify_three_way(
    scores: Any,
    labels: Any,
    accept: Any,
    reject: Any,
    *,
    confidence: float = 0.95,
    candidates: int = 1,
    clusters: Any = None,
    times: Any = None,
    accept_drift: bool = False,
) -> ThreeWayCertificate:
    """Two thresholds with a proof on either side, and as few reviews between them as possible.

    Args:
        scores: One score per example; not those that trained or chose the model.
        labels: 0 or 1 for each.
        accept: A bound that holds for the decision ``score > upper``, such as
            ``precision >= 0.99`` or ``"fpr <= 0.1 %"``.
        reject: A bound that holds for ``score > lower``, such as ``npv >= 0.999`` or
            ``"recall >= 0.99"``.
        confidence: Of both bounds together.
        candidates: Among how many models this one was chosen by looking at the same data.
        clusters: What each row belongs to, as for :func:`certify`: both promises are then about a
            random row of a new cluster, and counts are of one row of each.
        times: When each row was measured: the certificate says from when to when, and rows that
            drift meanwhile are not certified.
        accept_drift: Certify rows that drift all the same, with a caveat that says so.

    Raises:
        CannotPromise: A bound is of a kind that cannot be proved at many thresholds at once.

    Examples:
        >>> import numpy as np
        >>> from setpoint.certificates import certify_three_way
        >>> random = np.random.default_rng(0)
        >>> y = random.random(20_000) < 0.2
        >>> s = random.normal(size=20_000) + 4 * y
        >>> found = certify_three_way(s, y, "precision >= 0.99", "npv >= 0.99")
        >>> found.status, found.reviews < 3000
        ('certified', True)
        >>> found.decide([9.0, 2.3, -3.0]).tolist()
        ['accept', 'review', 'reject']
    """
    delta = round(1 - share(confidence, "confidence", ends=False), 12)
    delta /= whole(candidates, "candidates", least=1)
    above, below = _inequality(accept, "accept"), _inequality(reject, "reject")
    sample = calibration_sample(scores, labels, None, ())
    end = sample.only_alerts()
    if end is not None:
        raise only_alerts(f"{above.source}` and `{below.source}", sample, (), end)
    when = None if times is None else times_of_rows(times, sample)
    sample = sample if clusters is None else by_cluster(sample, clusters)
    proofs = [_prove(each, sample, delta / 2) for each in (above, below)]
    rising = sample.decided_scores(())
    pair = _fewest_reviews(proofs[0].ranges, proofs[1].ranges, rising, sample.precision)
    drift = drift_caveat(sample, when, pair[1]) if pair and when is not None else ()
    if drift and not accept_drift:
        pair = None
    return _write(sample, (above, below), proofs, pair, drift, delta, confidence, candidates, when)


def _write(
    sample: CalibrationSample,
    sides: tuple[Inequality, Inequality],
    proofs: Sequence[Proof],
    pair: tuple[float, float] | None,
    drift: tuple[str, ...],
    delta: float,
    confidence: float,
    candidates: int,
    when: Any,
) -> ThreeWayCertificate:
    """The certificate of a pair of thresholds, or of none."""
    above, below = sides
    feasible = all(proof.feasible for proof in proofs)
    failed = tuple(note for proof in proofs if not proof.ranges for note in proof.notes)
    notes = drift if drift and not pair else failed if failed or pair else (_conflict(proofs),)
    counts = _decision_counts(sample, pair)
    useless = [f"it {name}s nobody" for name in (ACCEPT, REJECT) if not counts[name]]
    return ThreeWayCertificate(
        goal=f"accept with {above.source}, reject with {below.source}",
        status=CERTIFIED if pair else NOT_CERTIFIED if feasible else INFEASIBLE,
        confidence=float(confidence),
        accept=str(above.source),
        reject=str(below.source),
        upper=pair[1] if pair else None,
        lower=pair[0] if pair else None,
        dtype=sample.precision,
        examples=len(sample.scores),
        reviews=counts[REVIEW],
        claims=tuple(_claims(sample, pair, (below, above))),
        shares=tuple(_shares(sample, pair, counts, delta)) if pair else (),
        notes=notes,
        candidates=candidates,
        caveats=(*useless, *drift) if pair else (),
        fingerprint=sample.fingerprint,
        assumptions=tuple(assumptions(sides, sample, candidates)),
        clusters=sample.clusters,
        period=() if when is None else period_of(when),
    )


def _inequality(goal: Any, side: str) -> Inequality:
    """The one inequality of a side."""
    wanted = goal_to_certify(goal)
    every = inequalities(wanted.bounds, None)
    known = any(method.takes(every[0]) for method in PROOF_METHODS["pac"])
    if len(every) != 1 or not known or wanted.wheres:
        raise CannotPromise(
            f"{side}= is one bound for everyone on precision, npv, fpr, recall or coverage; got "
            f"`{wanted.text}`."
        )
    return every[0]


def _prove(inequality: Inequality, sample: CalibrationSample, delta: float) -> Proof:
    method = next(m for m in PROOF_METHODS["pac"] if m.takes(inequality))
    return method.prove([inequality], sample, delta)


def _conflict(proofs: Iterable[Proof]) -> str:
    """Where each side is proved, if these places do not go together."""
    where = "; ".join(note for proof in proofs for note in proof.notes)
    return (
        "no threshold to accept lies at or above one to reject, so nothing is left for review: "
        f"{where}. Swap the bounds, or loosen one"
    )


def _fewest_reviews(
    accept: Iterable[ThresholdRange],
    reject: Iterable[ThresholdRange],
    rising: NDArray[Any],
    precision: str,
) -> tuple[float, float] | None:
    """The proved thresholds ``lower <= upper`` with the fewest scores between them."""
    best: tuple[int, float, float] | None = None
    for above, below in product(accept, reject):
        upper_end = max(above.low, min(below.high, above.high))  # the nearest to the other range
        lower_end = min(below.high, upper_end)
        if lower_end < below.low or not math.isfinite(upper_end) or not math.isfinite(lower_end):
            continue
        first, last = np.searchsorted(rising, [lower_end, upper_end], "right")
        reviews = int(last - first)
        if best is None or reviews < best[0]:
            best = reviews, lower_end, upper_end
    if best is None:
        return None
    return halfway(best[1], rising, precision), halfway(best[2], rising, precision)


def _decision_counts(sample: CalibrationSample, pair: tuple[float, float] | None) -> dict[str, int]:
    """How many calibration rows get each decision."""
    if pair is None:
        return {ACCEPT: 0, REVIEW: 0, REJECT: 0}
    rejected, kept = (int((sample.scores <= end).sum()) for end in pair)
    return {ACCEPT: len(sample.scores) - kept, REVIEW: kept - rejected, REJECT: rejected}


def _claims(
    sample: CalibrationSample, pair: tuple[float, float] | None, sides: tuple[Inequality, ...]
) -> Iterable[Claim]:
    """What was measured of each bound at its threshold; what is proved is the bound itself."""
    for i, each in enumerate(sides):
        if pair is None:
            yield Claim(str(each.source), None, None, "")
        else:
            value = float(values_at(each.source.expression, sample, pair[i]))
            measured = value if math.isfinite(value) else None
            yield Claim(str(each.source), measured, each.source.level, "")


def _shares(
    sample: CalibrationSample, pair: tuple[float, float], counts: dict[str, int], delta: float
) -> Iterable[Estimate]:
    """The share of each decision, with a two-sided interval that holds for chosen thresholds."""
    n = sum(counts.values())
    (least, most), (low, high) = (_share_above(sample, end, delta / 2) for end in pair)
    below, above = (_share_above(sample, end, delta / 4) for end in pair)
    ends = {
        ACCEPT: (low, high),
        REVIEW: (max(0.0, below[0] - above[1]), below[1] - above[0]),
        REJECT: (1 - most, 1 - least),
    }
    for name, (bottom, top) in ends.items():
        yield Estimate(name, counts[name] / n, bottom, top)


def _share_above(sample: CalibrationSample, end: float, tail: float) -> tuple[float, float]:
    """Bounds of the share of rows above a threshold that was chosen by looking at them."""
    seen = evidence(sample, Subset((), EVERYONE), ThresholdRule(end, chosen=True))
    tail /= seen.tests
    return float(lower(seen.low, seen.n, tail)), float(upper(seen.high, seen.n, tail))

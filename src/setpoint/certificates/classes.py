"""The shares that a bound on classes is about, and the counts behind them.

At fixed shifts whether an example counts in a rate of a class is one binomial trial.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from setpoint._checks import share as check_share
from setpoint.axes.arrays import Floats, to_numpy
from setpoint.axes.class_choice import best_shifts, choose_classes
from setpoint.axes.class_data import decide, read_data
from setpoint.axes.confusion import hard_tables
from setpoint.batch import check_scores
from setpoint.certificates.drift import BROKEN, DRIFT, OK, Alerts, Check, Finding, alert_finding
from setpoint.certificates.records import CERTIFIED, INFEASIBLE, NOT_CERTIFIED, Claim
from setpoint.certificates.regions import is_plain_share
from setpoint.certificates.storage import checksum, json_object, list_of, need, record
from setpoint.certificates.tails import allowed, at_least, at_most, lower, needed, upper
from setpoint.certificates.text import WIDTH, columns, percent, share
from setpoint.problems import Infeasible, Problem
from setpoint.rates import Across, Bound, numeral, quote


@dataclass(frozen=True)
class Counted:
    """One share that a bound limits: ``count`` of ``total``."""

    bound: Bound
    whose: str
    count: int
    total: int

    def __str__(self) -> str:
        return f"{self.bound.expression}{self.whose} {self.bound.sense} {numeral(self.bound.level)}"

    @property
    def measured(self) -> float | None:
        """The share itself; None if there is no example of it."""
        return self.count / self.total if self.total else None

    def proved(self, tail: float) -> float:
        """What the share is at most, or at least, but for a chance of ``tail``."""
        return float((upper if self.bound.sense == "<=" else lower)(self.count, self.total, tail))

    def holds(self, value: float) -> bool:
        """Whether a share of ``value`` is within the bound, and there are examples of it."""
        level = self.bound.level
        return self.total > 0 and (value <= level if self.bound.sense == "<=" else value >= level)

    def provable(self, tail: float) -> float | None:
        """The worst share of so many examples that proves the bound; None if not even the best."""
        at_most = self.bound.sense == "<="
        wrong = allowed(self.total, self.bound.level if at_most else 1 - self.bound.level, tail)
        if wrong < 0 or not self.total:
            return None
        return (wrong if at_most else self.total - wrong) / self.total

    def chance(self) -> float:
        """How likely counts are as bad as these if the bound is true."""
        if not self.total:
            return 1.0
        side = at_least if self.bound.sense == "<=" else at_most
        return float(side(self.count, self.total, self.bound.level))


def counted(
    problem: Problem,
    scores: Any,
    labels: Any,
    shifts: Any,
    *,
    classes: Sequence[Any],
    groups: Any = None,
) -> dict[Bound, list[Counted]]:
    """For every bound that can be proved, the shares it limits, on these examples."""
    data = read_data(problem, scores, labels, None, groups, classes)
    tables = hard_tables(data, data.scores - np.asarray(shifts, np.float64), frozenset())
    return {
        target: list(_counted(target, tables, data.names))
        for target in problem.subject_to
        if isinstance(target, Bound) and is_provable(target)
    }


def is_provable(bound: Bound) -> bool:
    """Whether a bound is one on a share of examples, or on that of every class."""
    expression = bound.expression
    if isinstance(expression, Across):
        worst = {"lowest": ">=", "highest": "<="}.get(expression.kind)
        return bound.sense == worst and is_plain_share(expression.inner)
    return is_plain_share(expression)


def _counted(bound: Bound, tables: Any, names: tuple[Any, ...]) -> Iterator[Counted]:
    expression = bound.expression
    for rate in expression.rates():
        table, whose = tables[rate.where], [""]
        if isinstance(expression, Across):
            table, whose = table.classes.each(), [f" of {quote(str(name))}" for name in names]
        elif rate.classes:
            table = table.classes.against_rest(rate.classes)
        counts, sizes = (np.atleast_1d(x.of(table)) for x in (rate.numerator, rate.denominator))
        for text, count, n in zip(whose, counts, sizes, strict=True):
            yield Counted(Bound(rate, bound.sense, bound.level), text, int(count), int(n))


# Does the promise about several classes still hold on new data?
#
# The shifts are fixed, so all counts are binomial and every test is exact. With labels each
# promised share is tested; without, how often each class is predicted is compared with the
# calibration data.


COUNTED = "predictions of each class"


def check_classes(
    certificate: ClassCertificate, scores: Any, labels: Any, groups: Any, significance: float
) -> Check:
    """See :meth:`ClassCertificate.check`."""
    level = check_share(significance, "significance", ends=False)
    if certificate.exit_code:
        why = certificate.notes[0]
        raise ValueError(f"There is no promise to check, the goal is {certificate.status}: {why}.")
    found = _scores(certificate, scores)
    promises: list[Finding] = []
    if labels is not None:
        promises = _promises(certificate, found, labels, groups, level)
    decided = np.bincount(decide(found, certificate.shifts), minlength=len(certificate.classes))
    pairs = zip(certificate.classes, certificate.predicted, decided.tolist(), strict=True)
    shares = [
        alert_finding(
            Alerts(f"predicted {name!r}", (before, certificate.examples), (now, len(found))),
            level / len(decided),
            alarms=not promises,  # where a promise is tested, it is what counts
        )
        for name, before, now in pairs
    ]
    verdict = DRIFT if any(finding.alarm for finding in shares) else OK
    verdict = BROKEN if any(finding.alarm for finding in promises) else verdict
    told = (certificate.goal, len(found), bool(promises), level, (*promises, *shares))
    return Check(verdict, *told, counted=COUNTED)


def _scores(certificate: ClassCertificate, scores: Any) -> Any:
    found = to_numpy(scores, "scores")
    if found.ndim != 2 or found.shape[1] != len(certificate.classes):
        raise ValueError(
            f"The certificate is about {len(certificate.classes)} classes: scores are "
            f"[n, {len(certificate.classes)}]; got the shape {found.shape}."
        )
    check_scores(found)
    return found


def _promises(
    certificate: ClassCertificate, scores: Any, labels: Any, groups: Any, level: float
) -> list[Finding]:
    """A test of every promised share; none if nothing was promised."""
    if not certificate.certified:
        return []
    problem = Problem.parse(certificate.goal)
    given = {"classes": certificate.classes, "groups": groups}
    found = counted(problem, scores, labels, certificate.shifts, **given)
    shares = [one for each in found.values() for one in each]
    return [
        Finding(
            str(one), "promised for all data", one.measured, chance, chance < level / len(shares)
        )
        for one in shares
        for chance in (one.chance(),)
    ]


# The shifts of several classes with what is promised about them, as text and as JSON.


CLASSES_KIND, CLASSES_VERSION = "setpoint certificate of classes", 2
NO_CERTIFICATE = "no certificate"
STATUSES = (CERTIFIED, NOT_CERTIFIED, INFEASIBLE, NO_CERTIFICATE)
ASSUMED = (
    "The rows are independent draws from what the shifts will meet: no copies, no drift.",
    "Neither the model nor the shifts were chosen by looking at these rows.",
    "Decisions are the highest of score - shift, of equal ones the first.",
)


@dataclass(frozen=True)
class ClassCertificate:
    """What is promised of a classifier of several classes; see :func:`certify_shifts`."""

    goal: str
    status: str
    """``"certified"``, ``"not certified"``, ``"infeasible"`` (too few examples for any proof), or
    ``"no certificate"``: nothing can be promised."""
    confidence: float
    classes: tuple[str, ...]
    shifts: tuple[float, ...]
    """What is subtracted from the score of each class before the highest decides."""
    predicted: tuple[int, ...]
    """How many of the examples were decided to be each class."""
    right: int
    """How many of the examples are decided rightly."""
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]

    @property
    def examples(self) -> int:
        """How many examples it rests on."""
        return sum(self.predicted)

    @property
    def certified(self) -> bool:
        """Whether every bound of the goal is proved."""
        return self.status == CERTIFIED

    @property
    def exit_code(self) -> int:
        """1 if a promise was wanted and is not proved, else 0."""
        return 1 if self.status in (NOT_CERTIFIED, INFEASIBLE) else 0

    def check(
        self, scores: Any, labels: Any = None, *, groups: Any = None, significance: float = 0.001
    ) -> Check:
        """Compare new data with the promise: does it hold, is every class predicted as often?

        Args:
            scores: New scores of the same model, ``[n, K]``.
            labels: The column of each example's class, if known by now: then the promised rates
                themselves are tested.
            groups: A column of group values, or a dict of columns, for bounds about slices.
            significance: How often to cry wolf: the chance of an alarm in a check without drift.

        Returns:
            A verdict in words, with its numbers and an exit code for cron.
        """
        return check_classes(self, scores, labels, groups, significance)

    def __bool__(self) -> bool:
        return self.certified

    def to_json(self) -> str:
        """The certificate as JSON, with a checksum."""
        body = {"kind": CLASSES_KIND, "version": CLASSES_VERSION, **asdict(self)}
        body = json.loads(json.dumps(body, allow_nan=False))
        return json.dumps({**body, "checksum": checksum(body)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> ClassCertificate:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        body = json_object(text)
        found = body.pop("checksum", None)
        need(found == checksum(body), "its checksum does not fit: it was changed")
        need(body.pop("kind", None) == CLASSES_KIND, f"its kind is not {CLASSES_KIND!r}")
        version = body.pop("version", None)
        need(
            version == CLASSES_VERSION and version is not True,
            f"its version is not {CLASSES_VERSION}",
        )
        names = {field.name for field in fields(cls)}
        need(set(body) == names, f"it has fields {sorted(set(body) ^ names)} too many or too few")
        body["claims"] = tuple(record(Claim, entry, "claims") for entry in list_of(body, "claims"))
        for name in ("classes", "shifts", "predicted", "notes"):
            body[name] = tuple(list_of(body, name))
        _check_fields(body)
        return cls(**body)

    def __str__(self) -> str:
        sure = f"with {percent(self.confidence)} confidence"
        head = f"{self.status}: {self.goal} {sure if self.status != NO_CERTIFICATE else ''}".strip()
        return "\n".join([*textwrap.wrap(head, WIDTH), *columns(_rows(self))])


def _rows(c: ClassCertificate) -> Iterator[tuple[str, str]]:
    shifts = (f"{name!r}: {numeral(t)}" for name, t in zip(c.classes, c.shifts, strict=True))
    yield "shifts", ", ".join(shifts)
    yield "held-out rows", f"{c.right:,} of {c.examples:,} decided rightly"
    for claim in c.claims:
        side = "at most" if "<=" in claim.bound else "at least"
        if claim.measured is not None and claim.proved is not None:
            text = f"{share(claim.measured)} measured, {side} {share(claim.proved)} proved"
            yield claim.bound, f"{text}; {claim.counts}"
        else:
            yield claim.bound, "no example to measure it by"
    for i, line in enumerate(c.notes):
        yield ("" if i else "notes"), line
    for i, line in enumerate(ASSUMED if c.certified else ()):
        yield ("" if i else "assumes"), line


def _check_fields(body: dict[str, Any]) -> None:
    for name in ("classes", "notes"):
        need(all(isinstance(x, str) for x in body[name]), f"{name} are texts")
    numbers = [x for x in body["shifts"] if isinstance(x, float) and math.isfinite(x)]
    need(len(numbers) == len(body["shifts"]), "shifts are numbers")
    need(len(numbers) == len(set(body["classes"])) >= 2, "every class has a name and a shift")
    need(body["status"] in STATUSES, f"status is one of {', '.join(STATUSES)}")
    sure = body["confidence"]
    need(isinstance(sure, float) and 0 < sure < 1, "confidence is between 0 and 1")
    counts = (body["right"], *body["predicted"])
    need(all(type(x) is int and x >= 0 for x in counts), "counts are counts")
    need(len(counts) == len(numbers) + 1, "every class was predicted so often")
    need(counts[0] <= sum(counts[1:]), "no more are right than there are")
    need(isinstance(body["goal"], str), "goal is a sentence")
    need(Problem.parse(body["goal"]).kind == "classes", "its goal is not about classes")


# What is proved of shifts that were chosen on other data.
#
# The shifts are fixed, so every share is binomial, and Clopper and Pearson's limit is exact. A
# certificate needs every bound proved, so it is wrong with
# probability ``1 - confidence`` at most, however many bounds (or classes) there are.


EXACT = "an exact value cannot be promised on new data, a bound (<=, >=) can"
UNPROVABLE = (
    "only bounds on a rate of one class (or of a set), on error or accuracy, lowest(...) >= and "
    "highest(...) <= are proved for several classes"
)


def certify_shifts(
    scores: Any,
    labels: Any,
    problem: Problem,
    shifts: Any,
    *,
    classes: Sequence[Any],
    confidence: float = 0.95,
    groups: Any = None,
) -> ClassCertificate:
    """Prove the bounds of a problem of classes at given shifts, or say why not.

    Args:
        scores: ``[n, K]``, of examples that neither trained the model nor chose the shifts.
        labels: The column of each example's class.
        problem: What was wanted; its bounds are to be proved.
        shifts: What is subtracted from the scores, ``[K]``.
        classes: What the columns are called.
        confidence: Of the certificate.
        groups: For bounds about slices.

    Returns:
        ``certified`` if every bound is proved, ``not certified`` if one is not, ``infeasible`` if
        there are too few examples for any proof of it, ``no certificate`` if there is no bound, or
        one that nobody can prove here.
    """
    tail = 1 - check_share(confidence, "confidence", ends=False)
    found = counted(problem, scores, labels, shifts, classes=classes, groups=groups)
    shares = [one for each in found.values() for one in each]
    decided, truth = decide(to_numpy(scores, "scores"), shifts), to_numpy(labels, "labels")
    unsaid = unprovable(problem)
    failed = [one for one in shares if not one.holds(one.proved(tail))]
    status = NOT_CERTIFIED if failed else CERTIFIED
    status = INFEASIBLE if any(one.provable(tail) is None for one in failed) else status
    return ClassCertificate(
        goal=str(problem),
        status=NO_CERTIFICATE if unsaid else status,
        confidence=float(confidence),
        classes=tuple(map(str, classes)),
        shifts=tuple(np.asarray(shifts, np.float64).tolist()),
        predicted=tuple(np.bincount(decided, minlength=len(classes)).tolist()),
        right=int((decided == truth.reshape(-1)).sum()),
        claims=tuple(
            Claim(str(one), one.measured, one.proved(tail), f"{one.count:,} of {one.total:,}")
            for one in shares
        ),
        notes=tuple(unsaid) or tuple(_why_not(one, tail) for one in failed),
    )


def unprovable(problem: Problem) -> list[str]:
    """Why some of what is asked for cannot be promised, whatever the data; nothing if it can."""
    if not problem.subject_to:
        return ["The goal has no bound, so there is nothing to promise."]
    return [
        f"`{target}` is not promised: {UNPROVABLE if isinstance(target, Bound) else EXACT}."
        for target in problem.subject_to
        if not (isinstance(target, Bound) and is_provable(target))
    ]


def _why_not(one: Counted, tail: float) -> str:
    """What is lacking, in numbers."""
    if one.provable(tail) is None:
        most = one.bound.level if one.bound.sense == "<=" else 1 - one.bound.level
        enough = needed(most, tail)
        why = "no number of examples can" if enough is None else f"it takes {enough:,} at least"
        return f"`{one}` cannot be proved by {one.total:,} examples: {why}"
    side = "at most" if one.bound.sense == "<=" else "at least"
    return f"`{one}` is not proved: {side} {one.proved(tail):.4g} is"


# Shifts with room for a proof on other data.
#
# At shifts that just meet a bound where they were chosen, hardly anybody can prove it elsewhere. So
# more is asked: as much as these rows would themselves take for a proof, with confidence to spare.


ROUNDS = 4
"""How often more is asked: how many are predicted, and so what a proof takes, moves with it."""
SPARES = (50, 5, 1)
"""How many times less risk the shifts are chosen for than they are proved with, as far as there are
such shifts. Both samples err: where they are of one size, and 95 % are asked for, 50 times less
(3.1 standard errors of room instead of 1.6) are proved in about 85 of 100 cases, 5 times in 69."""


def shifts_to_prove(
    problem: Problem,
    scores: Any,
    labels: Any,
    *,
    confidence: float,
    groups: Any = None,
    classes: Sequence[Any],
) -> tuple[Floats, str]:
    """As :func:`best_shifts`, with room for a proof of the bounds if there are such shifts."""
    risk = 1 - check_share(confidence, "confidence", ends=False)
    given = {"groups": groups, "classes": classes}
    best = best_shifts(problem, scores, labels, **given)
    if best[1] or unprovable(problem):
        return best
    for tail in (risk / spare for spare in SPARES):
        found = _with_room(problem, scores, labels, best[0], tail, given)
        if found is not None:
            return found, ""
    return best


def _with_room(
    problem: Problem, scores: Any, labels: Any, shifts: Floats, tail: float, given: dict[str, Any]
) -> Floats | None:
    """Shifts whose bounds these rows would prove; None if none are found."""
    asked: dict[Bound, float] = {}
    for _ in range(ROUNDS):
        shares = counted(problem, scores, labels, shifts, **given)
        needs = {bound: _needed(bound, own, tail) for bound, own in shares.items()}
        if all(one.holds(one.proved(tail)) for own in shares.values() for one in own):
            return shifts
        levels = {bound: level for bound, level in needs.items() if level is not None}
        if len(levels) < len(needs):
            return None
        asked = {bound: _stricter(bound, asked, level) for bound, level in levels.items()}
        try:
            more = _asking(problem, asked)
            choice = choose_classes(more, scores, labels, None, given["groups"], given["classes"])
        except Infeasible:
            return None
        shifts = np.asarray(choice.thresholds)
    return None


def _needed(bound: Bound, shares: list[Counted], tail: float) -> float | None:
    """The level at which all the shares of a bound would be proved; None: there is none."""
    levels = [one.provable(tail) for one in shares]
    known = [level for level in levels if level is not None]
    if len(known) < len(levels):
        return None
    return min(known) if bound.sense == "<=" else max(known)


def _stricter(bound: Bound, before: Mapping[Bound, float], level: float) -> float:
    pick = min if bound.sense == "<=" else max
    return pick(before.get(bound, bound.level), level)


def _asking(problem: Problem, levels: Mapping[Bound, float]) -> Problem:
    """The problem with other levels of its bounds."""
    bounds = [Bound(b.expression, b.sense, level) for b, level in levels.items()]
    goal: dict[str, Any] = {"maximize" if problem.maximize else "minimize": problem.objective}
    return Problem(**goal, subject_to=bounds)

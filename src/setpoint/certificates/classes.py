"""Certificates for several classes, at shifts that were fixed on other data.

A classifier of ``K`` classes decides for the highest of ``score - shift``. The shifts are fixed, so
each share that a bound limits has an exact test (:mod:`setpoint.certificates.class_bounds`). A
certificate needs every bound proved, so it is wrong with probability ``1 - confidence`` at most,
however many bounds (or classes) there are.

Shifts that just meet a bound where they were chosen can hardly be proved on other rows. So
:func:`shifts_to_prove` asks for more: as much as the selection rows would themselves take for a
proof, with confidence to spare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import is_number
from setpoint._checks import share as check_share
from setpoint._extras import HIGHER
from setpoint.axes.arrays import Floats, to_numpy
from setpoint.axes.class_choice import best_shifts, choose_classes
from setpoint.axes.class_data import decide
from setpoint.batch import ScoredExamples, check_length, check_scores
from setpoint.certificates.certificate import Claim, Record
from setpoint.certificates.class_bounds import ClassShare, class_shares, is_provable
from setpoint.certificates.clusters import cluster_codes, is_missing
from setpoint.certificates.proofs import CERTIFIED, INFEASIBLE, NOT_CERTIFIED
from setpoint.certificates.regions import weights
from setpoint.certificates.sample import read_column
from setpoint.certificates.storage import need, need_clusters_and_period
from setpoint.certificates.text import TextRows, claim_rows, share_text, titled
from setpoint.certificates.times import period_of, read_times
from setpoint.problems import GoalLike, Infeasible, Problem, as_problem
from setpoint.rates import Bound, numeral

if TYPE_CHECKING:
    from setpoint.certificates.drift import Check, Finding

NO_CERTIFICATE = "no certificate"
ASSUMED = (
    "The rows are independent draws from what the shifts will meet: no copies, no drift.",
    "Neither the model nor the shifts were chosen by looking at these rows.",
    "Decisions are the highest of score - shift, of equal ones the first.",
)
_EXACT = "an exact value cannot be proved for new data, a bound (<=, >=) can"
_OTHER = (
    "only bounds on a rate of one class (or of a set), on error or accuracy, lowest(...) >=, "
    "highest(...) <= and cost([...]) <= are proved for several classes"
)
_TIGHTENING_ROUNDS = 4
"""How often more is asked: how many are predicted, and so what a proof takes, moves with it."""
_SPARES = (50, 5, 1)
"""How many times less risk the shifts are chosen for than they are proved with, as far as there are
such shifts. Both samples err: where they are of one size, and 95 % are asked for, 50 times less
(3.1 standard errors of room instead of 1.6) are proved in about 85 of 100 cases, 5 times in 69."""


@dataclass(frozen=True)
class ClassCertificate(Record):
    """What is proved of a classifier of several classes; see :func:`certify_shifts`.

    Examples:
        >>> import numpy as np
        >>> from setpoint import Problem
        >>> from setpoint.certificates import certify_shifts
        >>> labels = np.arange(900) % 3
        >>> scores = np.random.default_rng(0).normal(size=(900, 3)) + 3 * np.eye(3)[labels]
        >>> goal = Problem.parse("maximize accuracy subject to recall of 0 >= 0.9")
        >>> certify_shifts(scores, labels, goal, np.zeros(3), classes=[0, 1, 2]).certified
        True
    """

    kind = "setpoint certificate of classes"
    version = 3
    added = ("fingerprint", "clusters")
    statuses = (*Record.statuses, NO_CERTIFICATE)

    goal: str
    status: str
    """``"certified"``, ``"not certified"``, ``"infeasible"`` (too few examples for any proof), or
    ``"no certificate"``: there is nothing that can be proved."""
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
    caveats: tuple[str, ...] = ()
    fingerprint: str = ""
    """Of the table that the rows come from, if it is known."""
    clusters: int | None = None
    """How many clusters the rows come from, if each of them counts once."""

    @property
    def examples(self) -> int:
        """How many examples it rests on."""
        return sum(self.predicted)

    @property
    def exit_code(self) -> int:
        """1 if a proof was wanted and not found, or has a caveat; else 0."""
        return 1 if self.caveats or self.status in (NOT_CERTIFIED, INFEASIBLE) else 0

    def decide(self, scores: Any) -> NDArray[np.int64]:
        """The column of the class that is decided for, ``argmax(score - shift)``, ``[n]``.

        Args:
            scores: New scores of the same model, ``[n, K]``.
        """
        return decide(self._read_scores(scores), self.shifts)

    def monitor(self, false_alarm: float = 0.05, *, by: str = "day") -> Any:
        """Watch every certified bound after deployment, each with an equal part of false alarms.

        Args:
            false_alarm: The chance of ever raising an alarm while nothing has changed.
            by: See :meth:`Certificate.monitor`.

        Returns:
            A :class:`setpoint.monitoring.ClassMonitor`, to be given new rows by ``update``.

        Raises:
            ValueError: The certificate is not certified, or proves the mean of a cost matrix.
        """
        return HIGHER["ClassMonitor"]().of(self, false_alarm, by)

    def check(
        self,
        scores: Any,
        labels: Any = None,
        *,
        groups: Any = None,
        clusters: Any = None,
        significance: float = 0.001,
    ) -> Check:
        """Compare new data with the certificate: do bounds hold, is each class predicted as often?

        Args:
            scores: New scores of the same model, ``[n, K]``.
            labels: The column of each example's class, NaN or -1 where it is not known by now: then
                the certified rates themselves are tested.
            groups: A column of group values, or a dict of columns, for bounds about slices.
            clusters: What each row belongs to; needed if the certificate is about clusters. One row
                of each counts, drawn by lot.
            significance: The chance of a false alarm in a check without drift.

        Returns:
            A verdict in words, with its numbers and an exit code for cron.
        """
        from setpoint.certificates.drift import compare_shares, verdict_on

        level = check_share(significance, "significance", ends=False)
        if self.status in (NOT_CERTIFIED, INFEASIBLE):
            why = self.notes[0]
            raise ValueError(f"There is no certificate to check, the goal is {self.status}: {why}.")
        if self.clusters is not None and clusters is None:
            raise ValueError("The certificate is about a row of each cluster: pass clusters=.")
        found, truth = self._read_scores(scores), None
        if labels is not None:
            truth = read_class_labels(labels, found[:, 0], self.classes)
        if clusters is not None:
            rows = one_of_each(clusters, found[:, 0])
            found, truth, groups = found[rows], _part(truth, rows), _part(groups, rows)
        tests: list[Finding] = []
        if truth is not None and self.certified:
            tests = self._tests(found, truth, groups, level)
        decided = np.bincount(decide(found, self.shifts), minlength=len(self.classes))
        shares = [
            compare_shares(
                f"predicted {name!r}",
                (before, self.examples),
                (now, len(found)),
                level / len(decided),
                alarms=not tests,  # where a bound is tested, that is what counts
            )
            for name, before, now in zip(
                self.classes, self.predicted, decided.tolist(), strict=True
            )
        ]
        counted = "predictions of each class"
        return verdict_on(self.goal, len(found), bool(tests), level, tests, shares, counted)

    def _read_scores(self, scores: Any) -> Any:
        found = to_numpy(scores, "scores")
        if found.ndim != 2 or found.shape[1] != len(self.classes):
            raise ValueError(
                f"The certificate is about {len(self.classes)} classes: scores are "
                f"[n, {len(self.classes)}]; got the shape {found.shape}."
            )
        check_scores(found)
        return found

    def _tests(self, scores: Any, labels: Any, groups: Any, level: float) -> list[Finding]:
        """A test of every certified share, on the rows that have a label."""
        from setpoint.certificates.drift import Finding

        known = np.flatnonzero(~np.isnan(labels))
        if not len(known):
            return []
        scores, labels, groups = scores[known], labels[known].astype(int), _part(groups, known)
        given = {"classes": self.classes, "groups": groups}
        shares = class_shares(Problem.parse(self.goal), scores, labels, self.shifts, **given)
        every = [share for own in shares.values() for share in own]
        tail = level / len(every)
        chances = [share.chance() for share in every]
        return [
            Finding(str(share), "certified for all data", share.measured, chance, chance < tail)
            for share, chance in zip(every, chances, strict=True)
        ]

    def _headline(self) -> str:
        sure = f" with {share_text(self.confidence)} confidence"
        return f"{self.verdict}: {self.goal}{'' if self.status == NO_CERTIFICATE else sure}"

    def _rows(self) -> TextRows:
        pairs = zip(self.classes, self.shifts, strict=True)
        yield "shifts", ", ".join(f"{name!r}: {numeral(shift)}" for name, shift in pairs)
        yield "held-out rows", f"{self.right:,} of {self.examples:,} decided rightly"
        yield from claim_rows(self.claims)
        yield from titled("notes", self.notes)
        yield from titled("assumes", ASSUMED if self.certified else ())

    @classmethod
    def _checked(cls, given: dict[str, Any]) -> dict[str, Any]:
        classes, shifts = given["classes"], given["shifts"]
        need(all(isinstance(shift, float) for shift in shifts), "shifts are numbers")
        need(len(shifts) == len(set(classes)) >= 2, "every class has a name and a shift")
        predicted, right = given["predicted"], given["right"]
        need(len(predicted) == len(shifts), "every class was predicted so often")
        need(type(right) is int and right >= 0, "right is a count")
        need(right <= sum(predicted), "no more are right than there are")
        need(_is_about_classes(Problem.parse(given["goal"])), "its goal is not about classes")
        need(isinstance(given["fingerprint"], str), "fingerprint is a text")
        need_clusters_and_period({**given, "period": ()})
        return given


def _is_about_classes(problem: Problem) -> bool:
    """Whether a problem has a class in it, or counts nothing but right and wrong decisions."""
    parts = [problem.objective, *(target.expression for target in problem.subject_to)]
    sides = [side for part in parts for rate in part.rates() for side in weights(rate)]
    return problem.kind == "classes" or all(tp == tn and fp == fn for tp, fp, fn, tn in sides)


def certify_shifts(
    scores: Any,
    labels: Any,
    problem: GoalLike,
    shifts: Any,
    *,
    classes: Sequence[Any],
    confidence: float = 0.95,
    groups: Any = None,
    clusters: Any = None,
    times: Any = None,
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
        clusters: What each row belongs to: one row of each cluster counts, drawn by lot.
        times: When each row was measured, for the notes.

    Returns:
        ``certified`` if every bound is proved, ``not certified`` if one is not, ``infeasible`` if
        there are too few examples for any proof of it, ``no certificate`` if there is no bound, or
        one of a kind that cannot be proved here.

    Examples:
        >>> random = np.random.default_rng(0)
        >>> labels = random.integers(0, 3, 900)
        >>> scores = random.normal(size=(900, 3)) + 3 * np.eye(3)[labels]
        >>> goal = 'maximize accuracy subject to recall of "cat" >= 0.9'
        >>> certify_shifts(scores, labels, goal, np.zeros(3), classes=["cat", "dog", "bird"]).status
        'certified'
    """
    if not isinstance(problem, Problem):
        problem = as_problem(problem, "certify_shifts")
    tail = 1 - check_share(confidence, "confidence", ends=False)
    about: list[str] = []
    count = None
    shifts = _read_shifts(shifts, len(classes))
    place = np.zeros(len(to_numpy(scores, "scores")))
    if np.asarray(labels).dtype.kind in "OUS":  # names of classes are not their columns
        read_class_labels(labels, place, tuple(map(str, classes)))
    if times is not None:
        about.append("measured from {} to {}".format(*period_of(read_times(times, place))))
    if clusters is not None:
        rows = one_of_each(clusters, place)
        scores, labels = (to_numpy(given, "scores and labels")[rows] for given in (scores, labels))
        groups, count = _part(groups, rows), len(rows)
        about.append(f"about a row of a new cluster: one of each of {len(rows):,} counts")
    found = class_shares(problem, scores, labels, shifts, classes=classes, groups=groups)
    shares = [share for own in found.values() for share in own]
    together = tail / max(len(shares), 1)  # what is displayed holds for all shares at once
    decided, truth = decide(to_numpy(scores, "scores"), shifts), to_numpy(labels, "labels")
    unprovable = why_unprovable(problem)
    failed = [share for share in shares if not share.is_proved(tail)]
    return ClassCertificate(
        goal=str(problem),
        status=NO_CERTIFICATE if unprovable else _status(failed, tail),
        confidence=float(confidence),
        classes=tuple(map(str, classes)),
        shifts=tuple(shifts.tolist()),
        predicted=tuple(np.bincount(decided, minlength=len(classes)).tolist()),
        right=int((decided == truth.reshape(-1)).sum()),
        claims=tuple(
            Claim(str(one), one.measured, one.displayed(together, sure=not failed), one.counts)
            for one in shares
        ),
        notes=(*(unprovable or [share.why_not(tail, together) for share in failed]), *about),
        clusters=count,
    )


def _status(failed: Sequence[ClassShare], tail: float) -> str:
    """What is said of a certificate by the shares that are not proved."""
    if any(share.provable(tail) is None for share in failed):
        return INFEASIBLE
    return NOT_CERTIFIED if failed else CERTIFIED


def _part(columns: Any, rows: NDArray[np.intp]) -> Any:
    """Some of the rows of a column, or of each column of a dict; None stays."""
    if isinstance(columns, Mapping):
        return {name: _part(column, rows) for name, column in columns.items()}
    return None if columns is None else np.asarray(columns)[rows]


def read_class_labels(labels: Any, rows: NDArray[Any], classes: Sequence[str]) -> Floats:
    """The column of each row's class, NaN where it is not known (None, NaN, -1).

    Raises:
        ValueError: There is not one for each of ``rows``, or one is no column.
    """
    given = read_column(labels, rows, "labels")
    if given.dtype.kind in "biuf":
        found = given.astype(float)
        missing = np.isnan(found)
    else:
        found = np.array([each if is_number(each) else np.nan for each in given], float)
        missing = np.array([is_missing(each) for each in given.tolist()], bool)
    missing |= found == -1
    wrong = ~missing & ~np.isin(found, np.arange(len(classes)))
    if wrong.any():
        row = int(np.argmax(wrong))
        name = given[row].item() if hasattr(given[row], "item") else given[row]
        way = f": {name!r} is column {classes.index(name)}" if name in classes else ""
        raise ValueError(
            f"Labels are columns of scores, from 0 to {len(classes) - 1}, or NaN; got "
            f"{name!r:.40} in row {row}{way}."
        )
    return np.where(missing, np.nan, found)


def _read_shifts(shifts: Any, classes: int) -> Floats:
    """One finite number for each class."""
    found = to_numpy(shifts, "shifts")
    if found.shape != (classes,) or not np.isfinite(found).all():
        raise ValueError(
            f"shifts must be a finite number for each of the {classes} classes; got "
            f"{found.tolist()!r:.80}."
        )
    return found.astype(np.float64)


def one_of_each(clusters: Any, rows: NDArray[Any]) -> NDArray[np.intp]:
    """A row of each cluster, drawn by lot; there is one for each of ``rows``."""
    codes = cluster_codes(clusters)
    check_length(codes, rows, "clusters")
    lots = np.random.default_rng(0).permutation(len(codes))
    return np.sort(lots[np.unique(codes[lots], return_index=True)[1]])


def why_unprovable(problem: Problem) -> list[str]:
    """Why some of what is asked for cannot be proved, whatever the data; empty if it can."""
    if not problem.subject_to:
        return ["The goal has no bound, so there is nothing to certify."]
    return [
        f"`{target}` is not certified: {_OTHER if isinstance(target, Bound) else _EXACT}."
        for target in problem.subject_to
        if not (isinstance(target, Bound) and is_provable(target))
    ]


def shifts_to_prove(
    problem: GoalLike,
    scores: Any,
    labels: Any,
    *,
    confidence: float,
    groups: Any = None,
    classes: Sequence[Any],
) -> tuple[Floats, str]:
    """As :func:`best_shifts`, with room for a proof of the bounds if there are such shifts."""
    if not isinstance(problem, Problem):
        problem = as_problem(problem, "shifts_to_prove")
    risk = 1 - check_share(confidence, "confidence", ends=False)
    given = {"groups": groups, "classes": classes}
    best = best_shifts(problem, ScoredExamples(scores, labels, **given))
    if best[1] or why_unprovable(problem):
        return best
    for spare in _SPARES:
        found = _with_room(problem, scores, labels, best[0], risk / spare, given)
        if found is not None:
            return found, ""
    return best


def _with_room(
    problem: Problem, scores: Any, labels: Any, shifts: Floats, tail: float, given: dict[str, Any]
) -> Floats | None:
    """Shifts whose bounds these rows would prove; None if none are found."""
    levels = {bound: bound.level for bound in problem.subject_to if isinstance(bound, Bound)}
    for _ in range(_TIGHTENING_ROUNDS):
        shares = class_shares(problem, scores, labels, shifts, **given)
        if all(share.is_proved(tail) for own in shares.values() for share in own):
            return shifts
        for bound, own in shares.items():
            provable = [level for share in own if (level := share.provable(tail)) is not None]
            if len(provable) < len(own):
                return None
            pick = min if bound.sense == "<=" else max
            levels[bound] = pick(levels[bound], *provable)
        try:
            more = _with_levels(problem, levels)
            choice = choose_classes(more, ScoredExamples(scores, labels, **given))
        except Infeasible:
            return None
        shifts = np.asarray(choice.thresholds)
    return None


def _with_levels(problem: Problem, levels: Mapping[Bound, float]) -> Problem:
    """The problem with other levels of its bounds."""
    bounds = [Bound(b.expression, b.sense, level) for b, level in levels.items()]
    goal: dict[str, Any] = {"maximize" if problem.maximize else "minimize": problem.objective}
    return Problem(**goal, subject_to=bounds)

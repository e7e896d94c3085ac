"""What a training run asked for, was given, scored and had certified: plain data, never torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import is_number
from setpoint.axes.class_data import check_class_labels
from setpoint.batch import check_labels, check_length, check_scores
from setpoint.certificates.times import read_times

SPLITS = ("train", "validation", "calibration", "test")
Threshold = float | Mapping[Any, float] | Sequence[float] | None


class Scored(NamedTuple):
    """Scores, labels and group values (or None) of the examples of one split.

    For two classes the scores are ``[n]`` and the labels 0/1; for several the scores are
    ``[n, K]`` and the labels column numbers.
    """

    scores: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class RunResult:
    """What a run asked for, what it was given and what it scored.

    Args:
        goal: The sentence, ``minimize fnr subject to fpr <= 0.01``, or bounds alone.
        splits: Scores, labels and groups (or None) of train, validation, calibration and test;
            any may be absent, and plain tuples will do.
        threshold: Decisions are ``score > threshold``. A mapping for one threshold per group; None
            if there is none (infeasible); minus infinity accepts everyone. For several classes one
            shift per class: decisions are the highest ``score - shift``.
        classes: The names of several classes, in the order of the columns of the scores; empty for
            two classes.
        positive: The name of the positive class of two, ``fraud``.
        negative: What the others are called, in the plural, ``legitimate payments``; by default
            they are named after the positive class.
        action: What is done above the threshold, as a verb, ``block``.
        certificate: As from ``Certificate.to_json``, as a dict; None if nothing was certified.
        label: The column that was learned.
        method: What it was trained with, ``implicit``.
        model: What was trained, ``mlp``.
        seed: Where all randomness came from.
        versions: Of the libraries, by name.
        created: When, in ISO format.
        history: One dict per epoch: epoch, loss, metrics by name.
        baseline: Scores of another model on the same splits, row by row, or ``(scores, labels)``.
        baseline_name: The name of the other model.
        baseline_threshold: Its threshold, or its shifts. Without it the best threshold on
            validation (or calibration) data, or no shifts.
        columns: The features used.
        group: The column that groups come from.
        notes: What was done to the data, in sentences.
        times: When each row of the judged split came, as ISO dates or numbers, if that is known.
        by: The length of a period, ``"day"``, ``"week"`` or ``"month"``; by default the shortest
            that makes at most 31 of them.
        costs: What a miss and a false alarm cost, if that is known.
        checks: What ``setpoint check`` has noted since, one dict each.

    Raises:
        ValueError: Splits, names, shifts or a baseline do not fit together.

    Examples:
        >>> scores, labels = np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 0, 1, 1])
        >>> run = RunResult("fpr <= 0.5", {"test": (scores, labels)}, threshold=0.5)
        >>> run.goal, list(run.splits)
        ('fpr <= 0.5', ['test'])
    """

    goal: str
    splits: Mapping[str, Any]
    threshold: Threshold
    _: KW_ONLY
    classes: Sequence[str] = ()
    positive: str = "1"
    negative: str = ""
    action: str = "flag"
    certificate: Mapping[str, Any] | None = None
    label: str = "label"
    method: str = ""
    model: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    history: Sequence[Mapping[str, Any]] = ()
    baseline: Mapping[str, Any] | None = None
    baseline_name: str = "cross-entropy"
    baseline_threshold: float | Sequence[float] | None = None
    columns: Sequence[str] = ()
    group: str = "group"
    notes: Sequence[str] = ()
    times: Any = None
    by: str | None = None
    costs: tuple[float, float] | None = None
    checks: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(map(str, self.classes)))
        if self.classes:
            object.__setattr__(self, "threshold", _shifts_of(self.classes, self.threshold))
        splits = _known_splits(self.splits, "splits")
        splits = {name: self._read(*given) for name, given in splits.items()}
        object.__setattr__(self, "splits", splits)
        if self.baseline:
            theirs = _known_splits(self.baseline, "baseline")
            theirs = {name: self._read_baseline(name, given) for name, given in theirs.items()}
            object.__setattr__(self, "baseline", theirs)
        if self.times is not None:
            when = read_times(self.times, self.splits[self.judged].labels)
            object.__setattr__(self, "times", when)

    @property
    def judged(self) -> str:
        """The split whose rows the model knows least: test, or else the one before it."""
        return next(name for name in reversed(SPLITS) if name in self.splits)

    @property
    def shifts(self) -> tuple[float, ...]:
        """For several classes, one shift per class; empty for two classes."""
        given = self.threshold if self.classes else ()
        return given if isinstance(given, tuple) else ()

    def _read(self, scores: Any, labels: Any, groups: Any = None) -> Scored:
        s, y, count = np.asarray(scores), np.asarray(labels), len(self.classes)
        check_scores(s)
        if count and (s.ndim != 2 or s.shape[1] != count or s.size == 0):
            raise ValueError(
                f"A split has a score for each of {count} classes and at least one example; got "
                f"the shape {s.shape}."
            )
        rows = s[:, 0] if count else s
        if count:
            check_length(y, rows, "labels")
            check_class_labels(y, count)
        else:
            check_labels(y, s)
        if s.size == 0 or rows.ndim != 1:
            raise ValueError(
                f"A split has one score per example, at least one; got the shape {s.shape}."
            )
        column = None if groups is None else np.asarray(groups)
        if column is not None:
            check_length(column, rows, "groups")
        return Scored(s, y.astype(np.int64) if count else y == 1, column)

    def _read_baseline(self, name: str, given: Any) -> Scored:
        """Another model's scores of one split, with the run's labels and groups."""
        if name not in self.splits:
            raise ValueError(f"The baseline has a split {name!r} that the run has not.")
        mine = self.splits[name]
        scores, labels = given[:2] if isinstance(given, tuple) else (given, mine.labels)
        if np.shape(scores) != mine.scores.shape:
            raise ValueError(
                f"The baseline must be scored on the same rows; its scores of {name!r} have the "
                f"shape {np.shape(scores)}."
            )
        theirs = self._read(scores, labels, mine.groups)
        if not np.array_equal(theirs.labels, mine.labels):
            raise ValueError(
                f"The baseline must be scored on the same rows; the labels of {name!r} differ "
                "from the run's."
            )
        return theirs


def _shifts_of(names: Sequence[str], given: Any) -> tuple[float, ...]:
    shifts = tuple(float(shift) for shift in given)
    if len(names) < 2 or len(set(names)) < len(names) or len(shifts) != len(names):
        raise ValueError(
            "A run for several classes has two names at least, all different, and a shift for "
            f"each; got {len(set(names))} names and {len(shifts)} shifts."
        )
    return shifts


def _known_splits(given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The splits in their usual order; ValueError for another name, or if there is none."""
    unknown = [name for name in given if name not in SPLITS]
    if unknown:
        raise ValueError(f"{what} are named {', '.join(SPLITS)}; got {unknown[0]!r}.")
    if not given:
        raise ValueError(f"{what} are at least one of {', '.join(SPLITS)}; got none.")
    return {name: given[name] for name in SPLITS if name in given}


Status = Literal["certified", "not certified", "infeasible", "no certificate"]
STATUSES: tuple[Status, ...] = ("certified", "not certified", "infeasible", "no certificate")


@dataclass(frozen=True)
class Verdict:
    """The part of a certificate that a reader needs; lists are empty where it says nothing."""

    status: Status
    confidence: float
    guarantee: str = "pac"
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    proved: Mapping[str, float] = field(default_factory=dict)  # by bound, as it is written
    caveats: tuple[str, ...] = ()
    intervals: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """The value, lower and upper end of what was not bounded but shown, by its name."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """What was measured on the calibration rows, by bound."""
    by_amounts: bool = False
    """Whether costs go by the amounts of rows."""
    by_cluster: bool = False
    """Whether each cluster of rows counts once."""


def read_verdict(certificate: Mapping[str, Any] | None) -> Verdict:
    """Read a certificate's dict; missing entries are left empty.

    Raises:
        ValueError: The status is none of :data:`STATUSES`.

    Examples:
        >>> read_verdict({"status": "certified", "confidence": 0.9}).confidence
        0.9
        >>> read_verdict(None).status
        'no certificate'
    """
    if certificate is None:
        return Verdict("no certificate", 0.95)
    given = str(certificate.get("status", "")).replace("_", " ")
    status = next((known for known in STATUSES if known == given), None)
    if status is None:
        raise ValueError(f"A certificate's status is one of {', '.join(STATUSES)}; got {given!r}.")
    return Verdict(
        status,
        float(certificate.get("confidence") or 0.95),
        str(certificate.get("guarantee") or "pac"),
        sentences(certificate.get("notes")),
        sentences(certificate.get("assumptions")),
        sentences(certificate.get("advice")),
        _claimed(certificate.get("claims"), "proved"),
        sentences(certificate.get("caveats")),
        _intervals(certificate.get("objective")),
        _claimed(certificate.get("claims"), "measured"),
        certificate.get("largest_amount") is not None,
        certificate.get("clusters") is not None,
    )


def sentences(found: object) -> tuple[str, ...]:
    """A list of texts from a file, or one text; empty if it is neither."""
    if isinstance(found, str):
        return (found,) if found else ()
    return tuple(map(str, found)) if isinstance(found, Sequence) else ()


def _claimed(claims: object, what: str) -> dict[str, float]:
    """The proved or the measured value of each bound."""
    return {str(row.get("bound")): float(row[what]) for row in _entries(claims, what)}


def _intervals(estimates: object) -> dict[str, tuple[float, float, float]]:
    """The value and the interval of each estimate, by its name."""
    rows = _entries(estimates, "value", "low", "high")
    return {
        str(r.get("name")): (float(r["value"]), float(r["low"]), float(r["high"])) for r in rows
    }


def _entries(found: object, *numbers: str) -> Iterator[Mapping[str, Any]]:
    """The entries of a list from a file that have these numbers."""
    for row in found if isinstance(found, Sequence) and not isinstance(found, str) else ():
        if isinstance(row, Mapping) and all(is_number(row.get(key)) for key in numbers):
            yield row

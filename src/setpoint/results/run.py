"""What every run says of itself, whatever it decides: plain data, and no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import is_number
from setpoint.axes.class_data import check_class_labels
from setpoint.batch import check_labels, check_length, check_scores

SPLITS = ("train", "validation", "calibration", "test")


class Scored(NamedTuple):
    """Scores, labels and (or None) group values of the examples of one split.

    Of two classes the scores are ``[n]`` and the labels 0/1; of several ``[n, K]``, and the labels
    are columns.
    """

    scores: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Described:
    """What a run asked for, what it was given and how it was made.

    Args:
        goal: The sentence.
        splits: Scores, labels and groups (or None) of train, validation, calibration and test;
            any may be absent, and plain tuples will do.
        certificate: As from ``Certificate.to_json``, as a dict; None if nothing was certified.
        label: The column that was learned.
        method: What it was trained with, ``implicit``.
        model: What was trained, ``mlp``.
        seed: What all randomness came from.
        versions: Of the libraries, by name.
        created: When, in ISO format.
        history: One dict an epoch: epoch, loss, metrics by name.
        baseline: What another model scored on the same splits, row by row.
        baseline_name: What to call it.
        columns: The features used.
        group: The column that groups come from.
        notes: What was done to the data, in sentences.
    """

    goal: str = field(kw_only=False)
    splits: Mapping[str, Any] = field(kw_only=False)
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
    columns: Sequence[str] = ()
    group: str = "group"
    notes: Sequence[str] = ()

    @property
    def judged(self) -> str:
        """The split nearest to new data, whose rows the model knows least: test, or the best."""
        return next(name for name in reversed(SPLITS) if name in self.splits)


def checked(splits: Mapping[str, Any], what: str, read: Callable[..., Scored]) -> dict[str, Scored]:
    """Splits by their known names, in order, each read."""
    unknown = [name for name in splits if name not in SPLITS]
    if unknown:
        raise ValueError(f"{what} are named {', '.join(SPLITS)}; got {unknown[0]!r}.")
    if not splits:
        raise ValueError(f"{what} are at least one of {', '.join(SPLITS)}; got none.")
    return {name: read(*splits[name]) for name in SPLITS if name in splits}


def read_groups(groups: Any, rows: NDArray[Any]) -> NDArray[Any] | None:
    """A group value for every row, or None."""
    if groups is None:
        return None
    found = np.asarray(groups)
    check_length(found, rows, "groups")
    return found


# ------------------------------------------------------------------------------------------------
# One training run for two classes: all a report or a comparison needs.


Threshold = float | Mapping[Any, float] | None


@dataclass(frozen=True)
class RunResult(Described):
    """What a run asked for, what it was given and what it scored.

    Args:
        goal: The sentence, ``minimize fnr subject to fpr <= 0.01``, or bounds alone.
        splits: Scores, 0/1 labels and groups (or None), ``[n]`` each, by name.
        threshold: Decisions are ``score > threshold``. One for each group as a mapping; None if
            there is none (infeasible); minus infinity accepts everyone.
        positive: What the positive class is called.
        baseline: Scores and labels of another model on the same splits, row by row.
        baseline_threshold: Its threshold; None: the best one on validation (or calibration) data.

    The rest is as in :class:`setpoint.results.run.Described`.
    """

    threshold: Threshold
    positive: str = field(default="1", kw_only=True)
    baseline_threshold: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", checked(self.splits, "splits", _scored))
        if self.baseline:
            object.__setattr__(self, "baseline", checked(self.baseline, "baseline", _scored))
            for name, theirs in self.baseline.items():
                if name not in self.splits:
                    raise ValueError(f"The baseline has a split {name!r} that the run has not.")
                if not np.array_equal(theirs.labels, self.splits[name].labels):
                    raise ValueError(
                        f"The baseline must be scored on the same rows; the labels of {name!r} "
                        "differ from the run's."
                    )


def _scored(scores: Any, labels: Any, groups: Any = None) -> Scored:
    s, y = np.asarray(scores), np.asarray(labels)
    check_scores(s)
    check_labels(y, s)
    if s.ndim != 1 or s.size == 0:
        raise ValueError(f"A split has one score an example, at least one; got shape {s.shape}.")
    return Scored(s, y == 1, read_groups(groups, s))


# ------------------------------------------------------------------------------------------------
# One training run for several classes: all a report needs.


@dataclass(frozen=True)
class ClassRun(Described):
    """What a run for several classes asked for, what it was given and what it scored.

    Args:
        goal: The sentence, ``maximize macro(recall)``.
        splits: Scores ``[n, K]``, the column of the true class ``[n]`` and groups (or None).
        names: What the classes are called, in the order of the columns of the scores.
        shifts: Decisions are the highest ``score - shift``; one for each class.
        baseline: Scores of another model on the same splits, row by row.
        baseline_shifts: Its shifts; None: the highest score decides.

    The rest is as in :class:`setpoint.results.run.Described`.
    """

    names: Sequence[str]
    shifts: Sequence[float]
    baseline_shifts: Sequence[float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        names = tuple(map(str, self.names))
        shifts = tuple(float(t) for t in self.shifts)
        if len(names) < 2 or len(set(names)) < len(names) or len(shifts) != len(names):
            raise ValueError(
                "A run for several classes has two names at least, all different, and a shift for "
                f"each; got {len(set(names))} names and {len(shifts)} shifts."
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "shifts", shifts)
        parts = checked(self.splits, "splits", partial(_class_scored, len(names)))
        object.__setattr__(self, "splits", parts)
        for name, theirs in (self.baseline or {}).items():
            if name not in parts or np.shape(theirs) != parts[name].scores.shape:
                raise ValueError(
                    f"The baseline must be scored on the same rows; its scores of {name!r} have "
                    f"the shape {np.shape(theirs)}."
                )


def _class_scored(count: int, scores: Any, labels: Any, groups: Any = None) -> Scored:
    s, y = np.asarray(scores), np.asarray(labels)
    check_scores(s)
    if s.ndim != 2 or s.shape[1] != count or s.size == 0:
        raise ValueError(
            f"A split has a score for each of {count} classes and at least one example; got the "
            f"shape {s.shape}."
        )
    check_length(y, s[:, 0], "labels")
    check_class_labels(y, count)
    return Scored(s, y.astype(np.int64), read_groups(groups, s[:, 0]))


# ------------------------------------------------------------------------------------------------
# What a certificate says, read from its plain dict.


Status = Literal["certified", "not certified", "infeasible", "no certificate"]
KNOWN: tuple[Status, ...] = ("certified", "not certified", "infeasible", "no certificate")


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


def read_verdict(certificate: Mapping[str, Any] | None) -> Verdict:
    """Read a certificate's dict; what is missing is missing, but an unknown status is an error.

    Example:
        >>> read_verdict({"status": "certified", "confidence": 0.9}).confidence
        0.9
        >>> read_verdict(None).status
        'no certificate'
    """
    if certificate is None:
        return Verdict("no certificate", 0.95)
    given = str(certificate.get("status", "")).replace("_", " ")
    status = next((known for known in KNOWN if known == given), None)
    if status is None:
        raise ValueError(f"A certificate's status is one of {', '.join(KNOWN)}; got {given!r}.")
    return Verdict(
        status,
        float(certificate.get("confidence") or 0.95),
        str(certificate.get("guarantee") or "pac"),
        _sentences(certificate.get("notes")),
        _sentences(certificate.get("assumptions")),
        _sentences(certificate.get("advice")),
        _proved(certificate.get("claims")),
    )


def _sentences(found: object) -> tuple[str, ...]:
    if isinstance(found, str):
        return (found,) if found else ()
    return tuple(map(str, found)) if isinstance(found, Sequence) else ()


def _proved(claims: object) -> dict[str, float]:
    """What is proved for each bound."""
    rows = claims if isinstance(claims, Sequence) and not isinstance(claims, str) else ()
    known = (row for row in rows if isinstance(row, Mapping) and is_number(row.get("proved")))
    return {str(row.get("bound")): float(row["proved"]) for row in known}

"""Where to decide: thresholds and shifts are chosen on some rows and certified on others.

What is found depends on who shares a threshold: one threshold for everyone, one per group (a dict
by group), or a shift per class (subtracted from its score before the highest decides). A threshold
for everyone is chosen by its certificate. Those of groups and classes are chosen on the selection
rows, with room for a proof, and proved on the calibration rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import share, whole
from setpoint.axes.class_choice import best_shifts
from setpoint.axes.class_data import decide
from setpoint.axes.group_cells import cells_of, codes_of, key_of
from setpoint.batch import ScoredExamples
from setpoint.certificates import (
    CannotPromise,
    Certificate,
    ClassCertificate,
    certify,
    certify_shifts,
    shifts_to_prove,
    thresholds_to_prove,
)
from setpoint.certificates.copies import count_tries
from setpoint.estimators.inputs import (
    FEWEST_PER_CLASS,
    FEWEST_ROWS,
    AnyArray,
    Examples,
    columns_of_labels,
)
from setpoint.problems import Infeasible, Problem, merit

AnyCertificate = Certificate | ClassCertificate

_USER = 5
"""Frames from a warning here to the line that called ``fit``."""


class NotCertifiedWarning(UserWarning):
    """The threshold in use is not certified for new data."""


class DecisionRule(NamedTuple):
    """Where to decide (a threshold, a dict of them by group, or shifts), and its certificate."""

    at: Any
    certificate: AnyCertificate | None


class ProofOptions(NamedTuple):
    """How a threshold is certified: what ``certify`` takes, and the fingerprint of the table."""

    confidence: float
    candidates: int = 1
    accept_drift: bool = False
    table: str = ""


def find_decision(
    problem: Problem,
    selection: Examples,
    calibration: Examples | None,
    options: ProofOptions,
    *,
    classes: Sequence[Any] = (),
    reason: str = "",
) -> DecisionRule:
    """Choose where to decide and certify it, or warn that it is not certified.

    A goal that cannot be certified (an exact value) and data that prove nothing are no errors: the
    decision is then the best one on the selection rows.

    Args:
        problem: The goal.
        selection: Rows to choose by.
        calibration: Rows to certify on, or None if there are none.
        options: Of the certificate.
        classes: For a goal about classes, what the columns of the scores are called.
        reason: Why there are no calibration rows; empty if no certificate is wanted.
    """
    confidence = None
    if calibration is not None:
        confidence = share(options.confidence, "confidence", ends=False)
    chosen: Any = None
    if problem.kind == "groups":
        if confidence is not None:
            given: dict[str, Any] = {"groups": selection.groups, "clusters": selection.clusters}
            seen = (problem, selection.rows, selection.labels)
            chosen = thresholds_to_prove(*seen, confidence=confidence, **given)
        chosen = chosen or _best_threshold(problem, selection)
    elif problem.kind == "classes":
        chosen = _shifts(problem, selection, confidence, classes)
    certificate = None
    if calibration is not None:
        certificate, reason = _certify(problem, calibration, options, chosen, classes)
    if isinstance(certificate, Certificate) and certificate.certified and chosen is None:
        return DecisionRule(float(certificate.threshold), certificate)
    if reason:
        many = problem.kind == "classes"
        used = "The shifts are the best ones" if many else "The threshold is the best one"
        warnings.warn(
            f"No certificate: {reason} {used} on the data at hand, not certified for new data.",
            NotCertifiedWarning,
            stacklevel=_USER - 1,
        )
    return DecisionRule(
        _best_threshold(problem, selection) if chosen is None else chosen, certificate
    )


def _certify(
    problem: Problem, rows: Examples, options: ProofOptions, at: Any, classes: Sequence[Any]
) -> tuple[AnyCertificate | None, str]:
    """A certificate and why it proves nothing (empty if it does), or None and why there is none."""
    if problem.kind == "groups" and len(problem.columns) > 1:
        return None, "with thresholds per group it is about one column of groups."
    certificate: AnyCertificate
    try:
        if problem.kind == "classes":
            certificate = _certify_classes(problem, rows, options, at, classes)
        else:
            certificate = certify(
                rows.rows,
                rows.labels,
                problem,
                thresholds=at,
                groups=rows.groups,
                clusters=rows.clusters,
                times=rows.times,
                confidence=options.confidence,
                candidates=options.candidates,
                accept_drift=options.accept_drift,
            )
        certificate = _with_tries(certificate, rows.rows, options)
    except CannotPromise as refused:
        return None, str(refused)
    if certificate.certified:
        return certificate, ""
    return certificate, "; ".join([certificate.status, *certificate.notes]) + "."


def _certify_classes(
    problem: Problem, rows: Examples, options: ProofOptions, at: Any, classes: Sequence[Any]
) -> ClassCertificate:
    """A certificate of shifts; of clusters one row each counts, drawn by lot."""
    count = whole(options.candidates, "candidates", least=1)
    confidence = round(1 - (1 - options.confidence) / count, 12)
    return certify_shifts(
        rows.rows,
        rows.labels,
        problem,
        at,
        classes=classes,
        confidence=confidence,
        groups=rows.groups,
        clusters=rows.clusters,
        times=rows.times,
    )


def _with_tries(
    certificate: AnyCertificate, scores: AnyArray, options: ProofOptions
) -> AnyCertificate:
    """The certificate with the fingerprint of its table, and how many there are of it."""
    tries = count_tries(options.table, scores)
    notes = certificate.notes
    if tries > options.candidates:
        notes += (
            f"number {tries} of the certificates on this table in this process; if the best of "
            f"them is used, pass candidates={tries}",
        )
    return replace(certificate, fingerprint=options.table, notes=notes)


def _best_threshold(problem: Problem, rows: Examples) -> Any:
    """The best threshold on these rows (with one per group, a dict of them).

    Where none reaches the targets, the one that accepts nobody, with a warning.
    """
    scores, labels, weights, groups, *_ = rows
    try:
        choice = problem.choose(scores, labels, weights=weights, groups=groups)
    except Infeasible as error:
        warnings.warn(f"{error} Nobody is accepted.", NotCertifiedWarning, stacklevel=_USER)
        nobody = float(np.max(scores))
        if problem.kind == "groups":
            return {key_of(where): nobody for where in cells_of(problem)}
        return nobody
    return dict(choice.thresholds) if problem.kind == "groups" else float(choice.thresholds[0])


def _shifts(
    problem: Problem, rows: Examples, confidence: float | None, classes: Sequence[Any]
) -> AnyArray:
    """The best shifts of classes, with room for a proof of the bounds if one is to be tried."""
    scores, labels, weights, groups, *_ = rows
    options: dict[str, Any] = {"groups": groups, "classes": classes}
    if confidence is None:
        found = best_shifts(problem, ScoredExamples(scores, labels, weights, **options))
    else:
        found = shifts_to_prove(problem, scores, labels, confidence=confidence, **options)
    shifts, missed = found
    if missed:
        warnings.warn(missed, NotCertifiedWarning, stacklevel=_USER)
    return shifts


class Decisions:
    """Decide by ``score > threshold_``, or by the highest of the scores minus ``shifts_``."""

    problem_: Problem
    threshold_: Any
    shifts_: AnyArray
    classes_: AnyArray
    unseen: str

    # With metadata routing ``groups`` go to splitters such as GroupKFold, unless they are asked for
    __metadata_request__fit: ClassVar = {"groups": False}
    __metadata_request__score: ClassVar = {"groups": False}
    __metadata_request__predict: ClassVar = {"groups": False}
    __metadata_request__decision_function: ClassVar = {"groups": False}

    _place = 1
    """The place of the positive class in ``classes_``."""

    def _scores(self, X: Any) -> AnyArray:
        raise NotImplementedError

    def raw_scores(self, X: Any) -> AnyArray:
        """The scores that ``threshold_``, ``shifts_`` and ``certificate_`` are about.

        They are for the certificate's methods: ``certificate_.check(model.raw_scores(X), labels)``.
        From what :meth:`decision_function` gives the threshold is subtracted already.
        """
        return self._scores(X)

    @property
    def _fewest(self) -> int:
        """The rows that the rarest class must have for the rows to be split."""
        return FEWEST_PER_CLASS if self.problem_.kind == "classes" else FEWEST_ROWS

    def decision_function(self, X: Any, *, groups: Any = None) -> AnyArray:
        """The score minus ``threshold_``: positive for what ``predict`` accepts.

        Where everybody is accepted (a threshold of minus infinity) it is a positive number that
        grows with the score. With one threshold per group, ``groups`` says whose it is. If
        ``pos_label`` is the first of ``classes_`` its sign is turned: for scikit-learn it speaks
        for the second.

        For a goal about classes: the scores minus their shifts, ``[n, K]``, of which the highest
        decides; for two classes their difference.
        """
        scores = self._scores(X).astype(np.float64)
        if self.problem_.kind == "classes":
            shifted = scores - self.shifts_
            return np.asarray(shifted[:, 1] - shifted[:, 0] if shifted.shape[1] == 2 else shifted)
        margins = self._margins(scores, groups)
        return margins if self._place or len(self.classes_) > 2 else -margins

    def predict(self, X: Any, *, groups: Any = None) -> AnyArray:
        """The label of each row: by its ``threshold_``, or by the highest shifted score."""
        scores = self._scores(X)
        if self.problem_.kind == "classes":
            return np.asarray(self.classes_[decide(scores, self.shifts_)])
        return self._labels_of(self._margins(scores.astype(np.float64), groups) > 0, X)

    def _labels_of(self, accepted: AnyArray, X: Any) -> AnyArray:
        """The positive class for what is accepted, another one for the other rows."""
        return np.asarray(self.classes_[np.where(accepted, self._place, self._rest(X))])

    def _rest(self, X: Any) -> Any:
        """The place in ``classes_`` of the class of rows that are not accepted."""
        return 1 - self._place

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """The goal's metric on these data, greater is better: negated if it is minimized.

        It is taken at the best threshold, or the best shifts, that meet the goal's bounds on these
        very data, so that models are compared at the same operating point, whatever their own
        thresholds; a model that cannot meet them gets the worst value. For what ``threshold_``
        itself reaches use ``certificate_.check(model.raw_scores(X), labels)`` or
        ``problem_.evaluate(scores, labels, thresholds=...)``.
        """
        scores = self._scores(X)
        options = {"weights": sample_weight, "groups": groups}
        if self.problem_.kind == "classes":
            labels = columns_of_labels(y, self.classes_)
            return merit(self.problem_, scores, labels, classes=self.classes_.tolist(), **options)
        if self.problem_.kind != "groups":
            scores = self._margins(scores.astype(np.float64), None)
        labels = (np.asarray(y) == self.classes_[self._place]).astype(np.int64)
        return merit(self.problem_, scores, labels, **options)

    def _margins(self, scores: AnyArray, groups: Any) -> AnyArray:
        """How far scores are above their threshold."""
        threshold = self.threshold_
        if self.problem_.kind == "groups":
            options = (groups, len(scores), self.unseen)
            threshold = thresholds_of_rows(self.problem_, threshold, *options)
        accepting = np.where(scores < 0, 1 / (1 - np.minimum(scores, 0)), 1 + scores)
        everybody = np.asarray(threshold) == -np.inf
        return np.where(everybody, accepting, scores - np.where(everybody, 0.0, threshold))


def thresholds_of_rows(
    problem: Problem, thresholds: Mapping[Any, float], groups: Any, rows: int, unseen: str
) -> NDArray[np.float64]:
    """The threshold of every row: that of its group.

    Args:
        problem: The goal, which names the groups.
        thresholds: By group.
        groups: The column of groups, or a dict of columns.
        rows: How many rows there are.
        unseen: ``"error"``, or which threshold a group without one gets: the ``"highest"`` or the
            ``"lowest"`` of all.

    Raises:
        ValueError: There are no groups, or a row is of a group without a threshold and ``unseen``
            is ``"error"``.
    """
    if groups is None:
        raise ValueError(
            "There is one threshold for each group, so predict and decision_function need to know "
            "them: predict(X, groups=...)."
        )
    wheres, codes = codes_of(problem, groups, np.zeros(rows))
    known = [thresholds.get(key_of(where), np.nan) for where in wheres]
    found = np.append(known, np.nan)[codes]  # the last is for groups that are not named
    unknown = np.isnan(found)
    if unknown.any() and unseen == "error":
        row = int(unknown.argmax())
        names = ", ".join(map(repr, thresholds))
        raise ValueError(
            f"Row {row} is of a group without a threshold; there are thresholds for {names}. Leave "
            "such rows out, or say what to do with them: unseen='highest' (or 'lowest')."
        )
    fallback = max(thresholds.values()) if unseen == "highest" else min(thresholds.values())
    return np.where(unknown, fallback, found)

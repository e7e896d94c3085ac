"""Shifts of several classes: chosen with the model, proved on rows that nothing has seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from setpoint._checks import share
from setpoint.axes.class_choice import best_shifts
from setpoint.axes.class_data import decide
from setpoint.certificates.classes import certify_shifts, shifts_to_prove, unprovable
from setpoint.estimators.class_calibrator import ClassCalibrator
from setpoint.estimators.inputs import Array, Labels
from setpoint.estimators.scored import ScoredRows
from setpoint.estimators.thresholds import NotCertifiedWarning, warn_not_certified
from setpoint.results.confusion import Confusions
from setpoint.train.groups import of_rows

FEWEST = 5
"""With fewer rows of a class than this, nothing is split off to choose by."""


class ClassPromises(ScoredRows):
    """Shifts from the validation rows, a certificate of their bounds from the calibration rows."""

    shifts_: Array
    confusions_: Confusions

    def _set_shifts(
        self: Any, x: Array, labels: Labels, weights: Array | None, groups: Any
    ) -> None:
        rows = self.splits_["validation"]
        scores, own = self._score_rows(x[rows]).astype(np.float64), of_rows(groups, rows)
        counts = None if weights is None else weights[rows]
        given = {"groups": own, "classes": self.classes_.tolist()}
        if len(self.splits_["calibration"]):
            sure = share(self.confidence, "confidence", ends=False)
            found = shifts_to_prove(self.problem_, scores, labels[rows], confidence=sure, **given)
        else:
            found = best_shifts(self.problem_, scores, labels[rows], weights=counts, **given)
        self.shifts_, missed = found
        if missed:
            warnings.warn(missed, NotCertifiedWarning, stacklevel=4)
        self.calibrator_ = ClassCalibrator.fit(scores, labels[rows], counts)
        names = tuple(self.classes_.tolist())
        self.confusions_ = Confusions.of(
            names, labels[rows], scores.argmax(1), decide(scores, self.shifts_), counts
        )

    def _prove_shifts(
        self: Any, x: Array, labels: Labels, weights: Array | None, groups: Any
    ) -> None:
        """A certificate if one is wanted and can be had; why not is said in a warning."""
        rows, self.certificate_ = self.splits_["calibration"], None
        if len(rows):
            self.certificate_ = certify_shifts(
                self._score_rows(x[rows]),
                labels[rows],
                self.problem_,
                self.shifts_,
                classes=self.classes_.tolist(),
                confidence=self.confidence,
                groups=of_rows(groups, rows),
            )
            found = self.certificate_
            reason = "" if found.certified else "; ".join([found.status, *found.notes]) + "."
        else:
            reason = self._why_no_rows(weights)
        if reason:
            warn_not_certified(reason, "The shifts are the best ones", depth=5)

    def _why_no_rows(self: Any, weights: Array | None) -> str:
        """Why no rows were kept to certify on; nothing if nobody asked for a certificate."""
        if self._promised_share(None) == 0:
            return ""
        if weights is not None:
            return "sample weights break the binomial law behind it."
        unsaid = unprovable(self.problem_)
        return unsaid[0] if unsaid else f"a class has under {FEWEST} rows, so none are split off."

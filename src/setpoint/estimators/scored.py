"""From a trained module to scores, probabilities and a threshold with its promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from setpoint.certificates import Certificate
from setpoint.estimators.calibrator import Calibrator
from setpoint.estimators.decisions import Decisions
from setpoint.estimators.groups import cautious
from setpoint.estimators.inputs import Array, Labels
from setpoint.estimators.splits import FEWEST
from setpoint.estimators.thresholds import Promise, chosen, promised, warn_not_certified
from setpoint.train import score as scores_of
from setpoint.train.groups import of_rows


class ScoredRows(Decisions):
    """Rows are scored by ``module_``; validation rows calibrate, calibration rows certify."""

    module_: nn.Module
    splits_: dict[str, Array]
    calibrator_: Calibrator
    certificate_: Certificate | None
    calibration_fraction: float
    confidence: float
    device: str

    def _set_threshold(self, x: Array, labels: Labels, weights: Array | None, groups: Any) -> None:
        rows = self.splits_["validation"]
        seen = self._score_rows(x[rows])
        counts = None if weights is None else weights[rows]
        self.calibrator_ = Calibrator.fit(seen.astype(float), labels[rows].astype(float), counts)
        before = None  # thresholds of groups are chosen here and proved on the calibration rows
        if self.problem_.kind == "groups":
            own = of_rows(groups, rows)
            if counts is None and len(self.splits_["calibration"]):
                before = cautious(self.problem_, seen, labels[rows], own, self.confidence)
            before = before or chosen(self.problem_, seen, labels[rows], counts, own)
        promise = self._promise(x, labels, weights, groups, before)
        self.certificate_, threshold = promise.certificate, promise.threshold
        if threshold is None:
            if promise.reason:
                warn_not_certified(promise.reason)
            own = of_rows(groups, rows)
            threshold = before or chosen(self.problem_, seen, labels[rows], counts, own)
        self.threshold_ = threshold if before else float(threshold)

    def _promise(
        self, x: Array, labels: Labels, weights: Array | None, groups: Any, before: Any
    ) -> Promise:
        rows = self.splits_["calibration"]
        if len(rows):
            scores = self._score_rows(x[rows])
            own = of_rows(groups, rows)
            return promised(self.problem_, scores, labels[rows], self.confidence, own, before)
        if self._promised_share(None) == 0:
            return Promise()  # nobody asked for one
        if weights is not None:
            return Promise(reason="sample weights break the binomial law behind it.")
        return Promise(reason=f"a class has under {FEWEST} rows, so none are split off.")

    def _promised_share(self, weights: Array | None) -> float:
        """The share of rows to certify on: none for a goal without bounds, none with weights."""
        wanted = bool(self.problem_.subject_to) and weights is None
        return self.calibration_fraction if wanted else 0.0

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        x = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._score_rows(x)

    def _score_rows(self, x: Array) -> Array:
        tensor = torch.as_tensor(np.ascontiguousarray(x), device=self.device)
        return scores_of(self.module_, tensor).cpu().numpy()

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, by the curve fitted on validation rows.

        Its argmax is the decision at 0.5, not that of ``predict``, which decides at ``threshold_``.
        """
        scores = self._scores(X).astype(np.float64)
        positive = self.calibrator_(scores)
        columns = [1 - positive, positive]
        return np.column_stack(columns if self._place else columns[::-1])

"""From scores to decisions: what both estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.estimators.thresholds import thresholds_of_rows
from setpoint.problems import Problem, merit

Array = NDArray[Any]


class Decisions:
    """Decide by ``score > threshold_``."""

    problem_: Problem
    threshold_: Any
    classes_: Array

    _place = 1
    """Of the positive class in ``classes_``."""

    def _scores(self, X: Any) -> Array:
        raise NotImplementedError

    def decision_function(self, X: Any, *, groups: Any = None) -> Array:
        """The score minus ``threshold_``: positive for what ``predict`` accepts.

        Where everybody is accepted (a threshold of minus infinity) it is a positive number that
        grows with the score. With one threshold per group, ``groups`` says whose it is. If
        ``pos_label`` is the first of ``classes_`` its sign is turned: for scikit-learn it speaks
        for the second.
        """
        margins = self._margins(X, groups)
        return margins if self._place else -margins

    def _margins(self, X: Any, groups: Any) -> Array:
        """How far scores are above the threshold."""
        scores = self._scores(X).astype(np.float64)
        threshold = self.threshold_
        if self.problem_.kind == "groups":
            unseen = getattr(self, "unseen", "error")
            threshold = thresholds_of_rows(self.problem_, threshold, groups, len(scores), unseen)
        accepting = np.where(scores < 0, 1 / (1 - np.minimum(scores, 0)), 1 + scores)
        everybody = np.asarray(threshold) == -np.inf
        return np.where(everybody, accepting, scores - np.where(everybody, 0.0, threshold))

    def predict(self, X: Any, *, groups: Any = None) -> Array:
        """The label of each row: the positive class where its score is above ``threshold_``."""
        accepted = self._margins(X, groups) > 0
        return np.asarray(self.classes_[np.where(accepted, self._place, 1 - self._place)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """The goal's metric on these data, greater is better: negated if it is minimized.

        It is taken at the best threshold that meets the goal's bounds on these very data, so that
        models are compared at the same operating point, whatever their own thresholds; a model
        that cannot meet them gets the worst value. For what ``threshold_`` itself reaches use
        ``certificate_.check`` or ``problem_.evaluate(scores, labels, thresholds=...)``.
        """
        labels = (np.asarray(y) == self.classes_[self._place]).astype(np.int64)
        grouped = self.problem_.kind == "groups"
        scores = self._scores(X) if grouped else self._margins(X, None)
        return merit(self.problem_, scores, labels, weights=sample_weight, groups=groups)

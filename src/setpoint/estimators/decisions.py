"""From scores to decisions: what both estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.problems import Infeasible, Problem

Array = NDArray[Any]


class Decisions:
    """Decide by ``score > threshold_``."""

    problem_: Problem
    threshold_: float
    classes_: Array

    def _scores(self, X: Any) -> Array:
        raise NotImplementedError

    def decision_function(self, X: Any) -> Array:
        """The score minus ``threshold_``: positive for what ``predict`` accepts.

        Where everybody is accepted (a threshold of minus infinity) it is a positive number that
        grows with the score.
        """
        scores = self._scores(X).astype(np.float64)
        if self.threshold_ == -np.inf:
            return np.asarray(np.where(scores < 0, 1 / (1 - np.minimum(scores, 0)), 1 + scores))
        return np.asarray(scores - self.threshold_)

    def predict(self, X: Any) -> Array:
        """The label of each row: the positive class where ``decision_function`` is positive."""
        accepted = self.decision_function(X) > 0
        return np.asarray(self.classes_[accepted.astype(int)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """The goal's metric on these data, greater is better: negated if it is minimized.

        It is taken at the best threshold that meets the goal's bounds on these very data, so that
        models are compared at the same operating point, whatever their own thresholds; a model
        that cannot meet them gets the worst value. For what ``threshold_`` itself reaches use
        ``certificate_.check`` or ``problem_.evaluate(scores, labels, thresholds=...)``.
        """
        labels = (np.asarray(y) == self.classes_[1]).astype(np.int64)
        scores = self.decision_function(X)
        try:
            value = self.problem_.evaluate(scores, labels, weights=sample_weight, groups=groups)
        except Infeasible:
            return 0.0 if self.problem_.maximize else -1.0
        return value if self.problem_.maximize else -value

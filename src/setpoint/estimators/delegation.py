"""What a wrapped classifier answers for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

Array = NDArray[Any]


def _has(name: str) -> Any:
    def check(self: Delegated) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


class Delegated:
    """Probabilities, and the columns a classifier was fitted on, are the classifier's own."""

    estimator: Any
    estimator_: Any

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The classifier's own probabilities."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    @property
    def n_features_in_(self) -> int:
        """The number of columns the classifier was fitted on."""
        try:
            return int(self.estimator_.n_features_in_)
        except AttributeError:
            raise AttributeError("n_features_in_ is known after fit.") from None

    @property
    def feature_names_in_(self) -> Array:
        """The names of the columns the classifier was fitted on, if they had names."""
        try:
            return np.asarray(self.estimator_.feature_names_in_)
        except AttributeError:
            raise AttributeError("feature_names_in_ needs columns with names.") from None

    def _scores(self, X: Any) -> Array:
        """One score a row: the decision function, or the probability of the positive class."""
        check_is_fitted(self, "estimator_")
        if hasattr(self.estimator_, "decision_function"):
            return np.asarray(self.estimator_.decision_function(X))
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(self.estimator_.predict_proba(X)[:, 1])
        raise TypeError(
            f"{type(self.estimator_).__name__} has neither decision_function nor predict_proba: "
            "there is no score to put a threshold on."
        )


def cut(params: dict[str, Any], rows: Array, count: int) -> dict[str, Any]:
    """Parameters with one entry a row keep those of ``rows``; others stay as they are."""
    return {name: _cut(value, rows, count) for name, value in params.items()}


def _cut(value: Any, rows: Array, count: int) -> Any:
    try:
        per_row = not isinstance(value, (str, bytes)) and _num_samples(value) == count
    except TypeError:
        return value
    return _safe_indexing(value, rows) if per_row else value

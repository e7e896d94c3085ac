"""A fitted classifier with a certificate that watches itself as it predicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from setpoint.certificates import Certificate
from setpoint.estimators.decisions import Decisions
from setpoint.estimators.inputs import AnyArray
from setpoint.monitoring import Monitor


class MonitoredClassifier:
    """Predict as the classifier does, and count what is seen.

    Args:
        estimator: A fitted :class:`CertifiedThreshold` or :class:`Classifier` whose goal is
            certified, with one threshold.
        false_alarm: The chance of ever raising a false alarm.
        watch: As for :meth:`setpoint.Certificate.monitor`.

    Attributes:
        monitor: What it has seen: ``monitor.status``, ``monitor.to_json()``.

    Examples:
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.linear_model import LogisticRegression
        >>> from setpoint.estimators import CertifiedThreshold
        >>> x, y = make_classification(6000, weights=[0.8], random_state=0)
        >>> model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1", random_state=0)
        >>> watched = MonitoredClassifier(model.fit(x[:4000], y[:4000]))
        >>> decisions = watched.predict(x[4000:5000])            # labels are not known yet
        >>> watched.update(x[5000:], y[5000:])                   # here they are
        'holds'
    """

    def __init__(
        self,
        estimator: Decisions,
        *,
        false_alarm: float = 0.05,
        watch: Iterable[str] = ("rates", "alerts", "scores"),
    ) -> None:
        certificate = getattr(estimator, "certificate_", None)
        if not isinstance(certificate, Certificate) or certificate.column is not None:
            raise ValueError(
                "MonitoredClassifier watches a fitted estimator with a certificate of one "
                f"threshold; {type(estimator).__name__} has none. For others use "
                "certificate.monitor() and update it yourself."
            )
        self.estimator = estimator
        self.monitor: Monitor = certificate.monitor(false_alarm, watch=watch)

    @property
    def status(self) -> str:
        """See :attr:`setpoint.Monitor.status`."""
        return self.monitor.status

    def predict(self, X: Any, *, times: Any = None, ids: Any = None) -> AnyArray:
        """The labels, by the threshold of the present certificate; the rows are counted.

        Args:
            X: Rows as the classifier takes them.
            times: See :meth:`setpoint.Monitor.update`.
            ids: Names of the rows, for :meth:`add_labels`.
        """
        scores = self.estimator._scores(X)
        self.monitor.update(scores, times=times, ids=ids)
        return self.estimator._labels_of(self.monitor.certificate.decide(scores), X)

    def update(self, X: Any, y: Any, **more: Any) -> str:
        """Count rows whose labels are known and that were not predicted before.

        Args:
            X: Rows as the classifier takes them.
            y: Their classes.
            **more: ``times``, ``clusters``: see :meth:`setpoint.Monitor.update`.
        """
        return self.monitor.update(self.estimator._scores(X), self._positive(y), **more)

    def add_labels(self, ids: Any, y: Any) -> str:
        """The classes of rows that were predicted with these ids."""
        return self.monitor.add_labels(ids, self._positive(y))

    def recalibrate(self, X: Any, y: Any) -> Certificate:
        """A new certificate from labelled rows: see :meth:`setpoint.Monitor.recalibrate`."""
        return self.monitor.recalibrate(self.estimator._scores(X), self._positive(y))

    def _positive(self, y: Any) -> AnyArray:
        return np.asarray(np.asarray(y) == self.estimator.classes_[self.estimator._place])

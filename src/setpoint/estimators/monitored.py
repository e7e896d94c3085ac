"""A fitted classifier with a certificate that watches itself as it predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
            certified, with one threshold or one for each group.
        false_alarm: The chance of ever raising a false alarm.
        watch: As for :meth:`setpoint.Certificate.monitor`.
        features: Names of columns that will be watched, too.

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
        features: Sequence[str] = (),
    ) -> None:
        certificate = getattr(estimator, "certificate_", None)
        if not isinstance(certificate, Certificate):
            raise ValueError(
                "MonitoredClassifier watches a fitted estimator with a certificate of one "
                f"threshold, or of one for each group; {type(estimator).__name__} has none. Of "
                "several classes, certificate_.monitor() takes scores and labels itself."
            )
        self.estimator = estimator
        self.monitor: Monitor = certificate.monitor(false_alarm, watch=watch, features=features)

    @property
    def status(self) -> str:
        """See :attr:`setpoint.Monitor.status`."""
        return self.monitor.status

    def predict(self, X: Any, **columns: Any) -> AnyArray:
        """The labels, by the threshold of the present certificate; the rows are counted.

        Args:
            X: Rows as the classifier takes them.
            **columns: ``times``, ``groups``, ``ids`` (for :meth:`add_labels`), ``clusters``,
                ``features``: see :meth:`setpoint.Monitor.update`.
        """
        scores, groups = self.estimator._scores(X), columns.get("groups")
        self.monitor.update(scores, **columns)
        certificate = self.monitor.certificate
        if isinstance(groups, Mapping) and certificate.column is not None:
            groups = groups[certificate.column]
        accepted = certificate.decide(scores, groups)
        fitted = self.estimator
        return np.asarray(fitted.classes_[np.where(accepted, fitted._place, fitted._rest(X))])

    def update(self, X: Any, y: Any, **columns: Any) -> str:
        """Count rows that were not predicted before, with what is known of their classes.

        Args:
            X: Rows as the classifier takes them.
            y: Their classes; None or NaN where they are not known.
            **columns: As for :meth:`predict`, and ``label_shares``, ``amounts``.
        """
        return self.monitor.update(self.estimator._scores(X), self._positive(y), **columns)

    def add_labels(self, ids: Any, y: Any, *, label_shares: Any = None) -> str:
        """The classes of rows that were predicted with these ids."""
        return self.monitor.add_labels(ids, self._positive(y), label_shares=label_shares)

    def recalibrate(self, X: Any, y: Any, **options: Any) -> Certificate:
        """A new certificate from labelled rows: see :meth:`setpoint.Monitor.recalibrate`."""
        scores, labels = self.estimator._scores(X), self._positive(y)
        return self.monitor.recalibrate(scores, labels, **options)

    def _positive(self, y: Any) -> AnyArray:
        """1 for the positive class, 0 for the other, NaN where the class is not known."""
        classes = np.asarray(y, dtype=object)
        missing = np.array([value is None or value != value for value in classes], bool)
        positive = classes == self.estimator.classes_[self.estimator._place]
        return np.where(missing, np.nan, positive.astype(float))

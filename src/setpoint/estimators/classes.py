"""Several classes: fit a goal about them, decide by shifted scores."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from setpoint.axes.class_data import decide, numbered
from setpoint.certificates.classes import unprovable
from setpoint.estimators.class_labels import numbers_of, read_many
from setpoint.estimators.class_promises import FEWEST, ClassPromises
from setpoint.estimators.inputs import Array, read_groups, read_weights
from setpoint.estimators.splits import three_parts
from setpoint.estimators.training import Portfolio
from setpoint.problems import merit
from setpoint.rates import ClassArea
from setpoint.results.class_run import ClassRun


class ManyClasses(ClassPromises):
    """What :class:`Classifier` does with a goal about classes.

    Every class is called in the goal as in ``y``. The shifts are chosen on validation rows, with
    room for a proof of the bounds, which is then tried on the calibration rows.
    """

    def _fit_classes(self: Any, x: Array, y: Array, sample_weight: Any, groups: Any) -> None:
        if isinstance(self.problem_.objective, ClassArea):
            raise ValueError(
                f"`{self.problem_}` is an area: it has no decisions to predict with. Name what "
                "they are judged by, such as 'maximize macro(recall)'."
            )
        self.classes_, labels = read_many(y)
        goal = numbered(self.problem_, self.classes_.tolist())
        weights = read_weights(sample_weight, x, labels)
        groups = read_groups(groups, self.problem_, len(labels))
        random = check_random_state(self.random_state)
        kept = 0.0 if unprovable(self.problem_) else self._promised_share(weights)
        self.splits_ = three_parts(labels, self.validation_fraction, kept, random, FEWEST)
        portfolio = Portfolio(goal, self.model, self.method, int(self.verbose) > 0)
        portfolio.outputs = len(self.classes_)
        portfolio.budget(self.epochs, self.batch_size, self.learning_rate)
        seed = random.randint(2**31 - 1)
        trained = portfolio.train(x, labels, weights, self.splits_, seed, self.device, groups)
        self.method_, self.module_ = trained.method, trained.module
        self.history_, self.histories_ = trained.history, trained.histories
        self._set_shifts(x, labels, weights, groups)
        self._prove_shifts(x, labels, weights, groups)

    @property
    def _about_classes(self) -> bool:
        problem = getattr(self, "problem_", None)
        return problem is not None and problem.kind == "classes"

    def decision_function(self, X: Any, *, groups: Any = None) -> Array:
        """The score minus ``threshold_``: positive for what ``predict`` accepts.

        For a goal about classes: the scores minus their shifts, ``[n, K]``, of which the highest
        decides; of two classes their difference.
        """
        if not self._about_classes:
            return super().decision_function(X, groups=groups)
        shifted = self._scores(X).astype(np.float64) - self.shifts_
        return np.asarray(shifted[:, 1] - shifted[:, 0] if shifted.shape[1] == 2 else shifted)

    def predict(self, X: Any, *, groups: Any = None) -> Array:
        """The label of each row: that of the highest shifted score, or by ``threshold_``."""
        if not self._about_classes:
            return super().predict(X, groups=groups)
        return np.asarray(self.classes_[decide(self._scores(X), self.shifts_)])

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, by the curve fitted on validation rows.

        Its argmax is not the decision of ``predict``, which is made for the goal.
        """
        if not self._about_classes:
            return super().predict_proba(X)
        return np.asarray(self.calibrator_(self._scores(X).astype(np.float64)))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """The goal's metric on these data, greater is better: negated if it is minimized.

        It is taken at the best threshold, or the best shifts, on these very data, so that models
        are compared at the same operating point; a model that cannot meet the bounds gets the
        worst value.
        """
        if not self._about_classes:
            return super().score(X, y, sample_weight, groups=groups)
        return merit(
            self.problem_,
            self._scores(X),
            numbers_of(y, self.classes_),
            weights=sample_weight,
            groups=groups,
            classes=self.classes_.tolist(),
        )

    def class_run(self: Any, X: Any, y: Any, *, groups: Any = None) -> ClassRun:
        """For a goal about classes: these data as test data, for :func:`setpoint.report.page`.

        Example:
            ``Path("report.html").write_text(page(model.class_run(X_test, y_test)))`` shows the
            confusion matrices before the shifts and with them.
        """
        if not self._about_classes:
            raise ValueError("class_run is for goals about several classes, after fit.")
        promise = self.certificate_
        return ClassRun(
            goal=str(self.problem_),
            names=[str(name) for name in self.classes_.tolist()],
            splits={"test": (self._scores(X), numbers_of(y, self.classes_), groups)},
            shifts=self.shifts_.tolist(),
            certificate=None if promise is None else json.loads(promise.to_json()),
            method=self.method_,
            history=self.history_,
            group=next((c for where in self.problem_.slices for c, _ in where), "group"),
        )

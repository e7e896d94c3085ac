"""From a trained module to scores, probabilities and a threshold with its promise."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from setpoint._checks import share
from setpoint.axes.class_choice import best_shifts
from setpoint.axes.class_data import decide, numbered
from setpoint.certificates import (
    Certificate,
    certify_shifts,
    shifts_to_prove,
    why_unprovable,
)
from setpoint.estimators.calibration import Calibrator, ClassCalibrator
from setpoint.estimators.decisions import Decisions
from setpoint.estimators.inputs import (
    FEWEST,
    Array,
    Goal,
    Labels,
    as_problem,
    check_both,
    check_device,
    numbers_of,
    read_classes,
    read_groups,
    read_many,
    read_weights,
    refuse_label,
    three_parts,
)
from setpoint.estimators.networks import Portfolio
from setpoint.estimators.thresholds import (
    NotCertifiedWarning,
    Promise,
    cautious,
    chosen,
    promised,
    read_goal,
    warn_not_certified,
)
from setpoint.problems import merit
from setpoint.rates import ClassArea
from setpoint.results import Confusions, RunResult
from setpoint.train import score as scores_of
from setpoint.train.loop import group_rows


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
            own = group_rows(groups, rows)
            if counts is None and len(self.splits_["calibration"]):
                before = cautious(self.problem_, seen, labels[rows], own, self.confidence)
            before = before or chosen(self.problem_, seen, labels[rows], counts, own)
        promise = self._promise(x, labels, weights, groups, before)
        self.certificate_, threshold = promise.certificate, promise.threshold
        if threshold is None:
            if promise.reason:
                warn_not_certified(promise.reason)
            own = group_rows(groups, rows)
            threshold = before or chosen(self.problem_, seen, labels[rows], counts, own)
        self.threshold_ = threshold if before else float(threshold)

    def _promise(
        self, x: Array, labels: Labels, weights: Array | None, groups: Any, before: Any
    ) -> Promise:
        rows = self.splits_["calibration"]
        if len(rows):
            scores = self._score_rows(x[rows])
            own = group_rows(groups, rows)
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


# ------------------------------------------------------------------------------------------------
# Shifts of several classes: chosen with the model, proved on rows that nothing has seen.


FEWEST_PER_CLASS = 5
"""With fewer rows of a class than this, nothing is split off to choose by."""


class ClassPromises(ScoredRows):
    """Shifts from the validation rows, a certificate of their bounds from the calibration rows."""

    shifts_: Array
    confusions_: Confusions

    def _set_shifts(
        self: Any, x: Array, labels: Labels, weights: Array | None, groups: Any
    ) -> None:
        rows = self.splits_["validation"]
        scores, own = self._score_rows(x[rows]).astype(np.float64), group_rows(groups, rows)
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
                groups=group_rows(groups, rows),
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
        unsaid = why_unprovable(self.problem_)
        return (
            unsaid[0]
            if unsaid
            else f"a class has under {FEWEST_PER_CLASS} rows, so none are split off."
        )


# ------------------------------------------------------------------------------------------------
# Several classes: fit a goal about them, decide by shifted scores.


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
        kept = 0.0 if why_unprovable(self.problem_) else self._promised_share(weights)
        self.splits_ = three_parts(labels, self.validation_fraction, kept, random, FEWEST_PER_CLASS)
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

    def class_run(self: Any, X: Any, y: Any, *, groups: Any = None) -> RunResult:
        """For a goal about classes: these data as test data, for :func:`setpoint.reports.page`.

        Example:
            ``Path("report.html").write_text(page(model.class_run(X_test, y_test)))`` shows the
            confusion matrices before the shifts and with them.
        """
        if not self._about_classes:
            raise ValueError("class_run is for goals about several classes, after fit.")
        promise = self.certificate_
        return RunResult(
            goal=str(self.problem_),
            classes=[str(name) for name in self.classes_.tolist()],
            splits={"test": (self._scores(X), numbers_of(y, self.classes_), groups)},
            threshold=self.shifts_.tolist(),
            certificate=None if promise is None else json.loads(promise.to_json()),
            method=self.method_,
            history=self.history_,
            group=next((c for where in self.problem_.slices for c, _ in where), "group"),
        )


# ------------------------------------------------------------------------------------------------
# A classifier trained for its operating point, with scikit-learn's contract.


class Classifier(ManyClasses, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train for a goal, choose the threshold, and prove what it promises.

    The rows are split in three, class by class: to train on, to choose the best pass and method by
    (validation), and to certify the threshold on (calibration, which nothing else ever sees, so
    the certificate needs no correction for the choice). The positive class is ``pos_label``, or the
    second in sorted order. Features are standardised inside.

    With ``sample_weight`` nothing is certified, because exact binomial tails count rows, not
    weights: the calibration rows go to training, ``certificate_`` is None and the threshold is the
    best one on the validation rows, with a :class:`NotCertifiedWarning`. So it is when a class has
    fewer than 20 rows (then nothing is split off at all) and for goals that nobody can promise
    (``fpr = 0.01`` exactly; without a warning if the goal has no bound). When the certificate is
    infeasible or fails, ``certificate_.status`` says so, and the threshold falls back likewise.

    Args:
        goal: A sentence or a :class:`setpoint.Problem` with one threshold, or only bounds
            (``"fpr <= 0.01"``: then as much as possible is found under them).
        pos_label: The label that rates take as positive; None: the second in sorted order.
        model: ``"linear"``, ``"mlp"`` (64 hidden units) or an ``nn.Module`` that gives one score a
            row; it is copied.
        method: A name in ``setpoint.solvers.METHODS`` (``"implicit"``, ``"cross_entropy"``,
            ``"focal"``, ``"resampled"``, ...), or ``"auto"``: the last two and the first from one
            start, the best on validation data wins.
        epochs: Passes over the training rows; ``"auto"``: enough for 1,500 steps, at least 10.
        batch_size: Rows in a batch; of ``"implicit"`` the rarer class is a fifth of each at least.
        learning_rate: Of Adam; ``"auto"``: 0.03 for linear, 0.01 for mlp, 0.001 for a module.
        validation_fraction: The share of rows to choose by; the best pass is kept.
        calibration_fraction: The share of rows to certify on; 0: no certificate is wanted.
        confidence: Of the certificate.
        unseen: With one threshold per group, what to do in ``predict`` with a group that has none:
            ``"error"``, or decide by the ``"highest"`` (fewest alerts) or ``"lowest"`` of all.
        random_state: Decides split, initial weights and batches.
        device: Where to train, such as ``"cpu"`` or ``"cuda"``.
        verbose: 1: show progress on stderr.

    Attributes:
        classes_: Both labels, sorted.
        module_: The trained network, ``[n, d]`` raw features to logits ``[n]``.
        threshold_: Decisions are ``score > threshold_``; with one per group, a dict of them, and
            ``predict(X, groups=...)`` needs the groups.
        certificate_: What is promised, or None.
        calibrator_: Scores to probabilities, fitted on validation rows.
        history_: One dict a pass: epoch, step, loss, validation, seconds, status.
        histories_: The history of every method tried, by name; ``method_`` is the one kept.
        splits_: The rows of ``train``, ``validation`` and ``calibration``.
        shifts_: For a goal about classes (``maximize macro(recall)``): what is subtracted from the
            score of each before the highest decides. They are chosen on validation rows with room
            for a proof, and ``certificate_`` is a ``ClassCertificate`` of its bounds, if any.
        confusions_: For such a goal, who is taken for whom on validation rows, before the shifts
            and with them.
        problem_: The goal, read.
    """

    def __init__(
        self,
        goal: Goal = "minimize fnr subject to fpr <= 0.01",
        *,
        pos_label: Any = None,
        model: str | nn.Module = "linear",
        method: str = "implicit",
        epochs: int | str = "auto",
        batch_size: int = 512,
        learning_rate: float | str = "auto",
        validation_fraction: float = 0.2,
        calibration_fraction: float = 0.2,
        confidence: float = 0.95,
        unseen: str = "error",
        random_state: Any = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.goal = goal
        self.pos_label = pos_label
        self.model = model
        self.method = method
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.calibration_fraction = calibration_fraction
        self.confidence = confidence
        self.unseen = unseen
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Classifier:
        """Split, train, choose, certify.

        Args:
            X: Features, numbers without gaps, ``[n, d]``.
            y: Labels of two classes, numbers or strings; of any number for a goal about classes.
            sample_weight: Optional, weight 2 is two copies; see above.
            groups: A column of group values, or a dict of columns, for a goal about slices.
        """
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        check_device(self.device)
        self.problem_ = read_goal(self.goal, self.unseen)
        if self.problem_.kind == "classes":
            refuse_label(self.pos_label, self.problem_)
            self._fit_classes(x, y, sample_weight, groups)
            return self
        self.classes_, labels = read_classes(y, self.pos_label)
        self._place = int(self.pos_label is None or self.classes_[1] == self.pos_label)
        weights = read_weights(sample_weight, x, labels)
        groups = read_groups(groups, self.problem_, len(labels))
        random = check_random_state(self.random_state)
        shares = (self.validation_fraction, self._promised_share(weights))
        self.splits_ = three_parts(labels, *shares, random)
        check_both(labels, {n: self.splits_[n] for n in ("validation", "calibration")})
        portfolio = Portfolio(self.problem_, self.model, self.method, int(self.verbose) > 0)
        portfolio.budget(self.epochs, self.batch_size, self.learning_rate)
        seed = random.randint(2**31 - 1)
        trained = portfolio.train(x, labels, weights, self.splits_, seed, self.device, groups)
        self.method_, self.module_ = trained.method, trained.module
        self.history_, self.histories_ = trained.history, trained.histories
        self._set_threshold(x, labels, weights, groups)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = as_problem(self.goal).kind == "classes"
        return tags

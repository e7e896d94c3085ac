"""A classifier trained for its operating point, with scikit-learn's contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from torch import nn

from setpoint.estimators.classes import ManyClasses
from setpoint.estimators.goals import Goal, as_problem
from setpoint.estimators.inputs import (
    check_both,
    check_device,
    read_classes,
    read_groups,
    read_weights,
    refuse_label,
)
from setpoint.estimators.splits import three_parts
from setpoint.estimators.thresholds import read_goal
from setpoint.estimators.training import Portfolio


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

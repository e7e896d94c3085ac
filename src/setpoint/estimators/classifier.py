"""A classifier trained for its operating point, with scikit-learn's contract."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import nn

from setpoint._checks import whole
from setpoint.axes.class_data import decide, numbered
from setpoint.certificates import why_unprovable
from setpoint.certificates.copies import fingerprint_of_table, row_digests, warn_of_copies
from setpoint.certificates.hold_out import Related
from setpoint.estimators.calibration import Calibrator, ClassCalibrator
from setpoint.estimators.decisions import AnyCertificate, Decisions, ProofOptions, find_decision
from setpoint.estimators.inputs import (
    AnyArray,
    Examples,
    Labels,
    columns_of_labels,
    read_classes,
    read_decision_goal,
    read_features,
    read_groups,
    read_weights,
)
from setpoint.estimators.networks import (
    build,
    check_device,
    on_device,
    read_epochs,
    read_learning_rate,
    scores_of_rows,
)
from setpoint.estimators.splits import check_both_classes, last_of_cv, three_parts
from setpoint.problems import GoalLike, Problem, as_problem
from setpoint.results import Confusions, RunResult
from setpoint.solvers import methods_named
from setpoint.solvers.implicit import StarvedBatchWarning
from setpoint.train import STEPS, Best, Validation, fit_best, steps_for
from setpoint.train.boosted_trees import fit_trees
from setpoint.train.cross_fitting import STEPS_OF_FOLD, FitFold, cross_fit, folds_for, pays
from setpoint.train.stacking import STACKED, kinds_of_auto, stack


class Classifier(Decisions, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train for a goal, choose the threshold, and certify it.

    The rows are split in three, class by class: to train on, to choose the best pass and method by
    (validation), and to certify the threshold on (calibration, which nothing else ever sees, so
    the certificate needs no correction for the choice). The positive class is ``pos_label``, or the
    second in sorted order. Features are standardised inside.

    ``model="auto"`` on up to 10,000 rows to learn from is cross-fitted instead: each kind of model
    is trained on each two of three folds, and the score of a row by models that have not seen it
    chooses weights, thresholds and probabilities. ``splits_["train"]`` and ``["validation"]`` are
    then the same rows: all but those to certify on. With ``order`` later rows choose, as usual.

    With ``sample_weight`` nothing is certified, because exact binomial tails count rows, not
    weights: the calibration rows go to training, ``certificate_`` is None and the threshold is the
    best one on the validation rows, with a :class:`NotCertifiedWarning`. So it is when a class has
    fewer than 20 rows (then nothing is split off at all) and for goals that cannot be certified
    (``fpr = 0.01`` exactly; without a warning if the goal has no bound). When the certificate is
    infeasible or fails, ``certificate_.status`` says so, and the threshold falls back likewise.

    Args:
        goal: A sentence or a :class:`setpoint.Problem` with one threshold, or only bounds
            (``"fpr <= 0.01"``: then as much as possible is found under them).
        pos_label: The label that rates take as positive; None: the second in sorted order.
        model: ``"auto"``: a weighted sum of the scores of the following three, by weights that
            validation rows decide (trees take part if LightGBM is installed and the method is not
            named); up to 10,000 rows it is cross-fitted, see above. Or ``"linear"``, ``"mlp"`` (64
            hidden units), ``"boosted"`` (trees of LightGBM grown by log-loss; needs
            ``setpoint[boosting]``), or an ``nn.Module`` that gives one score per row; it is copied.
        method: A name in ``setpoint.solvers.METHODS`` (``"implicit"``, ``"cross_entropy"``,
            ``"focal"``, ``"resampled"``, ...), or ``"auto"``: half of the steps by cross-entropy,
            half by the implicit loss, and the best pass of both on validation data wins.
        epochs: Passes over the training rows; ``"auto"``: enough for 1,500 steps, at least 10.
        batch_size: Rows in a batch; of ``"implicit"`` the rarer class is a fifth of each at least.
        learning_rate: Of Adam; ``"auto"``: 0.03 for linear, 0.01 for mlp, 0.001 for a module.
        validation_fraction: The share of rows to choose by; the best pass is kept.
        calibration_fraction: The share of rows to certify on; 0: no certificate is wanted.
        confidence: Of the certificate.
        cv: Instead of ``calibration_fraction`` a splitter of scikit-learn (``GroupShuffleSplit``,
            ``TimeSeriesSplit``), or ``[(train, test)]`` with row numbers: the test rows of its last
            split certify, and are never trained on.
        candidates: How many models or splits were tried on these rows, if the best is used.
        accept_drift: Certify with ``order`` although the latest rows drift, with a caveat.
        unseen: With one threshold per group, what to do in ``predict`` with a group that has none:
            ``"error"``, or decide by the ``"highest"`` (fewest alerts) or ``"lowest"`` of all.
        random_state: Decides split, initial weights and batches.
        device: Where to train, such as ``"cpu"`` or ``"cuda"``.
        verbose: 1: show progress on stderr.

    Attributes:
        classes_: Both labels, sorted.
        module_: The trained model, ``[n, d]`` raw features to logits ``[n]``; of boosted trees
            ``module_.text`` is LightGBM's own format.
        model_: The name of the model (``"stacked"``: a sum, ``module_.weights`` by
            ``module_.members``), or the class of a module.
        threshold_: Decisions are ``score > threshold_``; with one per group, a dict of them, and
            ``predict(X, groups=...)`` needs the groups.
        certificate_: What is certified, or None.
        calibrator_: Scores to probabilities, fitted on validation rows.
        history_: One dict per pass: epoch, step, loss, validation, seconds, status.
        histories_: The history of every method tried, by name; ``method_`` is the one kept. With
            ``model="auto"`` by model and method, as in ``"mlp, implicit"`` (cross-fitted by fold,
            too: ``"mlp_0, implicit"``).
        splits_: The rows of ``train``, ``validation`` and ``calibration``.
        shifts_: For a goal about classes (``maximize macro(recall)``): what is subtracted from the
            score of each before the highest decides. They are chosen on validation rows with room
            for a proof, and ``certificate_`` is a ``ClassCertificate`` of its bounds, if any.
        confusions_: For such a goal, who is taken for whom on validation rows, before the shifts
            and with them.
        problem_: The goal, read.

    Examples:
        >>> import numpy as np
        >>> random = np.random.default_rng(0)
        >>> y = (random.random(3000) < 0.3).astype(int)
        >>> X = random.normal(size=(3000, 2)) + 2 * y[:, None]
        >>> model = Classifier("maximize recall subject to fpr <= 5 %", epochs=3, random_state=0)
        >>> model.fit(X, y).certificate_.status
        'certified'
        >>> model.predict(X[:2]).shape
        (2,)
    """

    def __init__(
        self,
        goal: GoalLike = "minimize fnr subject to fpr <= 0.01",
        *,
        pos_label: Any = None,
        model: str | nn.Module = "auto",
        method: str = "implicit",
        epochs: int | str = "auto",
        batch_size: int = 512,
        learning_rate: float | str = "auto",
        validation_fraction: float = 0.2,
        calibration_fraction: float = 0.2,
        confidence: float = 0.95,
        cv: Any = None,
        candidates: int = 1,
        accept_drift: bool = False,
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
        self.cv = cv
        self.candidates = candidates
        self.accept_drift = accept_drift
        self.unseen = unseen
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    module_: nn.Module
    splits_: dict[str, Labels]
    calibrator_: Calibrator | ClassCalibrator
    certificate_: AnyCertificate | None
    confusions_: Confusions

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        clusters: Any = None,
        order: Any = None,
    ) -> Classifier:
        """Split the rows, train, choose the threshold, certify it.

        Args:
            X: Features, numbers without gaps, ``[n, d]``.
            y: Labels of two classes, numbers or strings; of any number for a goal about classes.
            sample_weight: Optional, weight 2 is two copies; see above.
            groups: A column of group values, or a dict of columns, for a goal about slices.
            clusters: What each row belongs to (a customer, a patient). No cluster is in two parts,
                and the certificate is about a row of a new cluster.
            order: When each row was measured, dates or numbers: train on the past, choose on later
                rows, certify on the latest.
        """
        x, y = read_features(self, X, y)
        check_classification_targets(y)
        check_device(self.device)
        count = 2 if self.pos_label is not None else len(np.unique(y))
        self.problem_ = problem = read_decision_goal(self.goal, self.unseen, count)
        self.classes_, labels = read_classes(y, problem, self.pos_label)
        self._place = int(self.pos_label is None or self.classes_[1] == self.pos_label)
        if problem.kind == "classes":
            problem = numbered(problem, self.classes_.tolist())
        weights = read_weights(sample_weight, x, labels)
        columns = read_groups(groups, self.problem_, len(labels))
        related = Related.read(clusters, order, labels)
        random = check_random_state(self.random_state)
        given = Examples(x, labels, weights, columns, *related)
        self.splits_ = self._split(y, given, random)
        digests = row_digests(x)
        seen = np.union1d(self.splits_["train"], self.splits_["validation"])
        warn_of_copies(x, digests, seen, self.splits_["calibration"])
        best, scores = self._train(problem, given, random.randint(2**31 - 1))
        self.method_, self.module_ = best.name, best.model
        self.history_ = best.fitted[best.name].history
        chosen_on = given.part(self.splits_["validation"])._replace(rows=scores)
        self._set_decision(given, chosen_on, fingerprint_of_table(digests, labels))
        return self

    def _split(
        self, y: AnyArray, given: Examples, random: np.random.RandomState
    ) -> dict[str, Labels]:
        """The rows of each part, none without weight; a part with one class only is an error."""
        wanted = bool(self.problem_.subject_to) and not self._obstacle(given.weights)
        shares = (self.validation_fraction, self.calibration_fraction if wanted else 0.0)
        labels, related = given.labels, Related(given.clusters, given.times)
        there = np.arange(len(y)) if given.weights is None else np.flatnonzero(given.weights)
        chosen = None
        if self.cv is not None:
            train, certify = last_of_cv(self.cv, given.rows, y, related)
            chosen = (
                np.flatnonzero(np.isin(there, train)),
                np.flatnonzero(np.isin(there, certify)),
            )
        found = three_parts(
            labels[there], *shares, random, self._fewest, related.part(there), chosen
        )
        parts = {name: there[rows] for name, rows in found.items()}
        if self.problem_.kind != "classes":
            held_out = {name: parts[name] for name in ("validation", "calibration")}
            check_both_classes(labels, held_out)
        return parts

    def _train(self, problem: Problem, given: Examples, seed: int) -> tuple[Best, AnyArray]:
        """Train every model and method asked for; the best, and the scores to choose by."""
        auto, folds = self.model == "auto", None
        learned = np.union1d(self.splits_["train"], self.splits_["validation"])
        if auto and pays(len(learned), given.times):
            own = given.part(learned)
            rows = Validation(problem, *on_device(own, self.device))
            folds = folds_for(rows, own.clusters, seed)
        if folds is not None:
            self.splits_ |= {"train": learned, "validation": learned}
            crossed = cross_fit(kinds_of_auto(self.method), rows, folds, self._fold_fitter(seed))
            self.model_, found = STACKED, crossed.members
            best, scores = crossed.best, crossed.scores.cpu().numpy()
        else:
            held = given.part(self.splits_["validation"])
            judge = Validation(problem, *on_device(held, self.device))
            found = self._fit_parts(given, judge, seed)
            self.model_, best = stack(found, judge)
            scores = scores_of_rows(best.model, held.rows, self.device)
        self.histories_ = {
            f"{name}, {method}" if auto else method: one.history
            for name, tried in found.items()
            for method, one in tried.fitted.items()
        }
        return best, scores

    def _fit_parts(self, given: Examples, judge: Validation, seed: int) -> dict[str, Best]:
        """Every model by name, trained on one part and judged by another."""
        train = Validation(
            judge.problem, *on_device(given.part(self.splits_["train"]), self.device)
        )
        if isinstance(self.model, nn.Module):
            return {type(self.model).__name__: self._fit_model(self.model, train, judge, seed)}
        kinds = kinds_of_auto(self.method) if self.model == "auto" else (self.model,)
        return {kind: self._fit_model(kind, train, judge, seed) for kind in kinds}

    def _fold_fitter(self, seed: int) -> FitFold:
        """What trains a kind of model on some folds."""

        def fit(kind: str, own: Validation, held: Validation, fold: int) -> Best:
            return self._fit_model(kind, own, held, seed + fold, STEPS_OF_FOLD)

        return fit

    def _fit_model(
        self,
        model: str | nn.Module,
        own: Validation,
        judge: Validation,
        seed: int,
        fewest: int = STEPS,
    ) -> Best:
        """All methods with one kind of model, from one start, with the same budget and batches."""
        passes, size = read_epochs(self.epochs), whole(self.batch_size, "batch_size", least=1)
        outputs = len(self.classes_) if judge.problem.kind == "classes" else 1
        x, y, weights, groups = own.parts
        if model == "boosted":
            return fit_trees(x, y, validation=judge, seed=seed, weights=weights, classes=outputs)
        rate = read_learning_rate(model, self.learning_rate)
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # batches are drawn by the estimator: what they cannot hold, the certificate tells
            warnings.simplefilter("ignore", StarvedBatchWarning)
            torch.manual_seed(seed)
            seen = None if weights is None else weights.cpu().numpy()
            module = build(model, x.cpu().numpy(), seen, outputs)
            return fit_best(
                module.to(self.device),
                methods_named(self.method, judge.problem.kind),
                x,
                y,
                validation=judge,
                steps=steps_for(len(y), size, passes, fewest=fewest),
                batch_size=size,
                learning_rate=rate,
                seed=seed,
                weights=weights,
                groups=groups,
                progress=int(self.verbose) > 0,
            )

    def _set_decision(self, given: Examples, selection: Examples, table: str) -> None:
        """Calibrate probabilities and choose on ``selection``, certify on calibration rows."""
        calibration = given.part(self.splits_["calibration"])
        scores = scores_of_rows(self.module_, calibration.rows, self.device)
        calibration = calibration._replace(rows=scores)
        many, names, reason = self.problem_.kind == "classes", self.classes_.tolist(), ""
        obstacle = self._obstacle(given.weights)
        certifiable = (
            len(calibration.labels) > 0 and not obstacle and bool(self.problem_.subject_to)
        )
        if not certifiable and self.problem_.subject_to and self.calibration_fraction:
            reason = obstacle or f"a class has under {self._fewest} rows, so none are split off."
        precise = selection.rows.astype(np.float64)
        calibrator = ClassCalibrator if many else Calibrator
        self.calibrator_ = calibrator.fit(precise, selection.labels, selection.weights)
        decision = find_decision(
            self.problem_,
            selection._replace(rows=precise) if many else selection,
            calibration if certifiable else None,
            ProofOptions(self.confidence, self.candidates, self.accept_drift, table),
            classes=names,
            reason=reason,
        )
        self.certificate_ = decision.certificate
        if not many:
            self.threshold_ = decision.at
            return
        self.shifts_ = decision.at
        before, after = precise.argmax(1), decide(precise, self.shifts_)
        counted = (selection.labels, before, after, selection.weights)
        self.confusions_ = Confusions.of(tuple(names), *counted)

    def _obstacle(self, weights: AnyArray | None) -> str:
        """Why no certificate can be had, whatever the rows; empty if one can."""
        if weights is not None:
            return "sample weights break the binomial law behind it."
        unsaid = why_unprovable(self.problem_) if self.problem_.kind == "classes" else []
        return unsaid[0] if unsaid else ""

    def _scores(self, X: Any) -> AnyArray:
        check_is_fitted(self)
        x = read_features(self, X, reset=False)
        return scores_of_rows(self.module_, x, self.device)

    def predict_proba(self, X: Any) -> AnyArray:
        """The probability of each class, by the curve fitted on validation rows.

        Its argmax is not the decision of ``predict``, which is made for the goal: at
        ``threshold_``, or with ``shifts_``.
        """
        scores = self._scores(X).astype(np.float64)
        found = self.calibrator_(scores)
        if self.problem_.kind == "classes":
            return found
        columns = [1 - found, found]
        return np.column_stack(columns if self._place else columns[::-1])

    def class_run(self, X: Any, y: Any, *, groups: Any = None) -> RunResult:
        """For a goal about classes: these data as test data, for :func:`setpoint.reports.page`.

        ``Path("report.html").write_text(page(model.class_run(X_test, y_test)))`` shows the
        confusion matrices before the shifts and with them.

        Raises:
            ValueError: The goal is not about classes, or the model is not fitted.
        """
        problem = getattr(self, "problem_", None)
        if problem is None or problem.kind != "classes":
            raise ValueError("class_run is for goals about several classes, after fit.")
        certificate = self.certificate_
        return RunResult(
            goal=str(self.problem_),
            classes=[str(name) for name in self.classes_.tolist()],
            splits={"test": (self._scores(X), columns_of_labels(y, self.classes_), groups)},
            threshold=self.shifts_.tolist(),
            certificate=None if certificate is None else json.loads(certificate.to_json()),
            method=self.method_,
            history=self.history_,
            group=next((c for where in self.problem_.slices for c, _ in where), "group"),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = as_problem(self.goal).kind == "classes"
        return tags

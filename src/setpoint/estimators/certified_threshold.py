"""Any classifier, with a threshold (or shifts of classes) that is certified for new data.

What scikit-learn's ``TunedThresholdClassifierCV`` leaves out: a constraint, and a guarantee.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, _num_samples, check_is_fitted

from setpoint._checks import share
from setpoint.axes.arrays import check_unmasked
from setpoint.certificates.copies import fingerprint_of_table, row_digests, warn_of_copies
from setpoint.certificates.hold_out import Related
from setpoint.estimators.decisions import Decisions, ProofOptions, find_decision
from setpoint.estimators.inputs import (
    AnyArray,
    Examples,
    Labels,
    read_classes,
    read_decision_goal,
    read_groups,
    refuse_dates,
)
from setpoint.estimators.splits import check_both_classes, last_of_cv, three_parts
from setpoint.problems import GoalLike, as_problem

PREFIT = "prefit"


def _has(name: str) -> Any:
    def check(self: CertifiedThreshold) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


def _splits_by_groups(estimator: Any) -> bool:
    """Whether an estimator is a search whose splitter keeps groups whole (``GroupKFold``)."""
    routing = getattr(getattr(estimator, "cv", None), "get_metadata_routing", None)
    return routing is not None and routing().split.requests.get("groups") is True


class CertifiedThreshold(
    Decisions,
    ClassifierMixin,  # type: ignore[misc]
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Wrap any classifier and learn only where it decides, with a certificate.

    Scores are the ``decision_function`` of the classifier, or the probability of the positive
    class where it has none; ``threshold_scale_`` says which. When the goal cannot be certified,
    the threshold is the best one on the calibration rows, with a :class:`NotCertifiedWarning`.

    With more than two classes there are two ways. A goal about one of them (``pos_label``) holds
    for this class against the rest: rows that are not accepted get the likeliest other class. A
    goal about classes (``"maximize macro(recall)"``) gets a shift for each, chosen on half of the
    calibration rows and proved on the rest: the highest of the scores minus ``shifts_`` decides.

    Args:
        estimator: A classifier, a pipeline or a search. It is cloned and fitted, unless it is
            fitted already (``cv="prefit"``, or scikit-learn's ``FrozenEstimator``).
        goal: A sentence or a :class:`setpoint.Problem` with one threshold, or only bounds
            (``"fpr <= 0.01"``: then as much as possible is found under them).
        confidence: Of the certificate.
        calibration_fraction: The share of rows kept from the classifier to certify on. A fitted
            classifier uses all rows for it; they must not be those it was fitted on.
        cv: None: fit the classifier on the other rows. ``"prefit"``: it is fitted. A splitter of
            scikit-learn (``GroupShuffleSplit``, ``TimeSeriesSplit``), or ``[(train, test)]`` with
            row numbers: its last split says which rows train and which certify.
        candidates: How many models or splits were tried on these rows, if the best is used.
        accept_drift: Certify with ``order`` although the latest rows drift, with a caveat.
        pos_label: The positive class; the second of ``classes_`` by default.
        unseen: With one threshold per group, what to do in ``predict`` with a group that has none:
            ``"error"``, or decide by the ``"highest"`` (fewest alerts) or ``"lowest"`` of all.
        random_state: Decides which rows are kept.

    Attributes:
        estimator_: The fitted classifier.
        threshold_: Decisions are ``score > threshold_``; with one per group, a dict of them, chosen
            on every other calibration row and proved on the rest.
        threshold_scale_: What ``threshold_`` is compared with: ``"probability"`` or ``"score"``;
            of ``shifts_`` ``"score"`` or ``"log probability"``.
        shifts_: For a goal about classes, what is subtracted from the score of each.
        certificate_: What is certified, or None if a class had under 20 rows.
        splits_: The rows of ``train`` and ``calibration``.
        problem_: The goal, read.

    Examples:
        Ten rows of each of 600 customers, promised for rows of new customers:

        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> random = np.random.default_rng(0)
        >>> customer = np.repeat(np.arange(600), 10)
        >>> y = (random.random(600) < 0.3)[customer].astype(int)
        >>> X = (random.normal(size=600)[customer] + 3 * y)[:, None]
        >>> model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1", random_state=0)
        >>> model.fit(X, y, clusters=customer).certificate_.clusters
        120
    """

    def __init__(
        self,
        estimator: Any,
        *,
        goal: GoalLike = "minimize fnr subject to fpr <= 0.01",
        confidence: float = 0.95,
        calibration_fraction: float = 0.2,
        cv: Any = None,
        candidates: int = 1,
        accept_drift: bool = False,
        pos_label: Any = None,
        unseen: str = "error",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.goal = goal
        self.confidence = confidence
        self.calibration_fraction = calibration_fraction
        self.cv = cv
        self.candidates = candidates
        self.accept_drift = accept_drift
        self.pos_label = pos_label
        self.unseen = unseen
        self.random_state = random_state

    estimator_: Any

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        clusters: Any = None,
        order: Any = None,
        **fit_params: Any,
    ) -> CertifiedThreshold:
        """Fit the classifier (unless it is), then certify its threshold on rows it has not seen.

        Args:
            X: Whatever the classifier takes.
            y: Labels of two classes; of any number with ``pos_label`` or a goal about classes.
            groups: A column of group values, or a dict of columns, for a goal about slices.
            clusters: What each row belongs to (a customer, a patient). Clusters are kept whole, and
                the certificate is about a row of a new cluster.
            order: When each row was measured, dates or numbers: the classifier is fitted on the
                past and certified on the latest rows.
            **fit_params: Passed on to the classifier; values with one entry per row are cut to its
                rows. ``sample_weight`` is its business only: the certificate counts every row
                once, except that rows of weight 0 are absent.
        """
        for values, name in ((X, "X"), (y, "y")):
            check_unmasked(values, name)
        X, y = indexable(X, y)
        y = _check_y(y)
        count = 2 if self.pos_label is not None else len(np.unique(y))
        self.problem_ = read_decision_goal(self.goal, self.unseen, count)
        columns = read_groups(groups, self.problem_, len(y))
        related = Related.read(clusters, order, y)
        weights = fit_params.get("sample_weight")
        if weights is not None:
            rows = np.flatnonzero(np.asarray(weights) != 0)
            fit_params, columns = (
                _cut(given or {}, rows, len(y)) for given in (fit_params, columns)
            )
            X, y, related = _safe_indexing(X, rows), y[rows], related.part(rows)
        check_classification_targets(y)
        known = read_classes(y, self.problem_, self.pos_label, against_rest=True)
        self.classes_, labels = known
        self._place = 1
        if self.pos_label is not None:
            self._place = self.classes_.tolist().index(self.pos_label)
        random = check_random_state(self.random_state)
        digests = row_digests(X)
        self._fit_estimator(X, y, labels, related, random, fit_params)
        warn_of_copies(X, digests, self.splits_["train"], self.splits_["calibration"])
        given = Examples(np.arange(len(y)), labels, None, columns or None, *related)
        self._set_threshold(X, given, random, fingerprint_of_table(digests, labels))
        return self

    def _fit_estimator(
        self,
        X: Any,
        y: AnyArray,
        labels: Labels,
        related: Related,
        random: np.random.RandomState,
        params: Any,
    ) -> None:
        everyone = np.arange(len(labels))
        fitted = isinstance(self.cv, str) and self.cv == PREFIT
        if fitted or isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            self.splits_ = {"train": everyone[:0], "calibration": everyone}
        else:
            fraction = share(self.calibration_fraction, "calibration_fraction", ends=False)
            chosen = None if self.cv is None else last_of_cv(self.cv, X, y, related)
            parts = three_parts(labels, 0.0, fraction, random, self._fewest, related, chosen)
            if self.problem_.kind != "classes":
                check_both_classes(labels, {"calibration": parts["calibration"]})
            self.splits_ = {name: parts[name] for name in ("train", "calibration")}
            rows = parts["train"]
            self.estimator_ = clone(self.estimator)
            if _routing_enabled():
                params = process_routing(self, "fit", **params).estimator.fit
            own = _cut(params, rows, len(labels))
            if related.clusters is not None and _splits_by_groups(self.estimator):
                own = {"groups": related.clusters[rows], **own}
            try:
                self.estimator_.fit(_safe_indexing(X, rows), y[rows], **own)
            except (ValueError, TypeError) as refused:
                refuse_dates(X)
                if y.dtype.kind not in "OUST":
                    raise
                raise type(refused)(self._refused_names(refused)) from refused
        known = list(self.estimator_.classes_)
        if known != list(self.classes_):
            raise ValueError(
                f"The classifier was fitted on the classes {known}; y has {list(self.classes_)}."
            )

    def _refused_names(self, refused: Exception) -> str:
        """What a classifier said that was fitted on labels of text, with a cure."""
        told = str(refused).strip().splitlines() or [""]
        names = self.classes_.tolist()
        positive = names[self._place]
        cure = f"y == {positive!r}" if len(names) == 2 else "LabelEncoder().fit_transform(y)"
        return (
            f"{type(self.estimator).__name__} could not be fitted: {told[-1]:.300} If it takes "
            f"numbers for labels only, as XGBoost does, pass {cure} instead of y."
        )

    def _set_threshold(
        self, X: Any, given: Examples, random: np.random.RandomState, table: str
    ) -> None:
        """Choose and certify on calibration rows; without any, choose on the training rows.

        Thresholds per group are chosen on half of the calibration rows and proved on the rest.
        """
        rows, reason = self.splits_["calibration"], ""
        kept = len(rows) > 0
        if not kept:
            rows = self.splits_["train"]
            reason = f"a class has under {self._fewest} rows, so none are split off."
        selection = given.part(rows)._replace(rows=self._scores(_safe_indexing(X, rows)))
        calibration = selection if kept else None
        if self.problem_.kind == "classes" and not self.problem_.subject_to:
            calibration, reason = None, ""  # there is nothing to prove
        elif kept and self.problem_.kind != "everyone":
            halves = Related(selection.clusters, selection.times).halves(len(rows), random)
            selection, calibration = (selection.part(half) for half in halves)
        options = ProofOptions(self.confidence, self.candidates, self.accept_drift, table)
        names = self.classes_.tolist()
        decision = find_decision(
            self.problem_, selection, calibration, options, classes=names, reason=reason
        )
        self.certificate_ = decision.certificate
        if self.problem_.kind == "classes":
            self.shifts_ = decision.at
        else:
            self.threshold_ = decision.at

    def get_metadata_routing(self) -> MetadataRouter:
        """What of the metadata of ``fit`` is for the classifier inside."""
        inside = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=inside)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> AnyArray:
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
    def feature_names_in_(self) -> AnyArray:
        """The names of the columns the classifier was fitted on, if they had names."""
        try:
            return np.asarray(self.estimator_.feature_names_in_)
        except AttributeError:
            raise AttributeError("feature_names_in_ needs columns with names.") from None

    @property
    def threshold_scale_(self) -> str:
        """What thresholds are compared with: see the attributes of the class."""
        check_is_fitted(self, "estimator_")
        if hasattr(self.estimator_, "decision_function"):
            return "score"
        return "log probability" if self.problem_.kind == "classes" else "probability"

    def _scores(self, X: Any) -> AnyArray:
        """One score per row; for a goal about classes one for each class, ``[n, K]``."""
        found = self._outputs(X)
        if self.problem_.kind == "classes":
            if self.threshold_scale_ == "log probability":
                return np.asarray(np.log(np.maximum(found, np.finfo(np.float64).tiny)))
            return np.column_stack([-found, found]) if found.ndim == 1 else found
        if found.ndim == 1:
            return found if self._place else -found
        return np.ascontiguousarray(found[:, self._place])

    def _outputs(self, X: Any) -> AnyArray:
        """What the classifier says of each row: one number (of two classes), or one per class."""
        check_is_fitted(self, "estimator_")
        for name in ("decision_function", "predict_proba"):
            if hasattr(self.estimator_, name):
                found = np.asarray(getattr(self.estimator_, name)(X))
                if found.ndim == 2 and found.shape[1] != len(self.classes_):
                    raise ValueError(
                        f"{type(self.estimator_).__name__}.{name} gives {found.shape[1]} numbers a "
                        f"row, and there are {len(self.classes_)} classes. Of an SVC ask for "
                        "decision_function_shape='ovr'."
                    )
                return found
        raise TypeError(
            f"{type(self.estimator_).__name__} has neither decision_function nor predict_proba: "
            "there is no score to put a threshold on."
        )

    def _rest(self, X: Any) -> Any:
        """Of two classes the other one, of several the likeliest of the others."""
        if len(self.classes_) == 2:
            return 1 - self._place
        found = self._outputs(X).astype(np.float64)
        found[:, self._place] = -np.inf
        return found.argmax(1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a goal that fit will refuse
            about = as_problem(self.goal).kind == "classes"
            tags.classifier_tags.multi_class = about or self.pos_label is not None
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _cut(params: dict[str, Any], rows: AnyArray, count: int) -> dict[str, Any]:
    """Parameters of ``fit`` for some rows: values with one entry per row are cut, others kept."""

    def per_row(value: Any) -> bool:
        try:
            return not isinstance(value, (str, bytes)) and _num_samples(value) == count
        except TypeError:
            return False

    return {k: _safe_indexing(v, rows) if per_row(v) else v for k, v in params.items()}

"""Any classifier with ``predict_proba`` or ``decision_function``: LightGBM, and one like TabPFN.

    pip install "setpoint[sklearn]" lightgbm && python examples/any_classifier.py

TabPFN and its kin do not train: ``fit`` keeps the rows, and ``predict_proba`` looks at all of them
at once. The stand-in below does that with softmax attention over distances, so that the example
runs without a download; ``from tabpfn import TabPFNClassifier`` goes in its place.
"""

import numpy as np
from lightgbm import LGBMClassifier
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, make_classification

from setpoint.estimators import CertifiedThreshold


class InContext(ClassifierMixin, BaseEstimator):
    """Keeps the rows it is given, and attends to them."""

    def fit(self, X, y):
        """Keep the rows."""
        self.classes_, self.labels_ = np.unique(y, return_inverse=True)
        self.mean_, self.scale_ = X.mean(0), X.std(0) + 1e-9
        self.rows_ = (X - self.mean_) / self.scale_
        return self

    def predict_proba(self, X):
        """The labels of the rows that are near."""
        near = softmax(-(cdist((X - self.mean_) / self.scale_, self.rows_) ** 2) / 4, axis=1)
        return near @ np.eye(len(self.classes_))[self.labels_]

    def predict(self, X):
        """The likeliest class."""
        return self.classes_[self.predict_proba(X).argmax(1)]


def main() -> None:
    x, y = make_classification(6000, 12, weights=[0.8], class_sep=1.5, random_state=0)
    kind = np.where(y == 1, "fraud", "good")
    for estimator in (LGBMClassifier(n_estimators=60, n_jobs=1, verbosity=-1), InContext()):
        model = CertifiedThreshold(
            estimator,
            goal="fpr <= 2 %",
            pos_label="fraud",
            calibration_fraction=0.3,
            random_state=0,
        ).fit(x[:4000], kind[:4000])
        found, truth = model.predict(x[4000:]) == "fraud", y[4000:] == 1
        print(
            f"{type(estimator).__name__}: {model.certificate_.status}, {model.threshold_scale_} > "
            f"{model.threshold_:.3f}; new rows: fpr {found[~truth].mean():.2%}, "
            f"recall {found[truth].mean():.0%}"
        )

    x, y = load_digits(return_X_y=True)  # ten classes
    one = CertifiedThreshold(
        InContext(), goal="fpr <= 2 %", pos_label=8, calibration_fraction=0.4, random_state=0
    ).fit(x[:1200], y[:1200])
    print(f"an 8 against the rest: {one.certificate_.status}, fpr <= 2 % of the other digits")
    shifted = CertifiedThreshold(InContext(), goal="maximize lowest(recall)", random_state=0)
    shifted.fit(x[:1200], y[:1200])
    accuracy = (shifted.predict(x[1200:]) == y[1200:]).mean()
    print(f"a shift for each of {len(shifted.shifts_)} digits: accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()

"""scikit-learn's own checks. What is skipped is listed here by name, with the reason."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from setpoint.estimators import CertifiedThreshold, Classifier

ARGMAX = (
    "demands that argmax of predict_proba equals predict: only the threshold with probability 0.5 "
    "can satisfy that, and an operating point is another one"
)
SKIPPED = {"check_classifiers_train": ARGMAX}
COUNTED = "trees of LightGBM count rows, not weights, where a leaf must have so many"
OF_TREES = {"check_sample_weight_equivalence_on_dense_data": COUNTED}
ESTIMATORS = [
    Classifier(model="linear", epochs=60),
    Classifier(epochs=10),
    CertifiedThreshold(LogisticRegression()),
]


def skipped(estimator):
    return SKIPPED | OF_TREES if getattr(estimator, "model", "") == "auto" else SKIPPED


@pytest.mark.filterwarnings("ignore::setpoint.estimators.NotCertifiedWarning")
@pytest.mark.filterwarnings("ignore::setpoint.estimators.CopiedRowsWarning")  # checks copy rows
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=skipped)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore::setpoint.estimators.NotCertifiedWarning")
def test_what_the_skipped_check_would_have_told(estimator):
    """All of check_classifiers_train but the argmax: it learns, and decision and predict agree."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.datasets import make_blobs
    from sklearn.preprocessing import StandardScaler

    x, y = make_blobs(n_samples=300, random_state=0)
    x, y = StandardScaler().fit_transform(x[y != 2]), y[y != 2]
    fitted = clone(estimator).set_params(random_state=0).fit(x, y)
    assert np.mean(fitted.predict(x) == y) > 0.83
    assert fitted.decision_function(x).shape == (len(x),)
    assert ((fitted.decision_function(x) > 0) == (fitted.predict(x) == fitted.classes_[1])).all()
    probabilities = fitted.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    order = np.argsort(fitted.decision_function(x))
    assert (np.diff(probabilities[order, 1]) >= 0).all()
    with pytest.raises(ValueError, match="features"):
        fitted.predict(x.T)

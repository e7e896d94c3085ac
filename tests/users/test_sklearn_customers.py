"""scikit-learn: ten rows of every customer, and a promise for new customers."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from setpoint.estimators import CertifiedThreshold


def customers(seed, count, rows=10):
    """Rows of a customer are nearly the same; labels are the customer's."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(count), rows)
    bad = random.random(count) < 0.3
    centre = random.normal(size=(count, 4)) + 0.8 * bad[:, None]
    x = centre[who] + 0.05 * random.normal(size=(count * rows, 4))
    return x, bad[who].astype(int), who


@pytest.fixture(scope="module")
def data():
    return customers(0, 500), customers(1, 2000)


def fitted(x, y, **given):
    forest = RandomForestClassifier(20, random_state=0, n_jobs=1)
    model = CertifiedThreshold(forest, goal="fpr <= 0.15", calibration_fraction=0.5, random_state=0)
    return model.fit(x, y, **given)


def test_customers_kept_whole_keep_the_promise(data):
    (x, y, who), (new, truth, _) = data
    model = fitted(x, y, clusters=who)
    assert model.certificate_.certified
    train, kept = (set(who[model.splits_[part]]) for part in ("train", "calibration"))
    assert not train & kept
    assert np.mean(model.predict(new)[truth == 0] == 1) <= 0.15


@pytest.mark.filterwarnings("ignore")
def test_without_them_the_same_promise_breaks(data):
    """Why ``clusters`` is needed: rows of one customer on both sides."""
    (x, y, _), (new, truth, _) = data
    model = fitted(x, y)
    assert np.mean(model.predict(new)[truth == 0] == 1) > 0.15

"""Several classes from labels to decisions: the estimator, its batches, its page."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from setpoint.estimators import CertifiedThreshold, Classifier
from setpoint.estimators.class_calibrator import ClassCalibrator
from setpoint.report import page
from setpoint.results import class_findings
from setpoint.results.confusion import Confusions
from setpoint.train import Classwise
from setpoint.train.class_methods import EvenClasses

GOAL = 'maximize macro(recall) subject to coverage of "<b>" at 0.3'


@pytest.fixture(scope="module")
def fitted():
    x, y = load_wine(return_X_y=True)
    names = np.array(["<b>", "pinot", "riesling"])[y]
    return Classifier(GOAL, epochs=60, random_state=0).fit(x, names), x, names


def test_predictions_are_the_highest_shifted_scores(fitted):
    model, x, names = fitted
    shifted = model.decision_function(x)
    assert shifted.shape == (len(x), 3)
    assert np.array_equal(model.predict(x), model.classes_[shifted.argmax(1)])
    assert (model.predict(x) == names).mean() > 0.9
    rows = model.splits_["validation"]
    share = (model.predict(x[rows]) == "<b>").mean()
    assert abs(share - 0.3) <= 2 / len(rows)
    assert model.certificate_ is None


def test_probabilities_and_score(fitted):
    model, x, names = fitted
    p = model.predict_proba(x)
    assert np.allclose(p.sum(1), 1)
    assert (model.classes_[p.argmax(1)] == names).mean() > 0.9
    assert 0.9 < model.score(x, names) <= 1
    with pytest.raises(ValueError, match="not there in fit"):
        model.score(x[:2], ["<b>", "merlot"])


def test_the_confusion_before_and_after_is_shown(fitted):
    model, x, names = fitted
    rows = model.splits_["validation"]
    assert model.confusions_.after.sum() == len(rows)
    right = (model.predict(x[rows]) == names[rows]).sum()
    assert model.confusions_.after.trace() == right
    assert "recall" in str(model.confusions_)
    run = model.class_run(x[rows], names[rows])
    shown = page(run)
    assert "Before" in shown
    assert "After" in shown
    assert "<b>" not in shown.replace("<body>", "")  # names of classes are text
    assert np.array_equal(class_findings(run).confusions.after, model.confusions_.after)
    with pytest.raises(ValueError, match="goals about several classes"):
        Classifier().class_run(x, names)
    gone = Confusions(("a", "b"), np.diag([2.0, 0.0]), np.diag([2.0, 0.0]))
    assert "-" in str(gone)


def test_two_classes_decide_by_one_number_and_methods_have_names():
    x, y = load_iris(return_X_y=True)
    two = y < 2
    goal = "minimize fnr of 1 subject to fpr of 1 <= 0.1"
    model = Classifier(goal, epochs=5, random_state=0).fit(x[two], y[two])
    assert model.decision_function(x).shape == (len(x),)
    assert np.array_equal(model.predict(x) == 1, model.decision_function(x) > 0)
    for method in ("auto", "weighted", "focal"):
        model = Classifier("maximize lowest(recall)", method=method, epochs=5, random_state=1)
        assert clone(model).fit(x, y).predict(x).shape == (len(x),)
    with pytest.raises(ValueError, match="'weighted'"):
        Classifier("maximize macro(recall)", method="pairwise").fit(x, y)


def test_goals_that_do_not_fit_are_refused():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Only binary"):
        Classifier().fit(x, y)
    with pytest.raises(ValueError, match="no class 7"):
        Classifier("maximize recall of 7").fit(x, y)
    with pytest.raises(ValueError, match="no decisions"):
        Classifier("maximize auc_mu").fit(x, y)
    with pytest.raises(ValueError, match="about several"):
        CertifiedThreshold(Classifier(), goal="maximize macro(recall)").fit(x, y)


def test_every_batch_has_some_of_every_class_and_weights_undo_it():
    labels = torch.tensor([0] * 900 + [1] * 90 + [2] * 10)
    for rows, weights in Classwise(50, least=6).draw(labels, steps=3, seed=0):
        counts = torch.bincount(labels[rows])
        assert counts.min() >= 6
        assert counts.sum() == 50
        shares = torch.bincount(labels[rows], weights=weights) / 50
        assert torch.allclose(shares, torch.tensor([0.9, 0.09, 0.01]), atol=1e-6)
    rows, weights = next(EvenClasses(48).draw(labels, steps=1, seed=0))
    assert torch.bincount(labels[rows]).tolist() == [16, 16, 16]
    assert weights is None


def test_the_calibrator_finds_the_scale_and_the_offsets():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20_000, 3)) * 2
    p = np.exp(z + np.array([0, 1, -1]))
    p /= p.sum(1, keepdims=True)
    labels = (p.cumsum(1) < rng.random((20_000, 1))).sum(1)
    found = ClassCalibrator.fit(5 * z, labels)
    assert abs(found(5 * z) - p).max() < 0.03  # 20,000 examples: a standard error of about 0.01

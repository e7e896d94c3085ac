"""Several classes from labels to decisions: the estimator, its batches, its page."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from setpoint.certificates import ClassCertificate
from setpoint.estimators import CertifiedThreshold, Classifier, NotCertifiedWarning
from setpoint.estimators.calibration import ClassCalibrator
from setpoint.reports import page
from setpoint.results import Findings
from setpoint.results.confusion import Confusions
from setpoint.solvers import CLASS_METHODS
from setpoint.train import Classwise

GOAL = 'maximize macro(recall) subject to coverage of "<b>" at 0.3'


@pytest.fixture(scope="module")
def fitted():
    x, y = load_wine(return_X_y=True)
    names = np.array(["<b>", "pinot", "riesling"])[y]
    model = Classifier(GOAL, model="linear", epochs=60, random_state=0)
    with pytest.warns(NotCertifiedWarning, match="exact value cannot be proved"):
        return model.fit(x, names), x, names


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
    assert len(model.splits_["calibration"]) == 0  # nothing to promise: those rows are trained on


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
    assert np.array_equal(Findings(run).confusions.after, model.confusions_.after)
    with pytest.raises(ValueError, match="goals about several classes"):
        Classifier().class_run(x, names)
    gone = Confusions(("a", "b"), np.diag([2.0, 0.0]), np.diag([2.0, 0.0]))
    assert "-" in str(gone)


def test_two_classes_decide_by_one_number_and_methods_have_names():
    x, y = load_iris(return_X_y=True)
    two = y < 2
    goal = "minimize fnr of 1 subject to fpr of 1 <= 0.1"
    with pytest.warns(NotCertifiedWarning, match="infeasible.*it takes 29 at least") as told:
        model = Classifier(goal, model="linear", epochs=5, random_state=0).fit(x[two], y[two])
    assert told[0].filename == __file__
    assert model.certificate_.status == "infeasible"
    assert model.decision_function(x).shape == (len(x),)
    assert np.array_equal(model.predict(x) == 1, model.decision_function(x) > 0)
    for method in ("auto", "weighted", "focal"):
        model = Classifier(
            "maximize lowest(recall)", method=method, model="linear", epochs=5, random_state=1
        )
        assert clone(model).fit(x, y).predict(x).shape == (len(x),)
    with pytest.raises(ValueError, match="'weighted'"):
        Classifier("maximize macro(recall)", method="pairwise").fit(x, y)


def sample(n=3000, seed=0):
    """Three kinds of 60, 25 and 15 %, told apart by two numbers."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    return rng.normal(size=(n, 2)) + 2.5 * np.eye(3)[kind][:, :2], kind


PROMISE = "maximize accuracy subject to recall of 2 >= 0.6 and lowest(recall) >= 0.5"


def test_bounds_are_proved_on_rows_that_nothing_has_seen():
    x, y = sample()
    model = Classifier(PROMISE, model="linear", epochs=3, random_state=0).fit(x, y)
    promise, rows = model.certificate_, model.splits_["calibration"]
    assert promise.certified
    assert promise.examples == len(rows) == 600
    assert set(rows).isdisjoint(model.splits_["train"])
    assert set(rows).isdisjoint(model.splits_["validation"])
    own = rows[y[rows] == 2]
    right = (model.predict(x[own]) == 2).sum()
    assert promise.claims[0].counts == f"{right} of {len(own)}"
    assert promise.shifts == tuple(model.shifts_)
    assert ClassCertificate.from_json(promise.to_json()) == promise
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate_ == promise
    assert "✓ Certified" in page(again.class_run(x, y))
    new, kinds = sample(seed=1)
    scores = model.decision_function(new) + model.shifts_
    assert promise.check(scores, kinds).verdict == "ok"
    assert promise.check(scores[kinds < 2]).verdict == "drift"


@pytest.mark.parametrize(
    ("options", "weights", "why"),
    [
        ({"goal": "maximize accuracy subject to lowest(recall) >= 0.9"}, None, "at least 0."),
        ({"goal": "maximize accuracy subject to recall of 2 >= 0.99"}, None, "it takes 299"),
        ({}, np.arange(1.0, 3001), "sample weights break the binomial law"),
        ({"rows": 12}, None, "a class has under 5 rows"),
        ({"calibration_fraction": 0.0}, None, None),
    ],
)
def test_why_nothing_is_promised_is_said(options, weights, why):
    options = dict(options)
    rows = options.pop("rows", 3000)
    x, y = sample()
    model = Classifier(
        **{"goal": PROMISE, "model": "linear", "epochs": 1, "random_state": 0} | options
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(x[:rows], y[:rows], sample_weight=weights)
    messages = [str(w.message) for w in told if w.category is NotCertifiedWarning]
    assert (model.certificate_ is None) == ("goal" not in options)
    if why is None:
        assert messages == []
    else:
        assert why in messages[-1]
        assert "The shifts are the best ones" in messages[-1]
    assert model.predict(x).shape == y.shape


def test_goals_that_do_not_fit_are_refused():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Only binary"):
        Classifier().fit(x, y)
    with pytest.raises(ValueError, match="no class 7"):
        Classifier("maximize recall of 7").fit(x, y)
    with pytest.raises(ValueError, match="no decisions"):
        Classifier("maximize auc_mu").fit(x, y)
    with pytest.raises(ValueError, match="a goal about classes"):
        CertifiedThreshold(Classifier(), goal="maximize macro(recall)").fit(x, y)


def test_every_batch_has_some_of_every_class_and_weights_undo_it():
    labels = torch.tensor([0] * 900 + [1] * 90 + [2] * 10)
    for rows, weights in Classwise(50, least=6).draw(labels, steps=3, seed=0):
        counts = torch.bincount(labels[rows])
        assert counts.min() >= 6
        assert counts.sum() == 50
        shares = torch.bincount(labels[rows], weights=weights) / 50
        assert torch.allclose(shares, torch.tensor([0.9, 0.09, 0.01]), atol=1e-6)
    rows, weights = next(CLASS_METHODS["resampled"].sampler(48).draw(labels, steps=1, seed=0))
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

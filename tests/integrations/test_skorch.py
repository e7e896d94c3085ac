"""Criteria as skorch's ``criterion=``, and raw scores for thresholds."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from torch import nn

from setpoint import CrossEntropy, Implicit, Lagrangian, roc_auc, tpr_at_fpr
from setpoint.integrations.skorch import OperatingNet


def data(n=300):
    random = np.random.default_rng(0)
    x = random.normal(size=(n, 3)).astype(np.float32)
    return x, (x[:, 0] + 0.5 * random.normal(size=n) > 0.5).astype(np.float32)


def net(criterion=Implicit, **options):
    usual = {"criterion__problem": tpr_at_fpr(0.1), "max_epochs": 8, "lr": 0.05, "verbose": 0}
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    return OperatingNet(
        module,
        criterion=criterion,
        optimizer=torch.optim.Adam,
        train_split=None,
        batch_size=100,
        **{**usual, **options},
    )


@pytest.mark.parametrize("criterion", [Implicit, Lagrangian])
def test_training_improves_the_goal(criterion):
    x, y = data()
    goal = tpr_at_fpr(0.1)
    model = net(criterion).initialize()
    before = goal.evaluate(model.decision_function(x), y)
    model.fit(x, y)
    assert goal.evaluate(model.decision_function(x), y) > before + 0.1
    assert model.criterion_.status != "not started"


def test_predictions_are_those_of_the_last_threshold_and_scores_are_raw():
    x, y = data()
    model = net().fit(x, y)
    scores = model.decision_function(x)
    direct = model.module_(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(scores, direct)
    threshold = float(model.criterion_.thresholds)
    np.testing.assert_array_equal(model.predict(x), scores > threshold)
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-5)


def test_a_clone_and_a_search_over_problems_work():
    x, y = data()
    problems = [tpr_at_fpr(0.05), tpr_at_fpr(0.2)]
    search = GridSearchCV(
        clone(net(max_epochs=1)),
        {"criterion__problem": problems},
        scoring=lambda model, x, y: -float(np.mean(model.predict(x)[y == 0])),
        cv=2,
        error_score="raise",
    )
    search.fit(x, y)
    chosen = search.best_params_["criterion__problem"]
    assert chosen in problems
    assert search.best_estimator_.criterion_.problem == chosen


def test_several_thresholds_are_no_decision():
    x, y = data()
    model = net(criterion__problem=roc_auc(fpr=(0, 0.2), points=3), max_epochs=1).fit(x, y)
    assert model.decision_function(x).shape == (300,)
    with pytest.raises(ValueError, match=r"holds 3 thresholds.*decision_function"):
        model.predict(x)


def test_a_criterion_without_a_threshold_decides_at_zero():
    x, y = data()
    model = net(CrossEntropy, max_epochs=1).fit(x, y)
    np.testing.assert_array_equal(model.predict(x), model.decision_function(x) > 0)


def test_labels_of_text_are_told_with_the_line_that_encodes_them():
    x, y = data()
    texts = np.where(y > 0, "spam", "ham")
    with pytest.raises(TypeError, match=r"texts \('ham', 'spam'\).*== 'spam'\)"):
        net().fit(x, texts)
    net(max_epochs=1).fit(x, (np.asarray(texts) == "spam").astype(np.float32))

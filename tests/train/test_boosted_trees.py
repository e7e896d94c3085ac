"""Boosted trees as a model: what is kept, what is saved, what is refused."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

import setpoint as sp
from setpoint.train import Validation
from setpoint.train.boosted_trees import LOG_LOSS, TREES, BoostedTrees, fit_trees

lightgbm = pytest.importorskip("lightgbm")
GOAL = sp.fnr_at_fpr(0.05)


def rings(seed: int, n: int = 1500):
    """Positives lie in a ring: no linear model can tell them."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2))
    y = (np.abs(np.hypot(*x.T) - 1.2) < 0.35) ^ (random.random(n) < 0.02)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.int64))


def trees(x, y, **options):
    return fit_trees(x, y, seed=0, **options).fitted[LOG_LOSS]


@pytest.fixture(scope="module")
def grown():
    return trees(*rings(0), validation=Validation(GOAL, *rings(1)))


def test_log_loss_on_validation_rows_stops_the_growth(grown):
    x, y = (part.numpy() for part in rings(1))
    booster = lightgbm.Booster(model_str=grown.model.text)
    assert booster.num_trees() == grown.best_epoch < TREES

    def loss(trees):
        return log_loss(y, booster.predict(x, num_iteration=trees))

    assert loss(grown.best_epoch) == min(loss(k) for k in range(1, grown.best_epoch + 1))
    assert Validation(GOAL, *rings(1)).metric(grown.model)[0] == grown.best


def test_scores_are_those_of_lightgbm_and_copies_score_alike(grown):
    x, y = rings(2)
    scores = grown.model(x)
    raw = lightgbm.Booster(model_str=grown.model.text).predict(x.numpy(), raw_score=True)
    assert (scores.numpy() == raw).all()
    assert GOAL.evaluate(scores, y) < 0.5
    for twin in (copy.deepcopy(grown.model), pickle.loads(pickle.dumps(grown.model))):
        assert torch.equal(twin(x), scores)
    assert torch.equal(BoostedTrees(grown.model.text)(x), scores)


def test_the_same_seed_gives_the_same_trees(grown):
    again = trees(*rings(0), validation=Validation(GOAL, *rings(1)))
    assert again.model.text == grown.model.text


def test_weights_are_used():
    x, y = rings(0)
    weights = torch.where(x[:, 0] > 0, 1.0, 0.0)
    half = trees(x, y, weights=weights, validation=Validation(GOAL, *rings(1)))
    x, y = rings(3)
    right, left = (
        GOAL.evaluate(half.model(x[side]), y[side]) for side in (x[:, 0] > 0, x[:, 0] < 0)
    )
    assert right < left


def test_several_classes_have_a_score_each():
    x, _ = rings(0)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5)
    goal = sp.Problem(maximize=sp.macro(sp.recall))
    found = trees(x, y, validation=Validation(goal, x, y), classes=3)
    assert found.model(x).shape == (1500, 3)
    assert found.best > 0.9


def test_trees_are_not_compiled(grown):
    with pytest.raises(Exception, match="LightGBM's own format"):
        torch.export.export(grown.model, (rings(2)[0],))

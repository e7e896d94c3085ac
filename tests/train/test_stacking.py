"""Stacking: weights against scikit-learn and brute force, and the sum as a model."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from setpoint import fnr_at_fpr
from setpoint.train import Validation
from setpoint.train.loop import Fitted
from setpoint.train.portfolio import Best
from setpoint.train.stacking import (
    STACKED,
    Stacked,
    kinds_of_auto,
    stack,
    stacking_weights,
    why_no_trees,
)


def rows(n=400, seed=0, classes=2):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    signal = np.eye(classes)[labels]
    good, weak, other = (signal * size + random.normal(size=(n, classes)) for size in (2, 0.7, 1))
    return np.stack([good, weak, other], axis=1), labels


def binary(scores):
    """Log-odds of the second class alone; the first is 0."""
    odds = scores[..., 1] - scores[..., 0]
    return np.stack([np.zeros_like(odds), odds], axis=2)


def test_weights_are_those_of_scikit_learn_if_none_is_negative():
    scores, labels = rows()
    scores = binary(scores)
    odds = scores[..., 1]
    deviation = odds.std(0)
    reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(odds / deviation, labels)
    expected = reference.coef_[0] / deviation
    assert (expected > 0).all()
    weights, shift = stacking_weights(scores, labels)
    np.testing.assert_allclose(weights, expected, rtol=1e-3)
    np.testing.assert_allclose(shift[1] - shift[0], reference.intercept_[0], atol=2e-3)


def test_a_member_that_speaks_against_the_labels_has_no_weight():
    scores, labels = rows()
    turned = np.concatenate([scores, -scores[:, :1]], axis=1)
    weights, _ = stacking_weights(binary(turned), labels)
    assert weights[3] == 0.0
    assert weights[0] > 0.0


@pytest.mark.parametrize("classes", [2, 3])
def test_no_other_weights_have_a_lower_loss(classes):
    scores, labels = rows(classes=classes)
    if classes == 2:
        scores = binary(scores)
    spread = scores.std(0).max(1)

    def loss(weights, shift):
        logits = torch.tensor(np.einsum("nmk,m->nk", scores, weights) + shift)
        standardised = weights * spread
        data = nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="sum")
        return float(data) + standardised @ standardised / 2

    weights, shift = stacking_weights(scores, labels)
    best = loss(weights, shift)
    random = np.random.default_rng(1)
    for size in (1e-2, 1e-3):
        for _ in range(50):
            near = np.maximum(weights + size * random.normal(size=3), 0)
            assert loss(near, shift + size * random.normal(size=classes)) >= best - 1e-6


def test_weights_of_rows_count_as_copies_and_have_no_scale():
    scores, labels = rows(100)
    scores = binary(scores)
    plain = stacking_weights(scores, labels)
    scaled = stacking_weights(scores, labels, np.full(100, 7.0))
    np.testing.assert_allclose(plain[0], scaled[0], rtol=1e-6)
    heavy = np.where(labels > 0, 3.0, 1.0)
    assert stacking_weights(scores, labels, heavy)[1][1] > plain[1][1]


def test_separated_rows_and_constant_members_give_finite_weights():
    labels = np.repeat([0, 1], 50)
    odds = np.stack([np.where(labels > 0, 5.0, -5.0), np.zeros(100), np.full(100, 1e300)], axis=1)
    scores = np.stack([np.zeros_like(odds), odds], axis=2)
    weights, shift = stacking_weights(scores, labels)
    assert np.isfinite(weights).all()
    assert np.isfinite(shift).all()
    np.testing.assert_array_equal(weights[1:], 0.0)


class Column(nn.Module):
    """The score is one of the features."""

    def __init__(self, place):
        super().__init__()
        self.place = place

    def forward(self, x):
        return x[:, self.place]


def fitted(model, validation):
    value, _ = validation.metric(model)
    return Best("implicit", {"implicit": Fitted(model, 0.0, [], value, 1)}, 10)


def test_the_stack_is_a_sum_that_is_better_than_its_members():
    scores, labels = rows(4000)
    x = torch.tensor(binary(scores)[..., 1], dtype=torch.float32)
    judge = Validation(fnr_at_fpr(0.05), x[:2000], torch.tensor(labels[:2000]))
    found = {name: fitted(Column(place), judge) for place, name in enumerate("abc")}
    name, best = stack(found, judge)
    assert name == best.name == STACKED
    model = best.model
    assert isinstance(model, Stacked)
    expected = x.double() @ model.weights + model.shift
    torch.testing.assert_close(model(x), expected)
    new = Validation(fnr_at_fpr(0.05), x[2000:], torch.tensor(labels[2000:]))
    assert new.metric(model)[0] < min(new.metric(one.model)[0] for one in found.values())
    assert best.fitted[STACKED].best == judge.metric(model)[0]


def test_one_member_with_a_weight_stays_as_it_is():
    scores, labels = rows()
    x = torch.tensor(binary(scores)[..., 1], dtype=torch.float32)
    x[:, 1] = -x[:, 0]
    judge = Validation(fnr_at_fpr(0.05), x, torch.tensor(labels))
    found = {"good": fitted(Column(0), judge), "turned": fitted(Column(1), judge)}
    assert stack(found, judge) == ("good", found["good"])
    alone = {"turned": found["turned"]}
    assert stack(alone, judge) == ("turned", found["turned"])


def test_scores_that_are_not_finite_have_no_weight():
    scores, labels = rows()
    x = torch.tensor(binary(scores)[..., 1], dtype=torch.float32)
    x[0, 0] = torch.inf
    judge = Validation(fnr_at_fpr(0.05), x, torch.tensor(labels))
    found = {name: fitted(Column(place), judge) for place, name in enumerate("ab")}
    assert stack(found, judge)[0] == "b"


def test_auto_grows_trees_only_if_no_other_method_is_asked_for():
    pytest.importorskip("lightgbm")
    assert kinds_of_auto() == kinds_of_auto("auto") == ("linear", "mlp", "boosted")
    assert kinds_of_auto("focal") == ("linear", "mlp")


def test_auto_without_lightgbm_is_made_of_networks(monkeypatch):
    monkeypatch.setattr("setpoint.train.stacking.find_spec", lambda name: None)
    assert kinds_of_auto() == ("linear", "mlp")
    assert "pip install" in why_no_trees()

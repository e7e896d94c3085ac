"""Cross-fitting: folds, and scores by models that have not seen a row, by brute force."""

import numpy as np
import pytest
import torch
from torch import nn

from setpoint import fnr_at_fpr
from setpoint.train import Validation
from setpoint.train.cross_fitting import FOLDS, MOST_ROWS, cross_fit, deal_folds, folds_for, pays
from setpoint.train.loop import Fitted
from setpoint.train.portfolio import Best


def draw(n=300, seed=0, share=0.3):
    random = np.random.default_rng(seed)
    labels = (random.random(n) < share).astype(int)
    x = random.normal(size=(n, 2)) + labels[:, None]
    return Validation(fnr_at_fpr(0.2), torch.tensor(x), torch.tensor(labels))


def deal(labels, clusters=None, seed=0):
    return deal_folds(np.asarray(labels), clusters, np.random.RandomState(seed))


def test_folds_share_each_class_evenly():
    labels = draw().y.numpy()
    folds = deal(labels)
    for value in (0, 1):
        counts = np.bincount(folds[labels == value], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    assert (folds != deal(labels, seed=1)).any()


def test_clusters_stay_whole():
    clusters = np.repeat(np.arange(60), 5)
    folds = deal(draw().y.numpy(), clusters)
    assert all(len(np.unique(folds[clusters == c])) == 1 for c in range(60))
    assert np.bincount(folds).tolist() == [100, 100, 100]


def test_folds_that_cannot_judge_are_not_made():
    assert folds_for(draw(), None, 0) is not None
    few = draw(share=0.03)  # nine positives, three in a fold: better than to choose by what trained
    assert int(few.y.sum()) == 9
    assert folds_for(few, None, 0) is not None
    few.y[torch.nonzero(few.y).reshape(-1)[2:]] = 0  # two positives for three folds
    assert folds_for(few, None, 0) is None
    labels = draw().y.numpy()
    assert folds_for(draw(), labels, 0) is None  # two clusters for three folds


def test_many_rows_and_times_need_none():
    assert pays(MOST_ROWS, None)
    assert not pays(MOST_ROWS + 1, None)
    assert not pays(100, np.arange(100))


class Mean(nn.Module):
    """The difference of the class means as a direction: a model that knows what it has seen."""

    def __init__(self, x, y, power):
        super().__init__()
        self.register_buffer("way", x[y == 1].mean(0) - x[y == 0].mean(0))
        self.power = power

    def forward(self, x):
        return torch.sign(x @ self.way) * (x @ self.way).abs() ** self.power


POWERS = {"straight": 1.0, "bent": 0.3}


def fit(kind, train, judge, fold):
    model = Mean(train.x, train.y, POWERS[kind])
    fitted = Fitted(model, 0.0, [{"fold": fold}], judge.metric(model)[0], 1)
    return Best("mean", {"mean": fitted}, 10)


def test_a_row_is_scored_by_models_that_have_not_seen_it():
    rows = draw()
    folds = deal(rows.y.numpy())
    found = cross_fit(POWERS, rows, folds, fit)
    model, expected = found.best.model, np.zeros(len(folds))
    weights = dict(zip(model.members, model.weights.tolist(), strict=True))
    for row, fold in enumerate(folds):
        others = torch.tensor(folds != fold)
        expected[row] = model.shift.item() + sum(
            FOLDS
            * weights[f"{kind}_{fold}"]
            * Mean(rows.x[others], rows.y[others], power)(rows.x[row])
            for kind, power in POWERS.items()
            if f"{kind}_{fold}" in weights
        )
    np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
    assert found.best.fitted["stacked"].best == rows.value(found.scores)[0]
    assert found.best.steps == 10 * FOLDS * len(POWERS)
    total = model.shift + sum(w * model.members[name](rows.x) for name, w in weights.items())
    torch.testing.assert_close(model(rows.x), total)


def test_three_models_are_better_than_one_on_new_rows():
    """A model of half of the rows, stopped by the others, against three of two thirds."""
    gains = []
    for seed in range(20):
        rows, new = draw(60, seed), draw(4000, seed + 100)
        found = cross_fit(["straight"], rows, deal(rows.y.numpy()), fit)
        alone = fit("straight", rows.part(torch.arange(30)), rows, 0).model
        gains.append(new.metric(alone)[0] - new.metric(found.best.model)[0])
    assert np.mean(gains) > 0


@pytest.mark.parametrize("groups", [None, {"sex": np.array(["f", "m"] * 150)}])
def test_a_part_keeps_the_columns_together(groups):
    rows = draw()
    rows = Validation(rows.problem, rows.x, rows.y, rows.x[:, 0].abs(), groups)
    part = rows.part(torch.tensor([5, 2]))
    assert torch.equal(part.weights, rows.weights[[5, 2]])
    assert part.groups is None if groups is None else part.groups["sex"].tolist() == ["m", "f"]

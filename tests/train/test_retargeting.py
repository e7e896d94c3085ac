"""A new operating point for a trained network: only the head moves, and only if that is better."""

import copy

import pytest
import torch
from torch import nn

from setpoint import Infeasible, Problem, fnr, fnr_at_fpr, fpr, macro, precision, recall
from setpoint.train import Cached, cached_features, retarget
from setpoint.train.retargeting import by_folds


def network():
    torch.manual_seed(0)
    layers = [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1)]
    return nn.Sequential(*layers)


def loader(n=600, seed=0, size=200):
    rng = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=rng) < 0.25).long()
    x = torch.randn(n, 6, generator=rng) + 0.9 * y[:, None]
    return [(x[i : i + size], y[i : i + size]) for i in range(0, n, size)]


def test_only_the_head_moves_and_the_goal_is_better():
    model, problem = network(), fnr_at_fpr(0.05)
    before = copy.deepcopy(model.state_dict())
    found = retarget(model, None, problem, loader(), steps=60, learning_rate=0.03)
    changed = {name for name, now in model.state_dict().items() if not now.equal(before[name])}
    assert changed == {"4.weight", "4.bias"}
    assert model.training
    assert found.improved
    assert found.value < found.before
    model.eval()
    x, y = (torch.cat(part) for part in zip(*loader(), strict=True))
    scores = model(x)[:, 0].detach()
    assert problem.choose(scores, y).thresholds == found.thresholds
    given = retarget(network(), None, problem, loader(), validation=loader(seed=1), steps=60)
    x, y = (torch.cat(part) for part in zip(*loader(seed=1), strict=True))
    assert given.improved
    assert given.value < given.before == problem.evaluate(network().eval()(x)[:, 0].detach(), y)


def test_what_was_learnt_by_heart_is_not_kept():
    """Sixty columns of noise beside a good one: a new head does better on its own rows alone."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(300, generator=rng) < 0.3).long()
    noise = torch.randn(300, 61, generator=rng)
    features = noise + 1.5 * y[:, None] * (torch.arange(61) == 0)
    model = nn.Sequential(nn.Linear(3, 61), nn.Linear(61, 1))
    nn.init.zeros_(model[1].weight).data[0, 0] = 1.0
    problem, before = fnr_at_fpr(0.05), model[1].weight.clone()
    data = Cached(features, y)
    found = retarget(model, None, problem, data)
    assert not found.improved
    assert found.value == found.before
    assert model[1].weight.equal(before)
    by_heart = retarget(model, None, problem, data, validation=data)
    assert by_heart.improved
    assert by_heart.value < found.value / 2


def test_rows_that_judge_have_not_trained():
    """Every row is judged once, by a head of the other folds; both classes are in each."""
    rng = torch.Generator().manual_seed(0)
    rare = (torch.randperm(50, generator=rng) < 9).long()
    data = Cached(torch.arange(50.0)[:, None], rare)
    judged = by_folds(lambda rows: rows, data, seed=1)
    seen = torch.cat([rows.features for _, rows in judged])[:, 0]
    assert seen.sort().values.equal(torch.arange(50.0))
    for trained, rows in judged:
        assert not set(trained.features[:, 0].tolist()) & set(rows.features[:, 0].tolist())
        assert rows.labels.sum() == 3
    few = Cached(data.features, (torch.arange(50) < 2).long())
    assert [rows for _, rows in by_folds(lambda rows: rows, few, seed=3)] == [few]


def test_cached_features_serve_the_next_operating_point():
    model = network()
    cached = cached_features(model, "4", loader())
    assert cached.features.shape == (600, 8)
    direct = retarget(copy.deepcopy(model), "4", fnr_at_fpr(0.2), loader(), steps=5)
    again = retarget(copy.deepcopy(model), "4", fnr_at_fpr(0.2), cached, steps=5)
    assert direct.value == again.value
    assert direct.thresholds == again.thresholds


def test_a_head_that_gets_no_better_is_kept():
    """On other data, judged where the old head is perfect."""
    model = network().eval()
    cached = cached_features(model, None, loader())
    with torch.no_grad():
        easy = (model[4](cached.features)[:, 0] > 0).long()
    before = copy.deepcopy(model.state_dict())
    judges = Cached(cached.features, easy)
    found = retarget(model, None, fnr_at_fpr(0.1), cached, validation=judges, steps=5)
    assert not found.improved
    assert found.value == found.before == 0
    assert all(now.equal(before[name]) for name, now in model.state_dict().items())


def test_weights_count():
    model = network()
    data = cached_features(model, None, loader())
    ones, uneven = torch.ones(600), 1.0 + 5 * (torch.arange(600) % 2)
    runs = [
        retarget(copy.deepcopy(model), None, fnr_at_fpr(0.1), given, steps=5)
        for given in (data, Cached(*data[:2], ones), Cached(*data[:2], uneven))
    ]
    assert runs[0].value == runs[1].value
    assert runs[0].value != runs[2].value


def test_what_cannot_be_reached_is_said():
    problem = Problem(maximize=recall, subject_to=[precision >= 0.999, recall >= 0.99])
    with pytest.raises(Infeasible, match="with the old head or a new one"):
        retarget(network(), None, problem, loader(), steps=2)


@pytest.mark.parametrize(
    ("problem", "error", "words"),
    [
        (fnr, TypeError, "retarget takes a Problem"),
        (Problem(maximize=macro(recall)), ValueError, r"about several\. Implicit"),
        (Problem(minimize=fnr, subject_to=fpr.on(g="a") <= 0.1), NotImplementedError, "groups="),
    ],
    ids=str,
)
def test_goals_it_cannot_judge_are_refused_with_what_can(problem, error, words):
    with pytest.raises(error, match=words):
        retarget(network(), None, problem, loader())


def test_bad_data_are_refused():
    with pytest.raises(ValueError, match="gave no batch"):
        retarget(network(), None, fnr_at_fpr(0.1), [])
    with pytest.raises(TypeError, match=r"\(x, y\) or \(x, y, weights\)"):
        retarget(network(), None, fnr_at_fpr(0.1), [{"x": 1}])
    data = Cached(torch.randn(20, 3), torch.ones(20))
    with pytest.raises(ValueError, match="width 8"):
        retarget(network(), None, Problem(minimize=fnr, subject_to=fpr <= 0.1), data)
    dropping = nn.Sequential(nn.Linear(6, 2), nn.Sequential(nn.Dropout(), nn.Linear(2, 1)))
    with pytest.raises(ValueError, match="Dropout"):
        retarget(dropping, None, fnr_at_fpr(0.1), loader())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1; got 0"),
        ({"batch_size": 2.5}, ValueError, "batch_size must be a whole number"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate must be positive"),
        ({"steps": 0}, ValueError, "steps must be"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        retarget(network(), None, fnr_at_fpr(0.1), loader(), **options)


@pytest.mark.parametrize("role", ["loader", "validation"])
@pytest.mark.parametrize(
    ("labels", "weights", "words"),
    [
        (20, None, "50 rows of features, but 20 labels"),
        (50, 49, "50 rows of features, but 49 weights"),
    ],
)
def test_cached_features_of_another_length_are_refused(role, labels, weights, words):
    data = Cached(torch.randn(50, 8), torch.arange(labels) % 2)
    if weights is not None:
        data = data._replace(weights=torch.ones(weights))
    given = {"loader": loader(), role: data}
    with pytest.raises(ValueError, match=words):
        retarget(network(), None, fnr_at_fpr(0.1), **given, steps=2)

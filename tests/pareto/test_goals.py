import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint.pareto.goals import GOAL_LOSSES, Judge, TableLosses, decision_rates

DRAW = np.random.default_rng(0)
SCORES = DRAW.normal(size=200)
LABELS = DRAW.integers(0, 2, 200)
CODES = DRAW.integers(0, 3, 200)


def tensors(codes=CODES, groups=3):
    alike = np.eye(groups)[codes]
    return torch.tensor(SCORES, requires_grad=True), torch.tensor(LABELS), torch.tensor(alike)


def value(name, **options):
    return float(GOAL_LOSSES[name](*tensors(**options)).detach())


def chances():
    return 1 / (1 + np.exp(-SCORES))


@pytest.mark.parametrize(
    ("name", "among"),
    [("coverage_gap", slice(None)), ("tpr_gap", LABELS == 1), ("fpr_gap", LABELS == 0)],
)
def test_a_gap_is_the_largest_difference_of_mean_predictions(name, among):
    p, codes = chances()[among], CODES[among]
    means = [p[codes == code].mean() for code in range(3)]
    # rounding off below 0.001 changes a gap by less than that
    assert value(name) == pytest.approx(max(means) - min(means), abs=1e-3)


def test_covariance_is_the_root_of_the_papers():
    codes = np.minimum(CODES, 1)
    covariance = np.cov(chances(), codes, bias=True)[0, 1]
    # rounding off below 0.001 changes it by less than that
    assert value("covariance", codes=codes, groups=2) == pytest.approx(abs(covariance), abs=1e-3)


def test_losses_are_means_over_their_classes():
    nats = -np.log(np.where(LABELS == 1, chances(), 1 - chances()))
    assert value("loss") == pytest.approx(nats.mean(), rel=1e-9)
    assert value("misses") == pytest.approx(nats[LABELS == 1].mean(), rel=1e-9)
    assert value("false_alarms") == pytest.approx(nats[LABELS == 0].mean(), rel=1e-9)


@pytest.mark.parametrize("name", GOAL_LOSSES)
def test_gradients_are_those_of_finite_differences(name):
    scores, labels, groups = tensors()
    assert torch.autograd.gradcheck(lambda s: GOAL_LOSSES[name](s, labels, groups), scores)


@pytest.mark.parametrize("name", GOAL_LOSSES)
def test_nothing_is_nan_without_a_group_or_without_a_gap(name):
    scores, labels, groups = tensors()
    for given in (scores, torch.zeros_like(scores, requires_grad=True)):
        absent = groups.clone()
        absent[:, 1] = 0
        found = GOAL_LOSSES[name](given, labels, absent)
        (gradient,) = torch.autograd.grad(found, given)
        assert torch.isfinite(found)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", ["coverage_gap", "tpr_gap", "fpr_gap"])
def test_a_group_that_is_absent_has_no_gap_to_the_others(name):
    scores, labels, groups = tensors()
    few = groups.clone()
    few[:, 1] = 0
    assert_close(
        GOAL_LOSSES[name](scores, labels, few), GOAL_LOSSES[name](scores, labels, groups[:, ::2])
    )


def test_one_forward_pass_gives_both_goals_by_name():
    model = nn.Linear(2, 1)
    x, y = torch.randn(8, 2), torch.tensor([0, 1] * 4)
    groups = torch.eye(2).repeat(4, 1)
    found = TableLosses("coverage_gap", "loss")(model, x, y, groups)
    assert list(found) == ["coverage_gap", "loss"]
    assert_close(found["loss"], GOAL_LOSSES["loss"](model(x)[:, 0], y, groups))
    assert Judge(x, y, groups)(model) == decision_rates(model(x)[:, 0], y, groups)


def test_decisions_are_counted_group_by_group():
    scores, labels, groups = tensors()
    found = decision_rates(scores, labels, groups)
    decided = SCORES > 0
    coverages = [decided[code == CODES].mean() for code in range(3)]
    recalls = [decided[(code == CODES) & (LABELS == 1)].mean() for code in range(3)]
    assert found["accuracy"] == pytest.approx((decided == LABELS).mean(), rel=1e-6)
    assert found["coverage gap"] == pytest.approx(max(coverages) - min(coverages), rel=1e-9)
    assert found["tpr gap"] == pytest.approx(max(recalls) - min(recalls), rel=1e-9)
    assert found["impact ratio"] == pytest.approx(min(coverages) / max(coverages), rel=1e-9)
    nobody = decision_rates(-torch.ones(200), labels, groups)
    assert nobody["impact ratio"] == 1
    alone = decision_rates(scores, labels, groups[:, :1] * 0 + 1)
    assert alone["fnr"] == pytest.approx(1 - decided[LABELS == 1].mean(), rel=1e-9)
    assert alone["fpr"] == pytest.approx(decided[LABELS == 0].mean(), rel=1e-9)

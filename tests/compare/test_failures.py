"""Rows never hide a failure, and a failure never hides the other rows."""

import numpy as np
import torch

from setpoint import compare, fnr_at_fpr
from setpoint.solvers import cross_entropy
from setpoint.train import METHODS, Method

GOAL = fnr_at_fpr(0.1)
QUICK = {"steps": 10, "batch_size": 100, "seeds": 1}


def data(n=800, seed=0):
    r = np.random.default_rng(seed)
    y = (r.random(n) < 0.3).astype(int)
    return (r.normal(size=(n, 4)) + 1.2 * y[:, None] * [1, 0, 1, 0]).astype(np.float32), y


def singular(scores, labels, weights=None):
    """A loss that solves a system without a solution, as torch says it."""
    return torch.linalg.inv(scores.new_zeros(2, 2)).sum()


def misshapen(scores, labels, weights=None):
    return (scores[:3] @ labels[:2].to(scores)).sum()


def fragile(scores, labels, weights=None):
    """Cross-entropy that breaks once the scores are large: after a step at a high rate."""
    if scores.detach().abs().max() > 1e3:
        singular(scores, labels)
    return cross_entropy(scores, labels, weights)


def test_an_error_of_torch_costs_a_method_its_row_and_nobody_else():
    losses = {"singular": singular, "misshapen": misshapen}
    own = {name: Method(lambda *_, loss=loss: loss) for name, loss in losses.items()}
    found = compare(GOAL, data(), {**own, "focal": METHODS["focal"]}, **QUICK)
    rows = {row.method: row for row in found.rows}
    assert [rows[name].failed for name in rows] == [1, 1, 0]
    assert rows["singular"].trouble.startswith("failed at the learning rate 0.03: linalg.inv")
    assert "inconsistent tensor size" in rows["misshapen"].trouble
    assert found.best == "focal"


def test_an_error_of_torch_while_a_method_is_made_is_its_row_too():
    def unmade(_problem, _steps):
        return singular(torch.zeros(2), None)

    found = compare(GOAL, data(), {"unmade": Method(unmade), "focal": METHODS["focal"]}, **QUICK)
    assert [row.failed for row in found.rows] == [1, 0]
    assert "linalg.inv" in found.rows[0].trouble


def test_a_rate_that_failed_is_told_although_another_worked():
    methods = {"fragile": Method(lambda *_: fragile), "focal": METHODS["focal"]}
    found = compare(GOAL, data(), methods, **QUICK, learning_rates=[1e6, 0.03])
    fragile_one, focal_one = found.trials
    assert fragile_one.learning_rate == 0.03
    assert fragile_one.value is not None
    assert "failed at the learning rate 1e+06: linalg.inv" in fragile_one.status
    assert "\n" not in fragile_one.status
    assert "failed" not in focal_one.status
    assert found.rows[0].failed == 0
    assert "failed at the learning rate 1e+06" in found.rows[0].trouble

"""The layer by itself, on functions that have nothing to do with rates."""

import pytest
import torch

from setpoint.solvers import hold


def test_the_root_of_a_cubic_moves_as_calculus_says():
    """x t^3 = 8: t = 2 x^(-1/3), so dt/dx at x = 1 is -2/3."""
    x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    t = hold(lambda x, t: x * t**3 - 8, x, find=lambda x: 2 / x ** (1 / 3))
    t.backward()
    assert t.item() == 2
    assert x.grad.item() == pytest.approx(-2 / 3)


def test_the_value_is_what_was_found_even_where_the_gap_is_not_zero():
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    found = torch.tensor([0.1, 0.7], dtype=torch.float64)
    t = hold(lambda x, t: torch.tanh(x[:, None] - t).mean(0), x, find=lambda _: found)
    assert torch.equal(t.detach(), found)


def test_a_flat_gap_does_not_move_the_threshold():
    x = torch.randn(5, requires_grad=True)
    t = hold(lambda x, t: (x * 0).sum() + 0 * t, x, find=lambda _: torch.tensor(0.5))
    t.backward()
    assert t.item() == 0.5
    assert torch.equal(x.grad, torch.zeros(5))


def test_a_known_slope_is_taken():
    x = torch.ones(3, requires_grad=True)
    t = hold(
        lambda x, t: x.sum() - t, x, find=torch.sum, slope=torch.tensor(-2.0)
    )  # the truth is -1
    t.backward()
    assert torch.equal(x.grad, torch.full((3,), 0.5))


def test_it_works_without_gradients():
    with torch.no_grad():
        t = hold(lambda x, t: x.mean() - t, torch.ones(4), find=torch.mean)
    assert t.item() == 1
    assert not t.requires_grad


def test_a_gap_of_the_wrong_shape_is_named():
    with pytest.raises(
        ValueError, match=r"one value for each threshold, \(2,\); got the shape \(3,\)"
    ):
        hold(lambda x, t: x - t.sum(), torch.ones(3), find=lambda _: torch.zeros(2))

"""Steps, their slopes and the slopes of their slopes."""

import pytest
import torch

from setpoint import Sigmoid
from setpoint.steps import Hard, Hinge, SlopeOf, Softplus

GRID = torch.linspace(-6, 6, 97, dtype=torch.float64) + 0.01  # off the kinks of the hinge


@pytest.mark.parametrize("step", [Sigmoid(), Softplus(), Hinge(), SlopeOf(Sigmoid())], ids=repr)
def test_slopes_are_derivatives(step):
    e = 1e-6
    difference = (step.value(GRID + e) - step.value(GRID - e)) / (2 * e)
    torch.testing.assert_close(step.slope(GRID), difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("step", [Sigmoid(), Softplus(), Hinge()], ids=repr)
def test_curvatures_are_derivatives_of_slopes(step):
    e = 1e-6
    difference = (step.slope(GRID + e) - step.slope(GRID - e)) / (2 * e)
    torch.testing.assert_close(step.curvature(GRID), difference, rtol=1e-6, atol=1e-8)


def test_a_sigmoid_still_has_a_slope_far_away():
    far = torch.tensor([-500.0, -40.0, 40.0, 500.0], dtype=torch.float64)
    assert (Sigmoid().slope(far) > 0).all()


def test_only_complementary_steps_add_up():
    for step in (Sigmoid(), Hard(), Softplus(), Hinge()):
        total = step.value(GRID) + step.value(-GRID)
        assert torch.allclose(total, torch.ones_like(total)) == step.complementary


def test_hard_decides_strictly():
    assert Hard().value(torch.tensor([-1.0, 0.0, 1.0])).tolist() == [0, 0, 1]


def test_widths_are_relative_or_fixed():
    spread = torch.tensor([2.0, 0.0])
    assert Sigmoid(width=0.1).width_of(spread).tolist() == pytest.approx([0.2, 0])
    assert Sigmoid(temperature=0.3).width_of(spread).tolist() == pytest.approx([0.3, 0.3])


def test_steps_are_values():
    assert Sigmoid() == Sigmoid(width=0.05) != Softplus(width=0.05)
    assert len({Sigmoid(), Sigmoid(width=0.05), Sigmoid(temperature=1.0)}) == 2
    assert repr(Sigmoid(temperature=0.3)) == "Sigmoid(temperature=0.3)"

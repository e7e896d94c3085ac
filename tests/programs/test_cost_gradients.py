"""Stand-ins for the gradient by the costs: each against its own definition."""

import pytest
import torch

from setpoint.programs import ProgramError, linear_program
from setpoint.programs.newton import solve_by_newton
from setpoint.programs.standard_form import check_program

D = torch.float64
SIMPLEX = {"E": torch.ones(1, 3, dtype=D), "h": torch.ones(1, dtype=D), "nonnegative": True}


def boxed(n, *, seed):
    """A few random rows through a box."""
    g = torch.Generator().manual_seed(seed)
    eye = torch.eye(n, dtype=D)
    A = torch.cat([torch.randn(3, n, generator=g, dtype=D), eye, -eye])
    b = torch.cat([torch.rand(3, generator=g, dtype=D), torch.ones(2 * n, dtype=D)])
    return torch.randn(n, generator=g, dtype=D), A, b


def gradient(c, gradient_of, **options):
    c = c.clone().requires_grad_()
    z, _ = linear_program(c, **options)
    (z * gradient_of).sum().backward()
    return c.grad


def test_blackbox_is_the_difference_to_costs_moved_along_the_gradient():
    c, A, b = boxed(4, seed=0)
    g = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=D)
    z, _ = linear_program(c, A, b)
    moved, _ = linear_program(c + 0.7 * g, A, b)
    got = gradient(c, g, A=A, b=b, cost_gradient="blackbox", strength=0.7)
    torch.testing.assert_close(got, (moved - z) / 0.7)
    assert got.abs().max() > 0.1  # the vertex did jump


def test_perturbed_is_the_slope_of_the_mean_solution_under_noise():
    """On the simplex the mean solution is the softmax-like P(c_i + noise least), known for two."""
    c = torch.tensor([0.3, 0.0], dtype=D)
    E, h = torch.ones(1, 2, dtype=D), torch.ones(1, dtype=D)
    g = torch.tensor([1.0, 0.0], dtype=D)
    options = {"cost_gradient": "perturbed", "strength": 0.5, "samples": 20_000}
    random = torch.Generator().manual_seed(0)
    got = gradient(c, g, E=E, h=h, nonnegative=True, generator=random, **options)
    width = 0.5 * 2**0.5  # P(c_0 + noise < c_1 + noise) = Phi(-(c_0 - c_1) / width)
    density = torch.distributions.Normal(0.0, width).log_prob(torch.tensor(0.3)).exp().item()
    assert got[0].item() == pytest.approx(-density, abs=0.03)  # 3 deviations at 20,000 samples
    assert got[1].item() == pytest.approx(density, abs=0.03)


def test_perturbed_repeats_with_its_generator():
    c = torch.tensor([0.1, 0.0, 0.2], dtype=D)
    g = torch.tensor([1.0, 2.0, 3.0], dtype=D)
    draws = [
        gradient(
            c, g, cost_gradient="perturbed", generator=torch.Generator().manual_seed(s), **SIMPLEX
        )
        for s in (1, 1, 2)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_smoothed_is_the_slope_of_the_projection(strength):
    """On the simplex: argmin c'z + s/2 |z|^2 is the projection of -c/s, known by sorting."""
    c = torch.tensor([0.1, 0.0, 0.25], dtype=D)
    g = torch.tensor([1.0, -2.0, 0.5], dtype=D)

    def project(x):
        top = x.sort(descending=True).values
        excess = (top.cumsum(0) - 1) / torch.arange(1, 4)
        return (x - excess[(top > excess).sum() - 1]).clamp(min=0)

    twin = c.clone().requires_grad_()
    (project(-twin / strength) * g).sum().backward()
    got = gradient(c, g, cost_gradient="smoothed", strength=strength, **SIMPLEX)
    torch.testing.assert_close(got, twin.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["blackbox", "smoothed"])
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_and_sparse_matrices_give_the_same(name, sparse):
    parts = [boxed(4, seed=s) for s in (0, 1, 2)]
    g = torch.arange(1.0, 5.0, dtype=D)
    alone = [gradient(c, g, A=A, b=b, cost_gradient=name) for c, A, b in parts]
    c, A, b = (torch.stack(x) for x in zip(*parts, strict=True))
    matrix = A.to_sparse() if sparse else A
    together = gradient(c, g, A=matrix, b=b, cost_gradient=name)
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-8, atol=1e-10)


def test_the_smoothed_program_is_solved_in_any_units():
    """Stationary, feasible and complementary, with columns from 1e-3 to 1e3."""
    c, A, b = boxed(4, seed=3)
    units = torch.tensor([1e-3, 1.0, 30.0, 1e3], dtype=D)
    program, _ = check_program(c * units, A * units, b, None, None, False)
    found = solve_by_newton(program, square=0.5)
    assert found.status == ("optimal",)
    stationary = c * units + 0.5 * found.z[0] + found.v[0] @ (A * units)
    slack = b - A * units @ found.z[0]
    torch.testing.assert_close(stationary, torch.zeros_like(c), rtol=0, atol=1e-7)
    assert slack.min() > -1e-9
    assert (slack * found.v[0]).abs().max() < 1e-9


def test_the_other_gradients_stay_exact():
    c, A, b = boxed(4, seed=0)
    gradients = []
    for name in (None, "blackbox", "smoothed"):
        right = b.clone().requires_grad_()
        linear_program(c.clone().requires_grad_(), A, right, cost_gradient=name)[0].sum().backward()
        gradients.append(right.grad)
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])


def test_costs_that_were_moved_off_the_cliff_are_named():
    c = torch.tensor([1.0], dtype=D, requires_grad=True)
    z, _ = linear_program(c, nonnegative=True, cost_gradient="blackbox", strength=10.0)
    with pytest.raises(ProgramError, match=r'"blackbox" moves the costs, .* which is 10'):
        (-z).sum().backward()

"""The published method: its settings, its gradients, and its theorem about short steps."""

from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from setpoint.programs import Unrolled, linear_program

D = torch.float64


def draw(seed, m=8, n=3):
    """Unit rows and a box: bounded level sets, and with probability 1 a unique solution."""
    g = torch.Generator().manual_seed(seed)
    A = torch.randn(m, n, generator=g, dtype=D)
    A = torch.cat([A / A.norm(dim=1, keepdim=True), torch.eye(n, dtype=D), -torch.eye(n, dtype=D)])
    b = torch.cat([torch.rand(m, generator=g, dtype=D) + 0.2, torch.ones(2 * n, dtype=D)])
    c = torch.randn(n, generator=g, dtype=D)
    return c / c.norm(), A, b


def penalty(c, A, b, y, weight):
    """Equation 3, and its gradient."""
    over = (A @ y - b).clamp(min=0)
    return float(over @ over / 2 + weight * c @ y), float((A.T @ over + weight * c).norm())


@pytest.mark.parametrize("seed", range(4))
def test_short_steps_converge_linearly_from_anywhere(seed):
    """Theorem 2. The gradient of g has the Lipschitz constant L = |A|^2, and H + shift is at least
    shift, so g falls by step (1 - step L / (2 shift)) d'(H + shift) d: below 2 shift / L every step
    lowers it. On the last quadratic piece the error shrinks by 1 - step mu / (mu + shift) at least,
    mu the smallest positive curvature: a linear rate."""
    c, A, b = draw(seed)
    weight, shift = 0.05, 0.04
    short = float(shift / torch.linalg.matrix_norm(A, 2) ** 2)

    def iterate(steps, size=short):
        settings = Unrolled(steps, size, weight, shift, result="iterate")
        return linear_program(c, A, b, unroll=settings)[0]

    values = [penalty(c, A, b, iterate(k), weight)[0] for k in range(1, 30)]
    assert all(after < before for before, after in pairwise(values))
    slopes = [penalty(c, A, b, iterate(k), weight)[1] for k in (1000, 2000, 4000)]
    assert slopes[1] < 0.1 * slopes[0]
    assert slopes[2] < 0.01 * slopes[1]  # as many e-foldings again in twice the steps
    violated = A @ iterate(4000) - b > 1e-9
    assert torch.equal(violated, linear_program(c, A, b)[1].active)


def test_full_steps_need_not_converge():
    """What the theorem's word "short" is there for: the same programs at step size 1."""
    slopes = []
    for seed in range(1, 5):
        c, A, b = draw(seed)
        settings = Unrolled(steps=200, penalty=0.05, result="iterate")
        y, _ = linear_program(c, A, b, unroll=settings)
        slopes.append(penalty(c, A, b, y, 0.05)[1])
    assert sum(slope > 0.1 for slope in slopes) >= 2


def test_near_the_minimum_one_full_step_is_enough():
    """On its last quadratic piece g is a parabola; the shift leaves shift / (mu + shift) of it."""
    c, A, b = draw(0)
    shift = 1e-4
    slopes = []
    for steps in (18, 19, 20):
        y, _ = linear_program(c, A, b, unroll=Unrolled(steps, 1.0, 0.05, shift, result="iterate"))
        slopes.append(penalty(c, A, b, y, 0.05)[1])
    assert slopes[0] < 1e-12 or slopes[1] < 1e-2 * slopes[0]


@pytest.mark.parametrize("name", ["c", "A", "b"])
@pytest.mark.parametrize(("steps", "size"), [(6, 0.3), (3, 1.0)])
def test_gradients_pass_through_every_step(name, steps, size):
    """The product rule of section 4.2, far from convergence, against finite differences."""
    parts = dict(zip("cAb", draw(2), strict=True))
    settings = Unrolled(steps, size, penalty=0.1, shift=0.2, result="iterate")
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=D)

    def loss(x):
        return weights @ linear_program(**{**parts, name: x}, unroll=settings)[0]

    x = parts[name].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x), x)
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=D)
    h = 1e-6
    difference = (loss(parts[name] + h * direction) - loss(parts[name] - h * direction)) / (2 * h)
    assert gradient.any()
    assert float((gradient * direction).sum()) == pytest.approx(float(difference), rel=1e-6)


def test_converged_steps_have_the_gradient_of_the_active_rows():
    """The paper's check: both gradients by b agree where the method has converged."""
    c, A, b = draw(0)
    gradients = []
    for settings in (
        Unrolled(60, 1.0, 0.05, 1e-4, result="iterate"),
        Unrolled(60, 1.0, 0.05, 1e-4, ridge=0.0),
    ):
        x = b.clone().requires_grad_()
        z, _ = linear_program(c, A, x, unroll=settings)
        gradients.append(torch.autograd.grad(z.sum(), x)[0])
    assert_close(gradients[0], gradients[1], rtol=1e-8, atol=1e-9)
    exact = b.clone().requires_grad_()
    z, _ = linear_program(c, A, exact)
    assert_close(gradients[1], torch.autograd.grad(z.sum(), exact)[0], rtol=1e-8, atol=1e-9)


def test_only_the_unrolled_steps_reach_the_costs():
    c, A, b = draw(0)
    c.requires_grad_()
    z, _ = linear_program(c, A, b, unroll=Unrolled(penalty=0.05, result="iterate"))
    assert torch.autograd.grad(z.sum(), c)[0].any()
    z, _ = linear_program(c, A, b, unroll=Unrolled(penalty=0.05))
    assert not z.requires_grad


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "steps must be a whole number"),
        ({"step_size": 0.0}, "step_size must be positive"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"result": "dual"}, "result must be 'active' or 'iterate'; got 'dual'"),
    ],
)
def test_settings_are_checked(settings, words):
    with pytest.raises(ValueError, match=words):
        Unrolled(**settings)


def test_a_sketch_takes_its_size_from_the_rows():
    """Rows of 20 dimensions ask for about 60, rows of 2 among 20 for about 6: so few that the
    first takes hardly a step more than all rows would."""
    from setpoint.programs.newton import Sketch
    from setpoint.programs.standard_form import check_program

    g = torch.Generator().manual_seed(0)
    wide = torch.randn(500, 20, generator=g, dtype=D)
    flat = torch.randn(500, 2, generator=g, dtype=D) @ torch.randn(2, 20, generator=g, dtype=D)
    sizes = []
    for A in (wide, flat):
        program, _ = check_program(torch.ones(20), A, torch.ones(500), None, None, False)
        sizes.append(Sketch.of(program, "auto", g).size)
    assert 45 <= sizes[0] <= 60  # tr(G)^2 / tr(G^2) = 20 / (1 + 20/500) for normal rows
    assert 3 <= sizes[1] <= 8
    c, b = -wide.sum(0) / 10, torch.rand(500, generator=g, dtype=D) + 0.1
    steps = []
    for sketch in ("auto", None):
        z, info = linear_program(c, wide, b, solver="newton", sketch=sketch, generator=g)
        steps.append(info.found.iterations[0])
    assert_close(z, linear_program(c, wide, b, solver="highs")[0], rtol=1e-9, atol=1e-9)
    assert steps[0] <= 2 * steps[1]

"""Two losses, no weights to tune: fairness while the error keeps its bound, and ties broken.

Run it: python examples/barrier.py
"""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from setpoint import Barrier
from setpoint.solvers import at_most


def people(n: int = 2000) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two groups; the label depends on skill, and a feature gives the group away."""
    torch.manual_seed(0)
    group = (torch.rand(n) < 0.5).float()
    skill = torch.randn(n) + 0.5 * group
    x = torch.stack([skill, group + 0.3 * torch.randn(n), torch.randn(n)], 1)
    y = (skill + 0.5 * group + 0.5 * torch.randn(n) > 0.5).float()
    return x, y, group


def main() -> None:
    x, y, group = people()

    print("gap between groups, as small as possible while the error keeps its bound")
    for bound in (0.36, 0.38, 0.41):
        model = nn.Linear(3, 1)
        barrier = Barrier(model.parameters())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(400):
            scores = model(x).squeeze(-1)
            gap = (
                torch.sigmoid(scores)[group == 1].mean() - torch.sigmoid(scores)[group == 0].mean()
            )
            error = binary_cross_entropy_with_logits(scores, y)
            barrier.backward(gap.square(), subject_to=[at_most(error, bound, name="error")])
            optimizer.step()
            optimizer.zero_grad()
        report = barrier.report()
        print(
            f"  error <= {bound:.2f}: gap {gap.item():.3f}, error {error.item():.3f}, "
            f"multiplier {report['multiplier'][0]:.3f}, {report['status']}"
        )

    print("the smallest weights among those that fit best (5 equations, 12 unknowns)")
    matrix, wanted = torch.randn(5, 12) / 12**0.5, torch.randn(5)
    weights = torch.randn(12, requires_grad=True)
    barrier = Barrier([weights])
    optimizer = torch.optim.SGD([weights], lr=1.0)
    for _ in range(1500):
        fit = (matrix @ weights - wanted).square().mean() / 2
        barrier.backward(weights.square().sum() / 2, after=fit)
        optimizer.step()
        optimizer.zero_grad()
    best = torch.linalg.pinv(matrix) @ wanted
    print(f"  |weights| {weights.norm().item():.4f}, smallest possible {best.norm().item():.4f}")
    print(f"  {barrier.report()['status']}, misfit {fit.item():.1e}")


if __name__ == "__main__":
    main()

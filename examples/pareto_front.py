"""What does fairness cost? A front of classifiers between accuracy and a gap between two groups.

    python examples/pareto_front.py            # prints the table; front.png needs matplotlib

Simulated applicants: skill decides, but one group had fewer chances to show it, and a proxy column
gives the group away. No loss weights are tuned: the two end points come from lexicographic
training, and the levels between them are even.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from setpoint import pareto_front


def applicants(rows: int = 1000) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    group = (torch.rand(rows, generator=draw) < 0.4).float()
    skill = torch.randn(rows, generator=draw)
    shown = skill - 0.8 * group + 0.5 * torch.randn(rows, generator=draw)
    proxy = group + 0.3 * torch.randn(rows, generator=draw)
    hired = (shown + 0.3 * torch.randn(rows, generator=draw) > 0).float()
    return torch.stack([shown, skill, proxy], dim=1), hired, group


def make_model() -> nn.Module:
    return nn.Linear(3, 1)


def losses(model: nn.Module, x: Tensor, y: Tensor, group: Tensor) -> dict[str, Tensor]:
    scores = model(x)[:, 0]
    chance = torch.sigmoid(scores)
    gap = (chance * group).sum() / group.sum() - (chance * (1 - group)).sum() / (1 - group).sum()
    return {
        "loss": nn.functional.binary_cross_entropy_with_logits(scores, y),  # minimised
        "gap": gap.abs(),  # held at most at each level
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=8)
    parser.add_argument("--steps", type=int, default=150)
    given = parser.parse_args()
    front = pareto_front(
        make_model,
        losses,
        applicants(),
        points=given.points,
        steps=given.steps,
        learning_rate=0.1,
        progress=True,
    )
    print(front)
    best = front.best(at_most=0.1)
    print(f"With a gap of at most 0.1 the loss is {best.minimized:.3f}: point {best.place}.")
    if find_spec("matplotlib"):
        front.plot("front.png")


if __name__ == "__main__":
    main()

"""Stacked convolutional networks are the networks they stand for."""

import torch
from torch import nn

from benchmarks.points.stack import Stepper
from benchmarks.study.convolutions import Convolutions


def batch():
    torch.manual_seed(3)
    return torch.randn(20, 196), (torch.rand(20, 1) < 0.4).float()


def alone(seed):
    """One network of torch's own layers, from the same start."""
    torch.manual_seed(seed)
    first = nn.Conv2d(1, 3, 3, stride=2, padding=1)
    second = nn.Conv2d(3, 6, 3, stride=2, padding=1)
    head = nn.Linear(96, 1)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Flatten(), head)


def test_every_column_trains_as_a_network_of_its_own():
    x, y = batch()
    rates = torch.tensor([0.01, 0.03])
    stack = Convolutions(196, 3, 2, seed=5, zero_head=False)
    stepper = Stepper(stack, rates, "adam")
    bce = nn.BCEWithLogitsLoss()
    models = [alone(5) for _ in rates]
    optimizers = [
        torch.optim.Adam(m.parameters(), lr=float(r)) for m, r in zip(models, rates, strict=True)
    ]
    for _ in range(5):
        (2 * bce(stack(x), y.expand(-1, 2))).backward()
        stepper.step()
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            bce(model(x.view(-1, 1, 14, 14)), y).backward()
            optimizer.step()
    for place, model in enumerate(models):
        expected = model(x.view(-1, 1, 14, 14))[:, 0]
        torch.testing.assert_close(stack(x)[:, place], expected, rtol=1e-3, atol=1e-4)

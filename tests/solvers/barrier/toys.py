"""What several files of tests share: a small classifier whose loss keeps a bound."""

import numpy as np
import torch
from torch import nn

from setpoint.solvers import at_most


def problem(seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)
    x = torch.randn(200, 4, dtype=dtype)
    y = (x[:, 0] + 0.3 * torch.randn(200, dtype=dtype) > 0).to(dtype)
    return model, x, y


def losses(model, x, y):
    scores = model(x).squeeze(-1)
    fit = nn.functional.binary_cross_entropy_with_logits(scores, y)
    return (scores * x[:, 0]).mean().square(), fit


def train(model, x, y, barrier, optimizer, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    records = []
    for _ in range(steps):
        rows = torch.randint(0, len(x), (32,), generator=generator)
        optimizer.zero_grad()
        side, fit = losses(model, x[rows], y[rows])
        records.append(barrier.backward(side, subject_to=at_most(fit, 0.5, name="fit")))
        optimizer.step()
    return records


def none_free(m):
    return np.zeros(m, dtype=bool)

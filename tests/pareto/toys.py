"""Small problems whose fronts are known; importable, so that other processes can train them."""

import time

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits


class Number(nn.Module):
    """One weight."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.tensor(0.3))


class Pair(nn.Module):
    """Two weights."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.tensor([0.2, -0.1]))


def squares(model):
    """The front is sqrt(f) + sqrt(g) = 1."""
    return {"to one": (model.x - 1) ** 2, "to zero": model.x**2}


def curved(model):
    """Fonseca and Fleming's two losses: their front bends outwards."""
    centre = 1 / 2**0.5
    return {
        "right": 1 - torch.exp(-((model.x - centre) ** 2).sum()),
        "left": 1 - torch.exp(-((model.x + centre) ** 2).sum()),
    }


def noisy_data():
    draw = torch.Generator().manual_seed(1)
    y = (torch.rand(400, generator=draw) < 0.4).float()
    return torch.randn(400, 3, generator=draw) + y[:, None], y


def losses(model, x, y):
    """A small network's loss, and the size of its scores."""
    scores = model(x)[:, 0]
    return {"loss": binary_cross_entropy_with_logits(scores, y), "size": scores.square().mean()}


def patient(model):
    """The same as squares, slowly: there is time to kill it."""
    time.sleep(0.002)
    return squares(model)


def x_of(model):
    return {"x": model.x.item()}

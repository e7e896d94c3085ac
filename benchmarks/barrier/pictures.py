"""Images for the small classifiers of the tables: parts drawn by seed, moved about, or made up.

They are halved to 16 x 16 pixels: hundreds of runs have to fit into an hour of one core.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad

from benchmarks.common import images
from benchmarks.common.networks import flipped

WIDTHS = (8, 16, 32)  # 7,218 weights with ten outputs and batch norm


class Parts(NamedTuple):
    """Disjoint parts of one set; ``rest`` is what a seed left over of the training images."""

    x: Tensor
    y: Tensor
    rest: Tensor
    x_validation: Tensor
    y_validation: Tensor
    x_test: Tensor
    y_test: Tensor


@lru_cache
def halved(name: str) -> images.Images:
    """A set of the shared images at half their size."""
    found = images.load(name)
    small = [avg_pool2d(x, 2) if len(x) else x for x in (found.train, found.test)]
    images.load.cache_clear()  # four times as large
    return found._replace(train=small[0], test=small[1])


def cifar10(seed: int, train: int, validation: int) -> Parts:
    """Two parts of the 20,000 training images, and the 10,000 official test images."""
    found = halved("cifar10")
    random = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(found.train), generator=random)
    return cut(found.train[order], found.labels[order], train, validation)._replace(
        x_test=found.test, y_test=found.test_labels
    )


def cut(x: Tensor, y: Tensor, train: int, validation: int) -> Parts:
    """The first images train, the next validate; all later ones are both the rest and the test."""
    stop = train + validation
    return Parts(x[:train], y[:train], x[stop:], x[train:stop], y[train:stop], x[stop:], y[stop:])


def made_up(n: int = 96, classes: int = 10, outputs: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    """Noise with a mean that depends on the class: enough to try a benchmark without its data."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (n, *outputs), generator=random)
    level = labels.float().reshape(n, -1).mean(1)
    return torch.randn(n, 3, 16, 16, generator=random) + level[:, None, None, None], labels


def moved(x: Tensor, generator: torch.Generator, reach: int = 2, hole: int = 6) -> Tensor:
    """Each image mirrored, shifted by up to ``reach`` pixels, and with a square hole in it."""
    n, size = len(x), x.shape[-1]
    padded = pad(flipped(x, generator), (reach,) * 4)
    corner = torch.randint(2 * reach + 1, (2, n, 1), generator=generator)
    rows, columns = corner + torch.arange(size)
    found = padded[torch.arange(n)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    middle = torch.randint(size, (2, n, 1), generator=generator)
    near = (torch.arange(size) - middle).abs() < hole / 2
    hidden = near[0][:, :, None] & near[1][:, None, :]
    return found.permute(0, 3, 1, 2).masked_fill(hidden[:, None], 0.0)


def plain_cnn(outputs: int, widths: tuple[int, ...] = WIDTHS) -> nn.Sequential:
    """As ``SmallCNN`` without batch norm, so that the length of its weights has a meaning."""
    layers: list[nn.Module] = []
    before = 3
    for width in widths:
        layers += [nn.Conv2d(before, width, 3, stride=2, padding=1), nn.ReLU()]
        nn.init.kaiming_normal_(layers[-2].weight)
        nn.init.zeros_(layers[-2].bias)
        before = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * 4, outputs))


@torch.no_grad()
def outputs_of(model: nn.Module, x: Tensor) -> Tensor:
    """Outputs in evaluation mode, a thousand images at a time."""
    model.eval()
    return torch.cat([model(part) for part in x.split(1000)])


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Per cent right."""
    return 100 * float((outputs_of(model, x).argmax(1) == y).double().mean())

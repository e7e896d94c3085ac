"""CIFAR-10 made long-tailed: class ``i`` of 10 has ``1900 * 100 ** (-i / 9)`` training images."""

from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.common.images import load

CLASSES, RATIO, HEAD, VALIDATION = 10, 100, 1880, 100


class Tail(NamedTuple):
    """Long-tailed training images; validation and test images with all classes equal."""

    x: Tensor
    y: Tensor
    x_val: Tensor
    y_val: Tensor
    x_test: Tensor
    y_test: Tensor
    names: tuple[str, ...]

    @property
    def priors(self) -> Tensor:
        """The share of each class in the training images."""
        return torch.bincount(self.y, minlength=CLASSES) / len(self.y)


def long_tail(seed: int) -> Tail:
    """The images of a seed: which are kept is drawn anew, the official test images stay."""
    images = load("cifar10")
    generator = torch.Generator().manual_seed(seed)
    train, validation = [], []
    for label in range(CLASSES):
        rows = torch.nonzero(images.labels == label)[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator)]
        count = round(HEAD * RATIO ** (-label / (CLASSES - 1)))
        validation.append(rows[:VALIDATION])
        train.append(rows[VALIDATION : VALIDATION + count])
    fit, held_out = torch.cat(train), torch.cat(validation)
    return Tail(
        images.train[fit],
        images.labels[fit],
        images.train[held_out],
        images.labels[held_out],
        images.test,
        images.test_labels,
        images.names,
    )

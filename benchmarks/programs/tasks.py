"""Imbalanced tasks made of images, as in the paper: half of the classes against the other half.

Negatives are dropped from the training part until positives make up the wanted share. With three
classes, examples of the first two are dropped. The test part stays as it is. Images are halved to
16 x 16 pixels, so that hundreds of runs fit into an hour of one core.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from benchmarks.common import images

SETS = ("catdog", "cifar10", "cifar100")
SHARES = (0.91, 0.50, 0.83, 0.71)
DROPS = (0.9, 0.0, 0.8, 0.6)
TEST = 5000  # official test images that are used
HELD_OUT = 2000  # of Cat&Dog, which has no official test images
GROUPS = {"cifar10": (3, 6), "cifar100": (33, 66)}  # where the second and the third group begin


class Task(NamedTuple):
    """Images with labels that count from 0; ``rows`` are those of ``x`` that may be trained on."""

    x: Tensor
    y: Tensor
    rows: Tensor
    x_test: Tensor
    y_test: Tensor

    def training_sample(self, count: int = 2000) -> Task:
        """The same task with training examples in the place of the test part."""
        order = torch.randperm(len(self.rows), generator=torch.Generator().manual_seed(0))
        some = self.rows[order[:count]]
        return self._replace(x_test=self.x[some], y_test=self.y[some])


@cache
def whole(name: str) -> images.Images:
    """Means of 2 x 2 pixels; kept for all seeds. At most ``TEST`` official test images."""
    found = images.load(name)
    small = [avg_pool2d(x, 2) if len(x) else x for x in (found.train, found.test[:TEST])]
    return found._replace(train=small[0], test=small[1], test_labels=found.test_labels[:TEST])


def parts(name: str, seed: int) -> Task:
    """The official parts; Cat&Dog is split anew for each seed."""
    found = whole(name)
    every = torch.arange(len(found.train))
    if len(found.test):
        return Task(found.train, found.labels, every, found.test, found.test_labels)
    order = every[torch.randperm(len(every), generator=torch.Generator().manual_seed(seed))]
    test, train = order[:HELD_OUT], order[HELD_OUT:]
    return Task(found.train, found.labels, train, found.train[test], found.labels[test])


def binary(name: str, share: float, seed: int) -> Task:
    """The upper half of the classes is positive, with ``share`` of the training examples."""
    found = parts(name, seed)
    half = (int(found.y.max()) + 1) // 2
    y, y_test = (found.y >= half).long(), (found.y_test >= half).long()
    positives, negatives = found.rows[y[found.rows] == 1], found.rows[y[found.rows] == 0]
    wanted = min(len(negatives), round(len(positives) * (1 - share) / share))
    kept = torch.cat([positives, _some(negatives, wanted, seed)])
    return found._replace(y=y, rows=kept, y_test=y_test)


def three_classes(name: str, drop: float, seed: int) -> Task:
    """Three groups of classes; ``drop`` of the first two is taken out of the training part."""
    found = parts(name, seed)
    ends = torch.tensor(GROUPS[name])
    y, y_test = (torch.bucketize(labels, ends, right=True) for labels in (found.y, found.y_test))
    groups = [found.rows[y[found.rows] == group] for group in range(3)]
    left = [_some(rows, round(len(rows) * (1 - drop)), seed) for rows in groups[:2]]
    return found._replace(y=y, rows=torch.cat([*left, groups[2]]), y_test=y_test)


def _some(rows: Tensor, count: int, seed: int) -> Tensor:
    """So many of the rows, drawn without putting back."""
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    return rows[order[:count]]

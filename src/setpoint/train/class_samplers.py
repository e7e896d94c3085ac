"""Batches with some of every class, and weights that undo it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._checks import whole
from setpoint.train.samplers import Batch, Shuffled, cycle


@dataclass(frozen=True)
class Classwise:
    """Every batch holds its natural share of every class, but at least ``least`` of each.

    Weights undo it: in every batch each class weighs what it does in the data; hand them to the
    criterion as ``resampling=``. Data that fit into one batch are taken whole.

    Args:
        size: Examples in a batch.
        least: How many of each class a batch holds at least (an equal share of it at most).

    Example:
        >>> labels = torch.tensor([0] * 90 + [1] * 8 + [2] * 2)
        >>> rows, weights = next(Classwise(20, least=4).draw(labels, steps=1, seed=0))
        >>> torch.bincount(labels[rows]).tolist()
        [12, 4, 4]
    """

    size: int
    least: int = 4

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """So many batches of the examples that have these labels."""
        labels = labels.detach().cpu().reshape(-1).long()
        size = min(whole(self.size, "size", least=1), len(labels))
        classes = [torch.nonzero(labels == k)[:, 0] for k in sorted(set(labels.tolist()))]
        if len(classes) < 2 or size in (1, len(labels)):
            yield from Shuffled(size).draw(labels, steps=steps, seed=seed)
            return
        counts = self.counts([len(rows) for rows in classes], size)
        generator = torch.Generator().manual_seed(seed)
        streams = [
            cycle(rows, count, generator)
            for rows, count in zip(classes, counts, strict=True)
            if count
        ]
        weights = torch.cat(
            [
                torch.full((count,), len(rows) / len(labels) * size / max(count, 1))
                for rows, count in zip(classes, counts, strict=True)
            ]
        )
        for _ in range(whole(steps, "steps", least=1)):
            yield Batch(torch.cat([next(stream) for stream in streams]), weights)

    def counts(self, sizes: list[int], size: int) -> list[int]:
        """How many of each class a batch of ``size`` holds."""
        least = min(whole(self.least, "least", least=0), size // len(sizes))
        natural = torch.tensor(sizes).double() * size / sum(sizes)
        spare = (natural - least).clamp(min=0)
        left = size - least * len(sizes)
        wanted = least + spare * (left / spare.sum() if spare.sum() > 0 else 0.0)
        counts = wanted.floor()
        order = torch.argsort(counts - wanted, stable=True)  # largest remainders first
        counts[order[: int(size - counts.sum())]] += 1
        return [int(count) for count in counts]

"""Which examples come in which batch, and what each counts for.

A rate cannot be learnt from a batch that has none of the examples it counts. :class:`Stratified`
puts enough of the rarer class into every batch and hands back weights that restore the true
prevalence: precision, F, coverage and error depend on it, and would otherwise be trained wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import share as share_between
from setpoint._checks import whole
from setpoint.axes.segments import Grouped, query_column


class Batch(NamedTuple):
    """Rows of the data, and their weights (mean 1), or None when all count the same."""

    rows: Tensor
    weights: Tensor | None


class Sampler(Protocol):
    """Draws batches; the same seed gives the same batches."""

    @property
    def size(self) -> int:
        """Examples in a batch."""

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """Yield ``steps`` batches of row indices for examples with these labels."""


@dataclass(frozen=True)
class Shuffled:
    """Pass after pass over the data in a new order, an incomplete last batch left out.

    Args:
        size: Examples in a batch.
    """

    size: int

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """Yield ``steps`` batches of row indices for examples with these labels."""
        for rows in batches(len(labels), self.size, steps=steps, seed=seed):
            yield Batch(rows, None)


@dataclass(frozen=True)
class Stratified:
    """Every batch holds the same, sufficient number of positives and of negatives.

    The rarer class has its natural share of a batch, but at least ``share`` of it and at least
    ``least`` examples (never more than half of the batch): it is resampled up to that. The other
    class is never thinned out: it goes on filling the batch pass after pass. Weights undo it: in
    every batch each class weighs what it does in the data; hand them to the criterion as
    ``resampling=``. Data that fit into one batch are taken whole: repeating rows would add nothing.

    Args:
        size: Examples in a batch.
        least: How many of the rarer class every batch holds at least.
        share: How much of the batch it is at least; 0: only ``least`` counts.

    Examples:
        >>> labels = torch.tensor([1] * 10 + [0] * 990)
        >>> rows, weights = next(Stratified(100).draw(labels, steps=1, seed=0))
        >>> int(labels[rows].sum()), round(float((weights * labels[rows]).sum() / 100), 6)
        (20, 0.01)
    """

    size: int
    least: int = 20
    share: float = 0.2

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """Yield ``steps`` batches of row indices for examples with these labels."""
        positive = labels.detach().cpu().reshape(-1) > 0
        classes = [torch.nonzero(mask)[:, 0] for mask in (positive, ~positive)]
        rare, common = sorted(classes, key=len)
        size = min(whole(self.size, "size", least=1), len(positive))
        count = self._rare_in_batch(len(rare), len(positive), size)
        if count == 0 or size in (1, len(positive)):  # one class only, batches of one, or whole
            yield from Shuffled(size).draw(labels, steps=steps, seed=seed)
            return
        yield from _by_class([rare, common], [count, size - count], steps=steps, seed=seed)

    def _rare_in_batch(self, rare: int, total: int, size: int) -> int:
        """How many examples of the rarer class each batch holds."""
        if rare == 0:
            return 0
        share = share_between(self.share, "share")
        wanted = max(whole(self.least, "least", least=0), round(share * size))
        return max(round(size * rare / total), min(wanted, size // 2))


@dataclass(frozen=True)
class Classwise:
    """Every batch holds its natural share of every class, but at least ``least`` of each.

    Weights undo it: in every batch each class weighs what it does in the data; hand them to the
    criterion as ``resampling=``. Data that fit into one batch are taken whole.

    Args:
        size: Examples in a batch.
        least: How many of each class a batch holds at least (an equal share of it at most).

    Examples:
        >>> labels = torch.tensor([0] * 90 + [1] * 8 + [2] * 2)
        >>> rows, weights = next(Classwise(20, least=4).draw(labels, steps=1, seed=0))
        >>> torch.bincount(labels[rows]).tolist()
        [12, 4, 4]
    """

    size: int
    least: int = 4

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """Yield ``steps`` batches of row indices for examples with these labels."""
        labels = labels.detach().cpu().reshape(-1).long()
        size = min(whole(self.size, "size", least=1), len(labels))
        classes = [torch.nonzero(labels == k)[:, 0] for k in sorted(set(labels.tolist()))]
        if len(classes) < 2 or size in (1, len(labels)):
            yield from Shuffled(size).draw(labels, steps=steps, seed=seed)
            return
        counts = self.counts([len(rows) for rows in classes], size)
        yield from _by_class(classes, counts, steps=steps, seed=seed)

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


@dataclass(frozen=True)
class Unweighted:
    """The batches of another sampler without their weights: plain oversampling.

    Args:
        sampler: Which rows are drawn, such as ``Stratified(256)``.
    """

    sampler: Sampler

    @property
    def size(self) -> int:
        """Examples in a batch."""
        return self.sampler.size

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """Yield ``steps`` batches of row indices for examples with these labels."""
        drawn = self.sampler.draw(labels, steps=steps, seed=seed)
        return (Batch(rows, None) for rows, _ in drawn)


class WholeQueries:
    """Batches of whole queries, pass after pass in a new order; an incomplete last one is left out.

    Args:
        queries: The query of each example, numbers or strings in any order.
        count: Queries in a batch.

    Examples:
        >>> sampler = WholeQueries(["a", "a", "b", "c", "c", "c"], 2)
        >>> [len(rows) for rows, _ in sampler.draw(torch.zeros(6), steps=2, seed=0)]
        [5, 4]
    """

    def __init__(self, queries: Any, count: int) -> None:
        length = len(queries)
        column = query_column("query", queries, np.empty(length, dtype=bool))
        self._grouped = Grouped.by(column)
        self.count = min(whole(count, "count", least=1), max(1, len(self._grouped)))
        self.examples = length

    @property
    def size(self) -> int:
        """Examples in a batch, on average."""
        return max(1, -(-self.examples * self.count // max(1, len(self._grouped))))

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """Yield ``steps`` batches; a batch keeps the documents of a query together."""
        if len(labels) != self.examples:
            raise ValueError(
                f"There are {self.examples} examples with a query, and {len(labels)} labels."
            )
        starts, order = self._grouped.starts, self._grouped.order
        for chosen in batches(len(self._grouped), self.count, steps=steps, seed=seed):
            first = starts[chosen.numpy()]
            lengths = starts[chosen.numpy() + 1] - first
            ends = np.cumsum(lengths)
            places = np.arange(ends[-1]) + np.repeat(first - (ends - lengths), lengths)
            yield Batch(torch.as_tensor(places if order is None else order[places]), None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._grouped)} queries, {self.count})"


def batches(count: int, size: int, *, steps: int, seed: int) -> Iterator[Tensor]:
    """Rows of ``steps`` batches: pass after pass in a new order, an incomplete last one left out.

    Examples:
        >>> [len(rows) for rows in batches(10, 4, steps=3, seed=0)]
        [4, 4, 4]
    """
    size = min(whole(size, "batch_size", least=1), whole(count, "The number of examples", least=1))
    generator = torch.Generator().manual_seed(seed)
    left = whole(steps, "steps", least=1)
    while left:
        order = torch.randperm(count, generator=generator)
        for start in range(0, min(left, count // size) * size, size):
            yield order[start : start + size]
            left -= 1


def cycle(rows: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Chunks of ``size`` rows without end, every row once before any comes again."""
    queue = rows[:0]
    while True:
        parts = [queue]
        while sum(map(len, parts)) < size:
            parts.append(rows[torch.randperm(len(rows), generator=generator)])
        queue = torch.cat(parts)
        yield queue[:size]
        queue = queue[size:]


def _by_class(
    classes: list[Tensor], counts: list[int], *, steps: int, seed: int
) -> Iterator[Batch]:
    """Batches with ``counts`` rows of each class, weighted back to the shares of the classes."""
    size, total = sum(counts), sum(map(len, classes))
    pairs = list(zip(classes, counts, strict=True))
    weights = torch.cat(
        [torch.full((count,), len(rows) / total * size / max(count, 1)) for rows, count in pairs]
    )
    generator = torch.Generator().manual_seed(seed)
    streams = [cycle(rows, count, generator) for rows, count in pairs if count]
    for _ in range(whole(steps, "steps", least=1)):
        yield Batch(torch.cat([next(stream) for stream in streams]), weights)

"""Which examples come in which batch, and what each counts for.

A rate cannot be learnt from a batch that has none of the examples it counts. :class:`Stratified`
puts enough of the rarer class into every batch and hands back weights that restore the true
prevalence: precision, F, coverage and error depend on it, and would otherwise be trained wrong.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler

from setpoint._checks import share as share_between
from setpoint._checks import whole
from setpoint.axes.query_data import Grouped, query_column
from setpoint.distributed import rank_of, workers


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


class ByClass(ABC):
    """Batches with a fixed number of rows of each class, weighted back to the shares of the data.

    Made of a batch size it is a :class:`Sampler`. Made of labels and a batch size it is also a
    ``batch_sampler`` of :class:`torch.utils.data.DataLoader`: every iteration is a pass over the
    data with batches of its own, on several ranks each rank's part of the batches of all.

    Args:
        labels: The labels of all examples, or the batch size alone.
        size: Examples in a batch (of each rank).
        seed: Decides the batches of a data loader, with the number of the pass.
    """

    def __init__(self, labels: Any, size: int | None = None, *, seed: int = 0) -> None:
        given = labels if size is None else size
        self.size, self.seed = whole(given, "size", least=1), seed
        self.labels = None if size is None else _label_column(labels, type(self).__name__)
        self._passes = 0

    @abstractmethod
    def classes(self, labels: Tensor) -> list[Tensor]:
        """The rows of each class."""

    @abstractmethod
    def counts(self, sizes: list[int], size: int) -> list[int]:
        """How many of each class a batch of ``size`` holds, from the sizes of the classes."""

    def _parts(self, labels: Tensor, size: int) -> tuple[list[Tensor], list[int]]:
        """The rows of each class, and how many of them a batch holds.

        Nothing where batches come as they are: all data fit into one, there is only one class, or
        a class is too rare for these batches to hold any of it.
        """
        labels = labels.detach().cpu().reshape(-1)
        classes = self.classes(labels)
        if len(classes) < 2 or size in (1, len(labels)):
            return [], []
        counts = self.counts([len(rows) for rows in classes], size)
        return (classes, counts) if all(counts) else ([], [])

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """Yield ``steps`` batches of row indices for examples with these labels."""
        return self._drawn(labels, min(self.size, labels.numel()), steps, seed)

    def _drawn(self, labels: Tensor, size: int, steps: int, seed: int) -> Iterator[Batch]:
        classes, counts = self._parts(labels, size)
        if not classes:
            return Shuffled(size).draw(labels, steps=steps, seed=seed)
        return _draw_by_class(classes, counts, steps=steps, seed=seed)

    def __len__(self) -> int:
        """Batches in a pass of a data loader."""
        self._refuse_nesting()
        return max(1, len(self._own_labels()) // (self.size * workers()))

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of the next pass of a data loader, as lists of rows."""
        self._refuse_nesting()
        return self._batches()

    def _refuse_nesting(self) -> None:
        """TypeError if the caller's caller is a batch sampler of torch, made for single rows.

        ``DataLoader(data, sampler=Stratified(...))`` would yield batches of batches.
        """
        outer: Any = sys._getframe(2).f_locals.get("self")
        if isinstance(outer, BatchSampler) and id(outer.sampler) == id(self):
            name = type(self).__name__
            raise TypeError(
                f"{name} yields batches, and sampler= takes single rows: DataLoader(data, "
                f"batch_sampler={name}(labels, {self.size})), without batch_size= and shuffle=."
            )

    def _batches(self) -> Iterator[list[int]]:
        labels, count, rank = self._own_labels(), workers(), rank_of()
        seed, self._passes = self.seed + self._passes, self._passes + 1
        size = min(self.size * count, len(labels))
        for rows, _ in self._drawn(labels, size, len(self), seed):
            yield rows[rank::count].tolist()  # classes stand one after the other: each is divided

    def set_epoch(self, epoch: int) -> None:
        """Make the pass with this number the next one, as in ``DistributedSampler``."""
        self._passes = whole(epoch, "epoch", least=0)

    def weights_of(self, labels: Tensor) -> Tensor:
        """The weights that undo the choice of a batch of a data loader, by its labels.

        Hand them to a criterion that takes ``resampling=``, to any other as ``weights=``.
        """
        known = self._own_labels()
        size = min(self.size * workers(), len(known))
        classes, counts = self._parts(known, size)
        weights = torch.ones(labels.shape, device=labels.device)
        for rows, count, weight in zip(
            classes, counts, _class_weights(classes, counts), strict=True
        ):
            if count:
                weights[self._same_class(labels, known[rows[0]])] = weight
        return weights

    def _same_class(self, labels: Tensor, label: Tensor) -> Tensor:
        return labels == label.to(labels)

    def _own_labels(self) -> Tensor:
        if self.labels is None:
            name = type(self).__name__
            raise TypeError(
                f"{name}({self.size}) does not know the labels it draws from; a data loader takes "
                f"DataLoader(data, batch_sampler={name}(labels, {self.size}))."
            )
        return self.labels

    def __repr__(self) -> str:
        options = {k: v for k, v in vars(self).items() if k not in ("labels", "seed", "_passes")}
        listed = ", ".join(f"{name}={value!r}" for name, value in options.items())
        return f"{type(self).__name__}({listed})"


class Stratified(ByClass):
    """Every batch holds the same, sufficient number of positives and of negatives.

    The rarer class has its natural share of a batch, but at least ``share`` of it and at least
    ``least`` examples (never more than half of the batch): it is resampled up to that. The other
    class is never thinned out: it goes on filling the batch pass after pass. Weights undo it: in
    every batch each class weighs what it does in the data; hand them to the criterion as
    ``resampling=``. Data that fit into one batch are taken whole: repeating rows would add nothing.

    Args:
        labels: The labels of all examples, for a data loader; or the batch size alone.
        size: Examples in a batch (of each rank).
        least: How many of the rarer class every batch holds at least.
        share: How much of the batch it is at least; 0: only ``least`` counts.
        seed: Decides the batches of a data loader, with the number of the pass.

    Examples:
        >>> labels = torch.tensor([1] * 10 + [0] * 990)
        >>> rows, weights = next(Stratified(100).draw(labels, steps=1, seed=0))
        >>> int(labels[rows].sum()), round(float((weights * labels[rows]).sum() / 100), 6)
        (20, 0.01)

        In a data loader:

        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> sampler = Stratified(labels, 100)
        >>> loader = DataLoader(TensorDataset(torch.randn(1000, 3), labels), batch_sampler=sampler)
        >>> x, y = next(iter(loader))
        >>> len(loader), int(y.sum()), round(float((sampler.weights_of(y) * y).sum() / 100), 6)
        (10, 20, 0.01)
    """

    def __init__(
        self,
        labels: Any,
        size: int | None = None,
        *,
        least: int = 20,
        share: float = 0.2,
        seed: int = 0,
    ) -> None:
        super().__init__(labels, size, seed=seed)
        self.least = whole(least, "least", least=0)
        self.share = share_between(share, "share")

    def classes(self, labels: Tensor) -> list[Tensor]:
        """The rows of the rarer class, then the others; only one part if a class is missing."""
        parts = [torch.nonzero(mask)[:, 0] for mask in (labels > 0, ~(labels > 0))]
        return sorted((rows for rows in parts if len(rows)), key=len)

    def counts(self, sizes: list[int], size: int) -> list[int]:
        """How many of the rarer class a batch holds, and how many others."""
        wanted = max(self.least, round(self.share * size))
        count = max(round(size * sizes[0] / sum(sizes)), min(wanted, size // 2))
        return [count, size - count]

    def _same_class(self, labels: Tensor, label: Tensor) -> Tensor:
        return (labels > 0) == bool(label > 0)


class Classwise(ByClass):
    """Every batch holds its natural share of every class, but at least ``least`` of each.

    Weights undo it: in every batch each class weighs what it does in the data; hand them to the
    criterion as ``resampling=``. Data that fit into one batch are taken whole.

    Args:
        labels: The labels of all examples, for a data loader; or the batch size alone.
        size: Examples in a batch (of each rank).
        least: How many of each class a batch holds at least (an equal share of it at most).
        seed: Decides the batches of a data loader, with the number of the pass.

    Examples:
        >>> labels = torch.tensor([0] * 90 + [1] * 8 + [2] * 2)
        >>> rows, weights = next(Classwise(20, least=4).draw(labels, steps=1, seed=0))
        >>> torch.bincount(labels[rows]).tolist()
        [12, 4, 4]
    """

    def __init__(
        self, labels: Any, size: int | None = None, *, least: int = 4, seed: int = 0
    ) -> None:
        super().__init__(labels, size, seed=seed)
        self.least = whole(least, "least", least=0)

    def classes(self, labels: Tensor) -> list[Tensor]:
        """The rows of each class, in the order of the labels."""
        return [torch.nonzero(labels == label)[:, 0] for label in sorted(set(labels.tolist()))]

    def counts(self, sizes: list[int], size: int) -> list[int]:
        """How many of each class a batch of ``size`` holds."""
        least = min(self.least, size // len(sizes))
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


def _label_column(labels: Any, name: str) -> Tensor:
    """Labels as numbers ``[n]``; TypeError for texts, or for a data set."""
    try:
        return torch.as_tensor(labels).detach().cpu().reshape(-1)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"{name} takes the labels of all examples as numbers, as in "
            f"{name}((labels == 'fraud').astype(int), 64); got {type(labels).__name__}."
        ) from None


def _class_weights(classes: list[Tensor], counts: list[int]) -> list[float]:
    """What a row of each class counts for, so that classes weigh what they do in the data."""
    size, total = sum(counts), sum(map(len, classes))
    pairs = zip(classes, counts, strict=True)
    return [len(rows) / total * size / count for rows, count in pairs]


def _draw_by_class(
    classes: list[Tensor], counts: list[int], *, steps: int, seed: int
) -> Iterator[Batch]:
    """Batches with ``counts`` rows of each class, weighted back to the shares of the classes."""
    each = zip(_class_weights(classes, counts), counts, strict=True)
    weights = torch.cat([torch.full((count,), weight) for weight, count in each])
    generator = torch.Generator().manual_seed(seed)
    pairs = zip(classes, counts, strict=True)
    streams = [cycle(rows, count, generator) for rows, count in pairs]
    for _ in range(whole(steps, "steps", least=1)):
        yield Batch(torch.cat([next(stream) for stream in streams]), weights)

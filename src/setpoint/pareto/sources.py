"""Where batches come from: tensors, any iterable of batches, or the objectives themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

import torch
from torch import Tensor

from setpoint._checks import whole
from setpoint.train import batches

CallArguments = tuple[Any, ...]


class Source(Protocol):
    """The data that a front is trained on."""

    @property
    def exact(self) -> bool:
        """Whether every step sees all data, so that losses and gradients have no noise."""

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """Yield the arguments of ``steps`` calls of the objectives, after the model."""

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """All data, for evaluation: batches, and the weight of each."""

    def describe(self) -> str:
        """What must be the same for a folder to be continued."""


@dataclass(frozen=True)
class TensorRows:
    """Tensors with a row for each example; a step takes ``size`` of them, or all."""

    tensors: tuple[Tensor, ...]
    size: int | None

    @property
    def exact(self) -> bool:
        """Whether a batch is all rows."""
        return self.size is None or self.size >= len(self.tensors[0])

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """Pass after pass in a new order; all rows as they are if a batch is everything."""
        if self.size is None or self.exact:
            yield from [self.tensors] * steps
            return
        for rows in batches(len(self.tensors[0]), self.size, steps=steps, seed=seed):
            yield tuple(tensor[rows.to(tensor.device)] for tensor in self.tensors)

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """All rows at once: an objective need not be a mean over examples."""
        yield self.tensors, 1.0

    def describe(self) -> str:
        """The number of rows and of rows in a batch, and a tensor_digest of their content."""
        steps = "all at once" if self.exact else f"in batches of {self.size:,}"
        return f"{len(self.tensors[0]):,} rows {steps}, sha256 {tensor_digest(self.tensors)}"


@dataclass(frozen=True)
class BatchLoader:
    """Batches of an iterable such as a DataLoader, from the beginning again when it ends."""

    batches: Iterable[Any]
    exact: bool = False

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """As they come; the point's own random state decides a shuffled order."""
        left = steps
        while left:
            before = left
            for batch in self.batches:
                if not left:
                    return
                left -= 1
                yield _batch(batch)
            if left == before:
                raise ValueError("data gave no batch; pass tensors or an iterable with batches.")

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """Batch by batch, each counted by its rows."""
        for parts in map(_batch, self.batches):
            rows = next(iter(parts[0].values())) if isinstance(parts[0], Mapping) else parts[0]
            yield parts, float(len(rows))

    def describe(self) -> str:
        """The type of the iterable: its content cannot be read without drawing it."""
        return type(self.batches).__name__


@dataclass(frozen=True)
class NoData:
    """The objectives need only the model: they draw their own batches, or need none."""

    exact: bool = True  # unless the caller says that they draw batches

    def draw(self, steps: int, seed: int) -> Iterator[CallArguments]:
        """No arguments."""
        yield from [()] * steps

    def everything(self) -> Iterator[tuple[CallArguments, float]]:
        """One call."""
        yield (), 1.0

    def describe(self) -> str:
        """Nothing to compare."""
        return "none"


def source_of(data: Any, batch_size: int | None) -> Source:
    """``data`` as a source; raises if it is none."""
    if batch_size is not None:
        batch_size = whole(batch_size, "batch_size", least=1)
    if isinstance(data, Tensor):
        data = (data,)
    tensors = isinstance(data, Sequence) and len(data) > 0
    if tensors and all(isinstance(part, Tensor) and part.ndim > 0 for part in data):
        lengths = [len(part) for part in data]
        if len(set(lengths)) > 1 or not lengths[0]:
            raise ValueError(f"data must be tensors with as many rows each; got {lengths} rows.")
        return TensorRows(tuple(data), batch_size)
    if batch_size is not None:
        raise ValueError(
            f"batch_size={batch_size} needs data as tensors, such as data=(x, y); a loader has a "
            "batch size of its own."
        )
    if data is None:
        return NoData()
    if isinstance(data, Iterable) and not isinstance(data, Iterator):
        return BatchLoader(data)
    raise TypeError(
        "data must be tensors such as (x, y), a DataLoader or another iterable that can be read "
        "again and again, or None if the objectives need only the model; "
        f"got {type(data).__name__}."
    )


def _batch(batch: Any) -> CallArguments:
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


def tensor_digest(tensors: Sequence[Tensor] | Mapping[str, Tensor]) -> str:
    """The first 16 digits of the SHA-256 of shapes, types and content, and of names if given."""
    found = sha256()
    named = tensors.items() if isinstance(tensors, Mapping) else (("", part) for part in tensors)
    for name, tensor in named:
        plain = torch.as_tensor(tensor).detach().cpu().contiguous()
        found.update(f"{name}{tuple(plain.shape)} {plain.dtype}".encode())
        found.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]

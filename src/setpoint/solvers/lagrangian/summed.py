"""Counts of all ranks at thresholds that everybody knows: they add up, nobody's scores are sent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from setpoint.steps import Hard
from setpoint.thresholds import Reading, Sample


@dataclass(frozen=True)
class AllCounts:
    """What is counted of a batch: tensors that add up over ranks."""

    rows: Tensor  # [1]
    totals: Tensor  # [c, k]
    soft: Tensor  # [c, m, k], twice as many for a step that is not complementary
    slopes: Tensor  # of these by the thresholds
    hard: Tensor  # [c, m, k]
    band: Tensor  # of the kernel's weights their sum and that of their squares, [2, c, m]

    @classmethod
    def of(cls, reading: Reading) -> AllCounts:
        """The counts of a rank's own rows."""
        (c, m), (_, n, k) = reading.at.shape, reading.batch.columns.shape
        rows = reading.at.new_full((1,), n)
        if not n:
            wide = reading.at.new_zeros(c, m, k if reading.step.complementary else 2 * k)
            band = reading.at.new_zeros(2, c, m)
            return cls(rows, reading.batch.totals, wide, wide, wide[..., :k], band)
        hard = replace(reading, step=Hard(), _kernels=[]).counts()[0]
        band = torch.stack(reading.band(reading.at))
        return cls(rows, reading.batch.totals, *reading.counts(), hard[..., :k], band)

    def parts(self) -> list[Tensor]:
        """All of them, in a fixed order."""
        return [self.rows, self.totals, self.soft, self.slopes, self.hard, self.band]


@dataclass(frozen=True)
class AddedReading(Reading):
    """A batch read by its own rows, with the counts of all ranks."""

    all_: AllCounts | None = field(default=None, kw_only=True)

    def counts(self) -> tuple[Tensor, Tensor]:
        """Of all ranks, soft or hard as the step is."""
        assert self.all_ is not None
        if isinstance(self.step, Hard):
            return self.all_.hard, torch.zeros_like(self.all_.hard)
        return self.all_.soft, self.all_.slopes

    def band(self, at: Tensor) -> tuple[Tensor, Tensor]:
        """Of all ranks, at the thresholds."""
        assert self.all_ is not None
        weight, squares = self.all_.band
        return weight, squares

    def pull(self, by_count: Tensor) -> Tensor:
        """The gradient on the own rows."""
        if not self.batch.scores.shape[1]:
            return torch.zeros_like(self.batch.scores)
        pulled: Tensor = super().pull(by_count)
        return pulled


@dataclass(frozen=True)
class CountSums:
    """A rank's own rows, read at the thresholds, and their counts."""

    reading: Reading
    counts: AllCounts

    @classmethod
    def of(cls, reading: Reading) -> CountSums:
        """Count the rows of a reading."""
        return cls(reading, AllCounts.of(reading))

    def numbers(self) -> Tensor:
        """What is added up over ranks."""
        return torch.cat([part.reshape(-1) for part in self.counts.parts()])

    def of_all(self, totals: Tensor) -> AddedReading:
        """The same rows among those of all ranks."""
        parts = self.counts.parts()
        pieces = torch.split(totals, [part.numel() for part in parts])
        counts = AllCounts(*(x.reshape_as(part) for x, part in zip(pieces, parts, strict=True)))
        own = self.reading
        whole = Sample(own.batch.scores, own.batch.columns)
        object.__setattr__(whole, "totals", counts.totals)
        return AddedReading(
            own.step, own.at, own.width, whole, own.batch, own._kernels, all_=counts
        )

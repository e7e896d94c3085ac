"""Fewer rows for Newton's matrix: samples of them (Meng et al. 2021, equations 6 and 7).

A program with many more rows than variables needs its matrix ``A_J' A_J`` only roughly: the step is
checked by an exact line search on the exact slope, so a sample of the violated rows costs steps,
never accuracy, and near the solution, where few rows are violated, not even steps. The published
form samples all rows and the slope as well, and so solves another program.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._checks import whole


@dataclass(frozen=True)
class Sketch:
    """A sample of ``size`` rows, weighted so that sums over it are right on average."""

    size: int
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        whole(self.size, "sketch", least=1)

    def gram(self, A: Tensor, on: Tensor) -> Tensor:
        """``A_J' A_J`` of the rows that are ``on``, from at most ``size`` of them for each member.

        A small sample sees only some directions. The true diagonal is mixed in for the others, the
        more the fewer rows there are for each variable.
        """
        m, n = A.shape[1:]
        if self.size >= m:
            return (A * on[:, :, None]).mT @ A
        draw = torch.rand(on.shape, generator=self.generator, dtype=A.dtype).to(A.device)
        kept = (draw + on.to(A.dtype)).topk(self.size, 1).indices
        some = A.gather(1, kept[:, :, None].expand(-1, -1, n)) * on.gather(1, kept)[:, :, None]
        count = on.sum(1)[:, None, None]
        share = torch.where(count > self.size, n / (n + self.size), 0.0)
        H = (1 - share) * (count / self.size).clamp(min=1) * (some.mT @ some)
        square = (A * A * on[:, :, None]).sum(1)
        H.diagonal(dim1=1, dim2=2).add_(share[:, 0] * square)
        return H

    def is_exact(self, on: Tensor) -> Tensor:
        """For which members the sample holds all the rows that are ``on``, ``[batch]``."""
        return on.sum(1) <= self.size

    def rows(self, A: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The same sample of rows of every member, and their right sides."""
        m = A.shape[1]
        if self.size >= m:
            return A, b
        weight = (m / self.size) ** 0.5
        kept = torch.randperm(m, generator=self.generator)[: self.size].to(A.device)
        return A[:, kept] * weight, b[:, kept] * weight

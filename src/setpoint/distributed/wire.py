"""Messages between ranks: a few numbers, or rows of bytes, from everybody to everybody."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed.ranks import workers


class Wire:
    """What ranks of a group say to each other.

    Args:
        group: The ranks; None for all.
    """

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group = group
        on_device = dist.get_backend(group) == "nccl"  # which sends from the device only
        self.device = torch.device("cuda" if on_device else "cpu")

    def numbers(self, mine: list[int]) -> list[list[int]]:
        """The numbers of each rank, as many on all."""
        own = torch.tensor([mine], dtype=torch.int64, device=self.device)
        found = own.new_empty(workers(self.group), own.shape[1])
        dist.all_gather_single(found, own, group=self.group)
        listed: list[list[int]] = found.tolist()
        return listed

    def rows(self, mine: Tensor, sizes: list[int]) -> Tensor:
        """Rows of bytes ``[n, width]``, one rank after the other; padded to the longest share."""
        most, width = max(sizes), mine.shape[1]
        own = torch.zeros(most, width, dtype=torch.uint8, device=self.device)
        own[: len(mine)] = mine
        found = own.new_empty(len(sizes) * most, width)
        if found.numel():
            dist.all_gather_single(found, own, group=self.group)
        here = found.cpu()
        return torch.cat([here[i * most : i * most + size] for i, size in enumerate(sizes)])

    def texts(self, mine: bytes, lengths: list[int]) -> list[bytes]:
        """A piece of text of each rank, of known lengths."""
        own = torch.frombuffer(bytearray(mine), dtype=torch.uint8)[:, None]
        every = self.rows(own, lengths)[:, 0].numpy().tobytes()
        pieces, start = [], 0
        for length in lengths:
            pieces.append(every[start : start + length])
            start += length
        return pieces

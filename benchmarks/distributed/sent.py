"""Bytes that a rank hands over in a step, for criteria that gather and criteria that add up.

    python -m benchmarks.distributed.sent

Two processes, half of the batch on each; the second step, counted where messages are sent. DDP's
own messages are not among them.
"""

from __future__ import annotations

import tempfile
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from setpoint import CrossEntropy, Implicit, Lagrangian, fnr_at_fpr

GOAL = fnr_at_fpr(0.05)
CRITERIA: dict[str, Any] = {
    "`Implicit(goal)`": lambda: Implicit(GOAL, reduction="sum"),
    "`Lagrangian(goal)`": lambda: Lagrangian(GOAL, reduction="sum"),
    "`Lagrangian(goal, threshold=0.0)`": lambda: Lagrangian(GOAL, threshold=0.0, reduction="sum"),
    "`CrossEntropy(positives=...)`": lambda: CrossEntropy(positives="balanced", reduction="sum"),
}
BATCHES = (512, 8_192, 131_072)


def sent(make: Any, rows: int) -> int:
    """Bytes of the second step of a criterion on its share of a batch."""
    criterion, total = make(), 0
    r = torch.Generator().manual_seed(dist.get_rank())

    def counting(name: str, place: int) -> Any:
        real = getattr(dist, name)

        def call(*tensors: Any, **options: Any) -> Any:
            nonlocal total
            total += tensors[place].numel() * tensors[place].element_size()
            return real(*tensors, **options)

        return patch.object(dist, name, call)

    with counting("all_reduce", 0), counting("all_gather_single", 1):
        for _ in range(2):
            total = 0
            labels = (torch.rand(rows // 2, generator=r) < 0.2).long()
            scores = torch.randn(rows // 2, generator=r) + labels
            criterion(scores.requires_grad_(), labels).backward()
    return total


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    meet = f"file://{folder}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
    lines = ["| criterion | " + " | ".join(f"{rows:,} rows" for rows in BATCHES) + " |"]
    lines.append("| --- |" + " ---: |" * len(BATCHES))
    for name, make in CRITERIA.items():
        found = [sent(make, rows) for rows in BATCHES]
        lines.append(f"| {name} | " + " | ".join(f"{one:,}" for one in found) + " |")
    if rank == 0:
        print("\n".join(lines))
    dist.destroy_process_group()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (folder,), nprocs=2, start_method="spawn")


if __name__ == "__main__":
    main()

"""Milliseconds a step of one and two processes, and bytes on the wire.

    python -m benchmarks.distributed.scaling [--quick]

Strong scaling: the same global batch, divided. Latency and bandwidth of the loopback device are
measured with the messages that a criterion sends. Rows are appended; benchmarks.distributed.page
writes them into docs/distributed.md, with a model of many workers.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks.common import results
from setpoint import Implicit, fnr_at_fpr
from setpoint.distributed import gather_rows

RESULTS = Path(__file__).parents[1] / "results" / "distributed.jsonl"
BATCH, COLUMNS = 2048, 64
WIDTHS = (
    128,
    512,
)  # of the hidden layers: a small step, where messages weigh most, and a larger one
METHODS: dict[str, Callable[[], nn.Module]] = {
    "cross-entropy": nn.BCEWithLogitsLoss,  # per rank: what DDP costs without us
    "Implicit": lambda: Implicit(fnr_at_fpr(0.05)),
}
ROW_BYTES = 4 + 8  # a score in single precision, a label of 64 bits
HEADER_BYTES = 2 * 8


def network(width: int) -> nn.Module:
    torch.manual_seed(0)
    body = (nn.Linear(COLUMNS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    return nn.Sequential(*body, nn.Linear(width, 1))


def train(rank: int, size: int, name: str, width: int, steps: int) -> dict[str, float]:
    """Median milliseconds of a step and of its loss alone."""
    model: nn.Module = network(width)
    criterion = METHODS[name]()
    if size > 1:
        model = DistributedDataParallel(model)
        if isinstance(criterion, Implicit):
            criterion.attach(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    r = torch.Generator().manual_seed(1)
    y = (torch.rand(BATCH, generator=r) < 0.2).long()
    x = torch.randn(BATCH, COLUMNS, generator=r) + 0.2 * y[:, None]
    x, y = x[rank::size], y[rank::size]
    whole, losses = [], []
    for _ in range(steps):
        start = time.perf_counter()
        scores = model(x).squeeze(-1)
        middle = time.perf_counter()
        loss = criterion(scores, y if name == "Implicit" else y.float())
        losses.append(time.perf_counter() - middle)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        whole.append(time.perf_counter() - start)
    half = steps // 4  # the first are slower
    return {
        "step_ms": 1000 * statistics.median(whole[half:]),
        "loss_ms": 1000 * statistics.median(losses[half:]),
    }


def link(repeats: int) -> dict[str, float]:
    """Seconds of a small gather, and bytes a second of a large one."""
    small, large = torch.zeros(1), torch.zeros(2**20)
    times: dict[str, list[float]] = {"small": [], "large": []}
    for name, tensor in (("small", small), ("large", large)):
        for _ in range(repeats):
            dist.barrier()
            start = time.perf_counter()
            gather_rows({"x": tensor})
            times[name].append(time.perf_counter() - start)
    latency = statistics.median(times["small"])
    return {
        "gather_latency_ms": 1000 * latency,
        "gather_megabytes_per_s": 4 * 2**20 / (statistics.median(times["large"]) - latency) / 1e6,
    }


def work(rank: int, size: int, folder: str, name: str, width: int, steps: int) -> None:
    torch.set_num_threads(1)
    meet = f"file://{folder}/meet"
    wait = timedelta(seconds=300)
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=size, timeout=wait)
    found: dict[str, Any] = {**train(rank, size, name, width, steps), **link(max(5, steps // 4))}
    if rank == 0:
        (Path(folder) / "found.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def measure(size: int, name: str, width: int, steps: int) -> dict[str, Any]:
    if size == 1:
        torch.set_num_threads(1)
        return train(0, 1, name, width, steps)
    with tempfile.TemporaryDirectory() as folder:
        given = (size, folder, name, width, steps)
        mp.start_processes(work, given, nprocs=size, start_method="spawn")
        found: dict[str, Any] = json.loads((Path(folder) / "found.json").read_text())
    return found


def bytes_of(size: int, parameters: int) -> dict[str, int]:
    """What one rank sends in a step: its rows to all others, and a ring of gradients."""
    rows = (size - 1) * (HEADER_BYTES + ROW_BYTES * BATCH // size)
    gradients = 2 * 4 * parameters * (size - 1) // size
    return {"criterion_bytes": rows, "gradient_bytes": gradients}


def main() -> None:
    parser = results.parser(__doc__, quick="a look")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    steps, repeats = (12, 1) if given.quick else (40, given.repeats)
    for repeat, width, name, size in product(range(repeats), WIDTHS, METHODS, (1, 2)):
        parameters = sum(p.numel() for p in network(width).parameters())
        found = measure(size, name, width, steps) | bytes_of(size, parameters)
        row = {"processes": size, "width": width, "criterion": name, "repeat": repeat}
        row |= {"steps": steps, "load": os.getloadavg()[0], **found}
        results.append(RESULTS, row)
        print(row, flush=True)


if __name__ == "__main__":
    main()

"""Steps a second of one and two processes, bytes on the wire, and a model of 64 to 4,096 workers.

    python -m benchmarks.distributed.scaling [--quick]

Strong scaling: the same global batch, divided. Latency and bandwidth of the loopback device are
measured with the messages that a criterion sends; the model replaces them by those of a cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from setpoint import Implicit, fnr_at_fpr
from setpoint.distributed import everyone

RESULTS = Path(__file__).parents[1] / "results" / "distributed.jsonl"
BATCH, COLUMNS, HIDDEN = 2048, 64, 128
ROW_BYTES = 4 + 8  # a score in single precision, a label of 64 bits
HEADER_BYTES = 4 * 8


def network() -> nn.Module:
    torch.manual_seed(0)
    body = (nn.Linear(COLUMNS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
    return nn.Sequential(*body, nn.Linear(HIDDEN, 1))


def train(rank: int, size: int, steps: int) -> dict[str, float]:
    """Median milliseconds of a step and of its loss alone."""
    model: nn.Module = network()
    criterion = Implicit(fnr_at_fpr(0.05))
    if size > 1:
        model = DistributedDataParallel(model)
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
        loss = criterion(scores, y)
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
            everyone({"x": tensor})
            times[name].append(time.perf_counter() - start)
    latency = statistics.median(times["small"])
    return {
        "gather_latency_ms": 1000 * latency,
        "gather_megabytes_per_s": 4 * 2**20 / (statistics.median(times["large"]) - latency) / 1e6,
    }


def work(rank: int, size: int, folder: str, steps: int) -> None:
    torch.set_num_threads(1)
    meet = f"file://{folder}/meet"
    wait = timedelta(seconds=300)
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=size, timeout=wait)
    found: dict[str, Any] = {**train(rank, size, steps), **link(max(5, steps // 4))}
    if rank == 0:
        (Path(folder) / "found.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def measure(size: int, steps: int) -> dict[str, Any]:
    if size == 1:
        torch.set_num_threads(1)
        return train(0, 1, steps)
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (size, folder, steps), nprocs=size, start_method="spawn")
        found: dict[str, Any] = json.loads((Path(folder) / "found.json").read_text())
    return found


def bytes_of(size: int, parameters: int) -> dict[str, int]:
    """What one rank sends in a step: its rows to all others, and a ring of gradients."""
    rows = (size - 1) * (HEADER_BYTES + ROW_BYTES * BATCH // size)
    gradients = 2 * 4 * parameters * (size - 1) // size
    return {"criterion_bytes": rows, "gradient_bytes": gradients}


def predicted(size: int, local: int, latency: float, bandwidth: float, sort: float) -> float:
    """Seconds that the criterion adds to a step: two ring gathers, and the loss of all rows."""
    wire = 2 * (size - 1) * latency + (size - 1) * local * ROW_BYTES / bandwidth
    return wire + sort * local * size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    steps, repeats = (12, 1) if given.quick else (40, given.repeats)
    parameters = sum(p.numel() for p in network().parameters())
    for repeat in range(repeats):
        for size in (1, 2):
            found = measure(size, steps) | bytes_of(size, parameters)
            load = os.getloadavg()[0]
            row = {"processes": size, "repeat": repeat, "steps": steps, "load": load, **found}
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()

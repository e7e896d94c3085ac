"""The tables of docs/distributed.md: what was measured, and a model of 64 to 4,096 workers.

    python -m benchmarks.distributed.page

The model: two gathers a step, of a header and of the rows, as a ring (every worker passes on what
it got, W - 1 messages one after another) or as a tree (log2 W messages of doubling size), then the
loss of all rows on every worker.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import results
from benchmarks.common.pages import fill
from benchmarks.distributed.scaling import HEADER_BYTES, RESULTS, ROW_BYTES

PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"
COST = RESULTS.with_name("step_cost.json")
LOCAL = 256  # examples a worker has in a batch
WORKERS = (2, 64, 256, 1024, 4096)
CLUSTER = (10e-6, 10e9)  # seconds a message, bytes a second: assumed, of a fast network


def main() -> None:
    rows = results.read(RESULTS)
    for name, lines in (("measured", measured(rows)), ("model", model(rows))):
        fill(PAGE, name, "\n".join(lines), cells=24)


def measured(rows: list[dict[str, Any]]) -> list[str]:
    """One and two processes, by the width of the network; medians of the repeats (quartiles)."""
    lines = [
        "| hidden layers | loss | one process | two processes | speed-up (range of the repeats) | "
        "loss alone, one / two |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    kinds = sorted({(row["width"], row["criterion"]) for row in rows})
    for kind in kinds:
        mine = [row for row in rows if (row["width"], row["criterion"]) == kind]
        one, two = ([row for row in mine if row["processes"] == n] for n in (1, 2))
        gains = sorted(a["step_ms"] / b["step_ms"] for a, b in zip(one, two, strict=True))
        step, loss = ([_middle(part, key) for part in (one, two)] for key in ("step_ms", "loss_ms"))
        lines.append(
            f"| 2 x {kind[0]} | {kind[1]} | {step[0]:.1f} ms | {step[1]:.1f} ms | "
            f"{median(gains):.2f} ({gains[0]:.2f} to {gains[-1]:.2f}) | "
            f"{loss[0]:.1f} / {loss[1]:.1f} ms |"
        )
    latency, bandwidth = _link(rows)
    return [
        *lines,
        "",
        f"Two gloo processes over the loopback device: {1e3 * latency:.1f} ms for a gather of one "
        f"number, {bandwidth / 1e6:.0f} MB/s for a large one (medians of {len(gains)} repeats).",
    ]


def model(rows: list[dict[str, Any]]) -> list[str]:
    """Milliseconds that the criterion adds to a step, by the number of workers."""
    here, each = _link(rows), _seconds_a_row()
    latency, bandwidth = here[0] * 1e3, here[1] / 1e6
    lines = [
        f"Loss: {each * 1e6:.3f} microseconds per row. As measured here: {latency:.1f} ms per "
        f"message, {bandwidth:.0f} MB/s. Fast network, assumed: {CLUSTER[0] * 1e6:.0f} "
        f"microseconds, {CLUSTER[1] / 1e9:.0f} GB/s.",
        "",
        "| workers | rows of the batch | sent by a rank | wire as measured here, tree | "
        "wire of a fast network, ring / tree | loss, one core |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for size in WORKERS:
        sent = (size - 1) * (LOCAL * ROW_BYTES + HEADER_BYTES)
        slow, ring, fast = tree(size, *here), wire(size, *CLUSTER), tree(size, *CLUSTER)
        lines.append(
            f"| {size:,} | {size * LOCAL:,} | {sent / 1e6:.3g} MB | {1e3 * slow:,.1f} ms | "
            f"{1e3 * ring:.2f} / {1e3 * fast:.2f} ms | {1e3 * each * size * LOCAL:.1f} ms |"
        )
    return lines


def wire(size: int, latency: float, bandwidth: float) -> float:
    """Seconds of two gathers in a ring."""
    return (size - 1) * (2 * latency + (LOCAL * ROW_BYTES + HEADER_BYTES) / bandwidth)


def tree(size: int, latency: float, bandwidth: float) -> float:
    """Seconds of two gathers by recursive doubling: the same bytes, fewer messages."""
    moved = (size - 1) * (LOCAL * ROW_BYTES + HEADER_BYTES)
    return 2 * math.ceil(math.log2(size)) * latency + moved / bandwidth


def _link(rows: list[dict[str, Any]]) -> tuple[float, float]:
    two = [row for row in rows if row["processes"] == 2]
    # `gather_rows` sends two messages.
    latency = _middle(two, "gather_latency_ms") / 2e3
    return latency, _middle(two, "gather_megabytes_per_s") * 1e6


def _middle(rows: list[dict[str, Any]], key: str) -> float:
    return median(row[key] for row in rows)


def _seconds_a_row() -> float:
    """What `Implicit` takes for a row of a large batch on one core."""
    found = json.loads(COST.read_text())["loss"]
    large = max(
        (row for row in found if row["thresholds"] == 1), key=lambda row: int(row["scores"])
    )
    return float(large["median"] / large["scores"])


if __name__ == "__main__":
    main()

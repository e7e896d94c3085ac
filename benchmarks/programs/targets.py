"""What was aimed at, what was measured, and whether it was reached in this run."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.programs.methods import METHODS
from benchmarks.programs.report_speed import Row, table

LARGEST = 512
# on the AUC program the layer solves nothing either: it sees that the variables do not touch
SOLVERS = [name for name in METHODS if name not in ("fast path", "layer", "layer, value_only")]


def verdicts(found: dict[str, list[Row]]) -> str:
    """A row for each target that has its measurements."""
    lines = [*_fast(found["speed"]), *_layer(found["speed"])]
    lines += [*_batches(found["batches"]), *_large(found["large"])]
    return table(["target", "measured", ""], lines)


def _line(target: str, measured: str, met: bool) -> list[str]:
    return [target, measured, "met" if met else "**not met**"]


def _seconds(rows: list[Row], metric: str, method: str) -> float | None:
    """Forward plus backward at the largest size."""
    wanted = {"metric": metric, "n": LARGEST, "method": method}
    for row in rows:
        if row["cell"] == wanted and "skipped" not in row:
            return float(row["forward_s"] + row["backward_s"])
    return None


def _fast(rows: list[Row]) -> Iterator[list[str]]:
    for metric, title, aim in (("auc", "AUC", 100), ("f1", "F score at a threshold", 50)):
        own = _seconds(rows, metric, "fast path")
        others = {name: _seconds(rows, metric, name) for name in SOLVERS}
        timed = {name: s for name, s in others.items() if s is not None}
        if own and timed:
            nearest = min(timed, key=lambda name: timed[name])
            ratio = timed[nearest] / own
            target = f"{title}, n = {LARGEST}: fast path {aim} x faster than every solver"
            yield _line(target, f"{ratio:.0f} x ({nearest})", ratio >= aim)


def _layer(rows: list[Row]) -> Iterator[list[str]]:
    for metric, way, limit, target in (
        ("f1", "layer", 2.0, "F-score program: layer within 2 x of cvxpylayers + Clarabel"),
        ("f1", "layer, value_only", 1.0, "the same with `value_only`: faster"),
        ("auc", "layer", 0.2, "sparse AUC program: layer 5 x faster than cvxpylayers + Clarabel"),
    ):
        own, peer = (_seconds(rows, metric, m) for m in (way, "cvxpylayers + Clarabel"))
        if own and peer:
            ratio = own / peer
            text = f"{ratio:.1f} x its time" if ratio >= 1 else f"{1 / ratio:.1f} x faster"
            yield _line(target, text, ratio <= limit)
    for row in rows:
        if row["cell"] == {"metric": "auc", "n": LARGEST, "method": "layer"} and row["megabytes"]:
            found = row["megabytes"]
            yield _line("AUC program, n = 512: under 100 MB", f"{found:.0f} MB", found < 100)


def _batches(rows: list[Row]) -> Iterator[list[str]]:
    found = {tuple(row["cell"].values()): row for row in rows if "skipped" not in row}
    for size in (64, 256):
        own, loop = found.get((size, "layer")), found.get((size, "HiGHS loop"))
        if own and loop:
            ratio = loop["forward_s"] / own["forward_s"]
            target = f"{size} programs of 60 x 20: layer faster than a loop over HiGHS (forward)"
            yield _line(target, f"{ratio:.2f} x the loop's speed", ratio > 1)


def _large(rows: list[Row]) -> Iterator[list[str]]:
    for row in rows:
        if row["cell"] == {"n": 1_000_000, "method": "auc_loss"} and "skipped" not in row:
            seconds, size = row["forward_s"] + row["backward_s"], row["megabytes"]
            target = "AUC of 1,000,000 scores: under 1 s and 200 MB"
            yield _line(target, f"{seconds:.2f} s, {size:.0f} MB", seconds < 1 and size < 200)

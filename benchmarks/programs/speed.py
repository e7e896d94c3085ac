"""The AUC and F-score programs, forward and backward: the layer, the fast paths and seven peers.

    python -m benchmarks.programs.speed               # n = 32 ... 512, about ten minutes
    python -m benchmarks.programs.speed --quick       # n = 32, 128, two minutes
    python -m benchmarks.programs.speed --only layer "fast path"

Writes benchmarks/results/programs_speed.jsonl row by row. A method is not asked for a size that
would by its growth take longer than ``--most`` seconds or more memory than ``--megabytes``; the row
then says so.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

from torch import Tensor

from benchmarks.programs.instances import METRICS, draw
from benchmarks.programs.measure import once, peak_megabytes, turns
from benchmarks.programs.methods import METHODS, dense_megabytes
from benchmarks.programs.rows import Rows, opened, parser

Last = dict[tuple[str, str], tuple[int, float]]  # the last size of a method, and its seconds
COPIES = 4  # dense matrices that a dense method holds at once, at least


def main() -> None:
    options = arguments()
    rows = opened(options, "speed")
    sizes = [32, 128] if options.quick else options.sizes
    last: Last = {}
    for metric in options.metrics:
        for n in sizes:
            run(rows, metric, n, last, options)


def run(rows: Rows, metric: str, n: int, last: Last, options: argparse.Namespace) -> None:
    """All methods at one size, taking turns."""
    scores, labels = draw(n)
    losses: dict[str, Callable[[Tensor], Tensor]] = {}
    for name in options.only or METHODS:
        cell = {"metric": metric, "n": n, "method": name}
        if metric not in METHODS[name].metrics or rows.done(cell):
            continue
        reason = too_large(metric, n, name, last, options)
        if reason:
            rows.add(cell, skipped=reason)
            continue
        try:
            losses[name] = METHODS[name].build(metric, labels)
        except ImportError as error:
            rows.add(cell, skipped=f"not installed: {error.name}")
    true = reference(metric, scores, labels)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in losses}
    errors: dict[str, tuple[float, float | None]] = {}
    lost: dict[str, str] = {}
    for turn in turns(losses, scores, options.rounds, options.most / 10, lost):
        times[turn.name].append((turn.forward, turn.backward))
        gradient = turn.gradient if METHODS[turn.name].gradient else None
        errors[turn.name] = against(true, turn.value, gradient)
    added = {
        name: peak_megabytes(lambda loss=loss, name=name: once(name, loss, scores))
        for name, loss in losses.items()
        if name not in lost
    }
    for name, pairs in times.items():
        if name in lost:
            rows.add({"metric": metric, "n": n, "method": name}, skipped=f"failed: {lost[name]}")
            continue
        forward, backward = zip(*pairs, strict=True)
        last[metric, name] = n, statistics.median(map(sum, pairs))
        rows.add(
            {"metric": metric, "n": n, "method": name},
            forward_s=statistics.median(forward),
            backward_s=statistics.median(backward),
            value_error=None if name == "AP-Perf" else errors[name][0],
            gradient_error=errors[name][1],
            megabytes=added[name],
            forward=forward,
            backward=backward,
        )


def too_large(
    metric: str, n: int, name: str, last: Last, options: argparse.Namespace
) -> str | None:
    """Why a method is not asked for this size, if so."""
    power = 2.0
    if METHODS[name].dense:
        needs = COPIES * dense_megabytes(metric, n)
        if needs > options.megabytes:
            return f"would hold {needs / 1e3:.1f} GB"
        # solving costs the cube of the variables: pairs for AUC, examples for the F score
        power = 6.0 if metric == "auc" else 3.0
    size, seconds = last.get((metric, name), (n, 0.0))
    expected = seconds * (n / size) ** power
    return f"would take about {expected:.0f} s" if expected > options.most else None


def reference(metric: str, scores: Tensor, labels: Tensor) -> tuple[float, Tensor]:
    """Value and gradient of the fast path, which the tests hold to HiGHS."""
    x = scores.clone().requires_grad_()
    value = METHODS["fast path"].build(metric, labels)(x)
    value.backward()
    assert x.grad is not None
    return float(value.detach()), x.grad


def against(
    true: tuple[float, Tensor], value: float, gradient: Tensor | None
) -> tuple[float, float | None]:
    """Relative errors of a value and a gradient."""
    off = abs(value - true[0]) / abs(true[0])
    if gradient is None:
        return off, None
    return off, float((gradient - true[1]).abs().max() / true[1].abs().max())


def arguments() -> argparse.Namespace:
    asked = parser(__doc__)
    asked.add_argument("--sizes", type=int, nargs="+", default=[32, 64, 128, 256, 512])
    asked.add_argument("--metrics", nargs="+", choices=METRICS, default=METRICS)
    asked.add_argument("--only", nargs="+", choices=[*METHODS], help="these methods")
    asked.add_argument("--rounds", type=int, default=7, help="repetitions, besides warming up")
    asked.add_argument("--most", type=float, default=30.0, help="seconds that a call may take")
    asked.add_argument("--megabytes", type=float, default=2000.0)
    options = asked.parse_args()
    if options.quick:
        options.rounds, options.most = 3, 5.0
    return options


if __name__ == "__main__":
    main()

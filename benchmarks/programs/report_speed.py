"""Markdown of the speed files: programs, batches, many scores, the game."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.programs.methods import METHODS

Row = dict[str, Any]
SHOWN = (64, 512)  # sizes in the table of memory


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    cells = [list(head), *map(list, lines)]
    cells.insert(1, ["---"] * len(cells[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def milliseconds(row: Row | None) -> str:
    """Forward / backward."""
    if row is None:
        return ""
    if "skipped" in row:
        return row["skipped"]
    return f"{digits(1e3 * row['forward_s'])} / {digits(1e3 * row['backward_s'])}"


def digits(value: float) -> str:
    """Two or three digits that matter."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def spread(row: Row) -> str:
    """Least and most of forward plus backward, in milliseconds."""
    both = [1e3 * (f + b) for f, b in zip(row["forward"], row["backward"], strict=True)]
    return f"{digits(min(both))}-{digits(max(both))}"


def speed(rows: list[Row], metric: str) -> str:
    """Methods down, sizes across; errors and spread at the largest size that was run."""
    mine = [row for row in rows if row["cell"]["metric"] == metric]
    sizes = sorted({row["cell"]["n"] for row in mine})
    found = {(row["cell"]["method"], row["cell"]["n"]): row for row in mine}
    lines = []
    for name in METHODS:
        here = [found.get((name, n)) for n in sizes]
        if not any(here):
            continue
        ran = [row for row in here if row and "skipped" not in row]
        last = ran[-1] if ran else {}
        errors = [last.get(key) for key in ("value_error", "gradient_error")]
        shown = ["-" if e is None else "0" if e == 0 else f"{e:.0e}" for e in errors]
        share = f"{100 * last['backward_s'] / last['forward_s']:.0f} %" if last else ""
        lines.append([name, *map(milliseconds, here), spread(last) if last else "", *shown, share])
    head = ["method", *(f"n = {n}" for n in sizes), "least-most", "value", "gradient", "backward"]
    return table(head, lines)


def memory(rows: list[Row]) -> str:
    """Peak megabytes that one loss with its backward pass adds."""
    found = {tuple(row["cell"].values()): row.get("megabytes") for row in rows}
    cells = sorted(
        {key[:2] for key, value in found.items() if value is not None and key[1] in SHOWN}
    )
    lines = []
    for name in METHODS:
        values = [found.get((metric, n, name)) for metric, n in cells]
        if any(value is not None for value in values):
            lines.append([name, *("-" if v is None else f"{v:.0f}" for v in values)])
    return table(["method", *(f"{metric}, n = {n}" for metric, n in cells)], lines)


def batches(rows: list[Row]) -> str:
    """Ways down, batch sizes across."""
    sizes = sorted({row["cell"]["batch"] for row in rows})
    found = {(row["cell"]["method"], row["cell"]["batch"]): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["cell"]["method"] for row in rows):
        here = [found.get((name, size)) for size in sizes]
        ran = [row for row in here if row and "skipped" not in row]
        last = ran[-1] if ran else None
        tail = [spread(last), f"{max(row['error'] for row in ran):.0e}"] if last else ["", ""]
        lines.append([name, *map(milliseconds, here), *tail])
    return table(["method", *map(str, sizes), "least-most", "worst error"], lines)


def large(rows: list[Row]) -> str:
    """Seconds and megabytes by number of scores."""
    lines = []
    for row in rows:
        n, name = row["cell"]["n"], row["cell"]["method"]
        if "skipped" in row:
            lines.append([f"{n:,}", name, row["skipped"], "", ""])
        else:
            lines.append(
                [f"{n:,}", name, milliseconds(row), spread(row), f"{row['megabytes']:.0f}"]
            )
    return table(["scores", "loss", "ms forward / backward", "least-most", "MB added"], lines)


def game(rows: list[Row]) -> str:
    """AP-Perf beside the exact game."""
    lines = []
    for row in rows:
        off = row.get("gradient_off")
        lines.append(
            [
                str(row["cell"]["n"]),
                row["cell"]["method"],
                f"{1e3 * row['seconds']:.0f}",
                f"{row['loss']:.6f}",
                f"{row['repaired']:.6f}" if "repaired" in row else "",
                "" if off is None else f"{off:.1e}",
            ]
        )
    return table(
        ["n", "method", "ms", "loss reported", "with the right sum", "gradient off by"], lines
    )


def backward(rows: list[Row]) -> str:
    """Modes down, programs across: forward and backward milliseconds, and their ratio."""
    programs = list(dict.fromkeys(row["cell"]["program"] for row in rows))
    found = {(row["cell"]["program"], row["cell"]["mode"]): row for row in rows}
    lines = []
    for mode in dict.fromkeys(row["cell"]["mode"] for row in rows):
        here = [found.get((program, mode)) for program in programs]
        shown = [
            f"{milliseconds(row)}, {100 * row['share']:.0f} %" if row and "share" in row else "-"
            for row in here
        ]
        lines.append([mode, *shown])
    return table(["mode", *programs], lines)

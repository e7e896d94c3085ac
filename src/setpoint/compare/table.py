"""A comparison as plain text, a method a line; what failed stands below in full."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from setpoint._checks import plural
from setpoint.compare.words import AT_RATE, CANNOT, DIVERGING, kind

if TYPE_CHECKING:
    from setpoint.compare.comparison import Comparison, Row
    from setpoint.results import Summary

HEADER = ("method", "test value", "gain", "", "ms/step", "target missed", "")
WIDEST = 96


def table(comparison: Comparison) -> str:
    """The problem, one line a method, and how to read it."""
    rows = comparison.rows
    seeds = len({trial.seed for trial in comparison.trials})
    notes: dict[str, int] = {}
    lines = [HEADER, *(_cells(row, seeds, notes) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER) - 1)]
    text = [
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in lines
    ]
    legend = (
        f"Mean ± standard deviation over {plural(seeds, 'split')}; gain over {rows[0].method}, "
        "paired, ± standard error\n(? less than two of them). Values at the threshold that is "
        "exact on the test part. With the\nvalidation threshold there, a bound is missed when it "
        "is broken, a setpoint when the rate is more\nthan two standard errors from its level, "
        "2 sqrt(level (1 - level) / n) for a share of n examples."
    )
    best = comparison.best
    chosen = f"\nBest on validation: {best}." if best else ""
    below = [*(_note(number, said) for said, number in notes.items()), ""] if notes else []
    return "\n".join([str(comparison.problem), "", *text, "", *below, legend + chosen])


def _cells(row: Row, seeds: int, notes: dict[str, int]) -> tuple[str, ...]:
    value = "none" if row.value is None else _both(row.value.mean, row.value.spread, "")
    better, verdict = "", ""
    if row.gain is not None:
        better = _both(row.gain.mean, row.gain.standard_error, "+")
        verdict = _verdict(row.gain)
    speed = "" if row.ms_per_step != row.ms_per_step else f"{row.ms_per_step:.2f}"
    missed = f"{row.missed} of {row.judged}" if row.judged else ""
    trouble = _trouble(row, seeds)
    if trouble:
        trouble += f" [{notes.setdefault(row.trouble, len(notes) + 1)}]"
    return row.method, value, better, verdict, speed, missed, trouble


def _trouble(row: Row, seeds: int) -> str:
    """What went wrong, in short; what is missed has a column of its own."""
    if row.failed:
        return kind(row.trouble) + (f" in {row.failed} of {seeds}" if row.failed < seeds else "")
    if DIVERGING in row.trouble:
        return DIVERGING
    return "a learning rate failed" if AT_RATE in row.trouble else ""


def _note(number: int, said: str) -> str:
    said = said.removeprefix(f"{CANNOT} it: ")  # the cell has said so
    first = f"[{number}] "
    return fill(
        said,
        WIDEST,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _both(mean: float, size: float, sign: str) -> str:
    after = "" if size != size else f" ± {size:.4f}"
    return f"{mean:{sign}.4f}{after}"


def _verdict(gain: Summary) -> str:
    if gain.mean == 0:
        return "level"
    clear = abs(gain.mean) > 2 * gain.standard_error
    return ("better" if gain.mean > 0 else "worse") + ("" if clear else " ?")

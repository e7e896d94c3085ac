"""A comparison as plain text, a method a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setpoint._checks import plural
from setpoint.compare.words import DIVERGING

if TYPE_CHECKING:
    from setpoint.compare.comparison import Comparison, Row
    from setpoint.results import Summary

HEADER = ("method", "test value", "gain", "", "ms/step", "bound missed", "")
WIDEST = 70


def table(comparison: Comparison) -> str:
    """The problem, one line a method, and how to read it."""
    rows = comparison.rows
    seeds = len({trial.seed for trial in comparison.trials})
    lines = [HEADER, *(_cells(row, seeds) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER) - 1)]
    text = [
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in lines
    ]
    legend = (
        f"Mean ± standard deviation over {plural(seeds, 'split')}; gain over {rows[0].method}, "
        "paired, ± standard error\n(? less than two of them). Values at the threshold that is "
        "exact on the test part; a bound is\nmissed when the validation threshold breaks it there."
    )
    best = comparison.best
    chosen = f"\nBest on validation: {best}." if best else ""
    return "\n".join([str(comparison.problem), "", *text, "", legend + chosen])


def _cells(row: Row, seeds: int) -> tuple[str, ...]:
    value = "none" if row.value is None else _both(row.value.mean, row.value.spread, "")
    better, verdict = "", ""
    if row.gain is not None:
        better = _both(row.gain.mean, row.gain.standard_error, "+")
        verdict = _verdict(row.gain)
    speed = "" if row.ms_per_step != row.ms_per_step else f"{row.ms_per_step:.2f}"
    missed = f"{row.missed} of {seeds}"
    told = row.failed or DIVERGING in row.trouble  # what is missed has a column of its own
    trouble = row.trouble if told else ""
    if len(trouble) > WIDEST:
        trouble = trouble[: WIDEST - 1] + "…"
    return row.method, value, better, verdict, speed, missed, trouble


def _both(mean: float, size: float, sign: str) -> str:
    after = "" if size != size else f" ± {size:.4f}"
    return f"{mean:{sign}.4f}{after}"


def _verdict(gain: Summary) -> str:
    if gain.mean == 0:
        return "level"
    clear = abs(gain.mean) > 2 * gain.standard_error
    return ("better" if gain.mean > 0 else "worse") + ("" if clear else " ?")

"""The one table the demo prints. Rows where we lose stay in, and are marked."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table as RichTable

from setpoint.demo.plan import GOALS, Plan
from setpoint.demo.rows import Row
from setpoint.results import Summary

LEGEND = (
    "Percent on the held-out test part, mean ± standard deviation over the seeds. Gain: points in\n"
    "favour of Implicit, paired by seed, ± standard error; with a question mark: less than two of\n"
    "them. Both: same initial weights, batches, Adam rate, number of steps, weight averaging."
)


def make_table(rows: Sequence[Row], plan: Plan) -> RichTable:
    """The rows, a section for each goal."""
    table = RichTable(
        title=f"Letter (UCI): find the U among 26 letters · {plan.steps:,} steps of "
        f"{plan.batch_size} · {plan.seeds} seed{'s' if plan.seeds > 1 else ''}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("goal", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for name in ("cross-entropy", "Implicit", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("ms/step", justify="right", no_wrap=True)
    for goal in GOALS:
        arrow = "higher" if goal.higher_is_better else "lower"
        for place, row in enumerate(r for r in rows if r.goal == goal.name):
            first = (goal.name, f"[dim]{arrow} is better[/dim]")
            table.add_row(first[place] if place < len(first) else "", *_cells(row))
        table.add_section()
    return table


def _cells(row: Row) -> tuple[str, ...]:
    style = "red" if row.lost else "green"
    change = f"{row.gain.mean:+.1f}{_plus_minus(row.gain.standard_error)}"
    return (
        row.model,
        _percent(row.cross_entropy),
        f"[bold]{_percent(row.implicit)}[/bold]",
        f"[{style}]{change}[/{style}]",
        f"[{style}]{_verdict(row)}[/{style}]",
        f"{_short(row.cross_entropy_ms)} → {_short(row.implicit_ms)}",
    )


def _verdict(row: Row) -> str:
    if round(row.gain.mean, 1) == 0:  # as it is printed
        return "level"
    return ("worse" if row.lost else "better") + ("" if row.clear else " ?")


def _percent(summary: Summary) -> str:
    return f"{summary.mean:.1f}{_plus_minus(summary.spread)}"


def _short(milliseconds: float) -> str:
    """One digit after the point while it matters: a busy machine must not widen the table."""
    return f"{milliseconds:.1f}" if milliseconds < 10 else f"{milliseconds:.0f}"


def _plus_minus(size: float) -> str:
    """Nothing for a single seed, which says nothing about its spread."""
    return "" if size != size else f" ± {size:.1f}"

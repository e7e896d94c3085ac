"""The picture and the tables of docs/monitor.md, from the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "monitoring.png"
SHARES = (0.0125, 0.015, 0.02, 0.03)
OURS = ("monitor, all tests", "monitor, rates alone")
CHECKS = ("daily check of 1,000, 0.001", "daily check of 1,000, Bonferroni, a year")
PEERS = (
    "MAPIE, limit set by hand",
    "MAPIE, default",
    "ADWIN",
    "Page-Hinkley",
    "Page-Hinkley, tuned",
)


def false_alarms(book: dict[str, Any], way: str) -> str:
    """How often a way alarms where nothing is broken."""
    if way in OURS:
        return (
            f"{book['false alarms']['fpr <= 0.01, look after every 1'][0]:.1%} of 900,000 negatives"
        )
    if way in CHECKS:
        return f"{book['delays'][f'{way} | false alarms a year']:.0%} a year"
    return f"{book['peers'][f'{way} | 0.01'][0]:.0%} of {book['peers']['rows']:,} negatives"


def table(book: dict[str, Any]) -> str:
    """Median negatives until an alarm, way by way."""
    found = {**book["delays"], **book.get("peers", {})}
    lines = ["| fpr promised 1 %, broken to | false alarms | 1.25 % | 1.5 % | 2 % | 3 % |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for way in (*OURS, *CHECKS, *PEERS):
        if f"{way} | 0.02" not in found:
            continue
        cells = [_cell(found.get(f"{way} | {share:g}")) for share in SHARES]
        lines.append(f"| {way} | {false_alarms(book, way)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(found: list[float | None] | None) -> str:
    if found is None:
        return ""
    share, middle = found
    return f"{middle:,.0f}" if middle is not None else f"{share:.0%} alarm"


def draw(book: dict[str, Any]) -> None:
    """Draw the delays, and print the table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = {**book["delays"], **book.get("peers", {})}
    figure, axes = pyplot.subplots(figsize=(7.2, 4.2))
    styles = dict(
        zip(
            (*OURS, *CHECKS, *PEERS),
            ("o-", "o--", "s-", "s--", "^-", "", "v-", "D--", "D:"),
            strict=True,
        )
    )
    for way, style in styles.items():
        points = [(100 * s, found.get(f"{way} | {s:g}", [0, None])[1]) for s in SHARES]
        points = [(x, y) for x, y in points if y is not None]
        if points and style:
            width = 2.4 if way in OURS else 1.3
            axes.plot(*zip(*points, strict=True), style, label=way, linewidth=width)
    axes.set_yscale("log")
    axes.set_xlabel("true false positive rate, in % (1 % promised)")
    axes.set_ylabel("negatives until an alarm, median")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7.5)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=150)
    print(table(book))

"""The tables of docs/certificates_measured.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common.pages import fill
from benchmarks.simulation.running import fine

HEAD = (
    "| goal | alpha | scores | n | certified | broken | kept | naive: broken, kept | "
    "MAPIE: broken, kept | draws |"
)


def write(page: Path, book: dict[str, Any]) -> None:
    """Replace the tables between their marks."""
    for name, write_up in (("simulation", simulation), ("large", large), ("verdict", verdict)):
        fill(page, name, write_up(book))


def verdict(book: dict[str, Any]) -> str:
    """In one sentence."""
    rows = book["rows"]
    bad = [row for row in rows if not fine(row)]
    worst = max(
        row["found"]["ours"]["broken"] for row in rows if "mean" not in row["found"]["ours"]
    )
    naive = [row["found"]["naive"]["broken"] for row in rows if row["kind"] == "continuous"]
    text = (
        f"{len(rows)} settings, {len(bad)} with more broken promises than 5 % and three standard "
        f"errors; the most in any is {percent(worst)} %. The naive threshold breaks its promise "
        f"in {percent(sum(naive) / len(naive))} % of all draws with continuous scores."
    )
    few, old = (sum(map(bool, each)) for each in zip(*map(_provisional, rows), strict=True))
    text += f" {few} rows have 500 draws." if few else ""
    return text + (f" {old} rows were simulated by earlier code." if old else "")


def _provisional(row: dict[str, Any]) -> tuple[bool, bool]:
    """Whether a row has fewer draws than the others, or was recorded by earlier code."""
    return row["draws"] < 2000, bool(row.get("old"))


def simulation(book: dict[str, Any]) -> str:
    """A row for each cell."""
    lines = [HEAD, "| " + " | ".join(["---"] * 10) + " |"]
    kinds = ("continuous", "tied", "discrete", "bf16")
    for row in sorted(
        book["rows"],
        key=lambda row: (
            book["order"].index(row["name"]),
            kinds.index(row["kind"]),
            row["n"],
            row["alpha"],
        ),
    ):
        found, ours = row["found"], row["found"]["ours"]
        others = [
            " / ".join(
                f"{percent(found[m]['broken'])}, {percent(found[m]['kept'])}"
                for m in names
                if m in found
            )
            for names in (("naive", "uncorrected"), ("MAPIE", "MAPIE, 1,000"))
        ]
        cells = [
            row["name"],
            f"{100 * row['alpha']:g} %",
            row["kind"],
            f"{row['n']:,}",
            percent(ours["promised"]),
            percent(ours["broken"]) if "mean" not in ours else f"mean {100 * ours['mean']:.3f}",
            percent(ours["kept"]),
            *others,
            f"{row['draws']:,}{', earlier code' if row.get('old') else ''}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def large(book: dict[str, Any]) -> str:
    """Time and memory for ten million scores, and for a file from the shell."""
    lines = [
        "| goal, 10,000,000 scores | verdict | seconds | of one core | peak memory |",
        "| --- | --- | --- | --- | --- |",
    ]
    for goal, found in book.get("large", {}).items():
        cost = f"{found['seconds']:.1f} | {found['cpu']:.1f} | {found['megabytes']:.0f} MB"
        lines.append(f"| `{goal}` | {found['status']} | {cost} |")
    if "shell" in book:
        took = "{seconds:.2f} seconds, {cpu:.2f} of one core".format(**book["shell"])
        lines += ["", f"`setpoint certify` on a csv file of 10,000 rows, from the shell: {took}."]
    return "\n".join(lines)


def percent(share: float) -> str:
    """One digit after the point."""
    return f"{100 * share:.1f}"

"""Points as a table of plain text."""

from __future__ import annotations

from collections.abc import Sequence

from setpoint.pareto.points import Pair, Point


def table(names: tuple[str, str], points: Sequence[Point], flags: Sequence[bool]) -> str:
    """One line a point, the measures behind; a dominated point says so."""
    measures = list(dict.fromkeys(name for point in points for name in point.measures))
    rows = [["place", *names, "at most", "g - c", *measures, "status"]]
    for point, kept in zip(points, flags, strict=True):
        words = [point.status] if kept else ["dominated", point.status]
        rows.append(
            [
                str(point.place),
                f"{point.minimized:.4g}",
                f"{point.held:.4g}",
                "" if point.level is None else f"{point.level:.4g}",
                "" if point.gap is None else f"{point.gap:+.2g}",
                *(_cell(point.measures.get(name)) for name in measures),
                "; ".join(word for word in words if word),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def claim(flags: Sequence[bool], area: float, reference: Pair) -> str:
    """How many points are not dominated, and the area that they claim."""
    below = f"{reference[0]:.4g}, {reference[1]:.4g}"
    kept = f"{sum(flags)} of {len(flags)} points are not dominated"
    return f"{kept}; hypervolume {area:.4g} below ({below})."


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    """Numbers to the right, the words at the end to the left."""
    numbers = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
    return "  ".join([*numbers, row[-1]]).rstrip()

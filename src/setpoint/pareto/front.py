"""A front: trained models that trade one loss for another, and what is true of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setpoint._checks import number
from setpoint._extras import optional
from setpoint._files import save_figure
from setpoint.pareto.points import (
    FrontPoint,
    Pair,
    Store,
    StoredStates,
    Weights,
    front_from_json,
    front_to_json,
    hypervolume,
    non_dominated,
    open_store,
    to_plain,
    unevenness,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Front:
    """What :func:`pareto_front` found.

    Attributes:
        names: The objective that was minimised, and the one that was held.
        method: How the points between the ends were trained.
        points: By place: the first has the smallest held objective, the last the smallest
            minimised one.
        state_dicts: Their weights, in the same order; from the files if there are any.
        recipe: Everything else that decided the numbers.

    Examples:
        >>> ends = FrontPoint(0, 3.0, 0.0), FrontPoint(2, 0.0, 2.0)
        >>> between = FrontPoint(1, 1.0, 1.01, level=1.0)
        >>> print(Front(("loss", "gap"), "barrier", (ends[0], between, ends[1])))
        place  loss   gap  at most  g - c  status
            0     3     0
            1     1  1.01        1  +0.01
            2     0     2
        3 of 3 points are not dominated; hypervolume 1.98 below (3, 2).
    """

    names: tuple[str, str]
    method: str
    points: tuple[FrontPoint, ...]
    state_dicts: Sequence[Weights] = field(default=(), repr=False, compare=False)
    recipe: dict[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def non_dominated(self) -> tuple[bool, ...]:
        """For each point, whether no other point is at least as good in both and better in one."""
        return tuple(non_dominated([point.pair for point in self.points]))

    @property
    def gaps(self) -> tuple[float | None, ...]:
        """``g - c`` of each point; None for the ends, which have no level."""
        return tuple(point.gap for point in self.points)

    @property
    def unevenness(self) -> float:
        """The coefficient of variation of the gaps between neighbours along the held objective."""
        return unevenness([point.held for point in self.points])

    @property
    def reference(self) -> Pair:
        """The worst value of each objective on the front."""
        return max(p.minimized for p in self.points), max(p.held for p in self.points)

    def hypervolume(self, reference: Pair | None = None) -> float:
        """The area that the front dominates, up to ``reference`` (by default its worst values).

        To compare fronts give all of them the same reference.
        """
        return hypervolume([p.pair for p in self.points], reference or self.reference)

    def best(self, *, at_most: float) -> FrontPoint:
        """The point with the smallest minimised objective whose held one is at most a value."""
        limit = number(at_most, "at_most")
        allowed = [point for point in self.points if point.held <= limit]
        if not allowed:
            least = min(point.held for point in self.points)
            raise ValueError(
                f"No point has {self.names[1]} of at most {limit:g}; the least is {least:g}."
            )
        return min(allowed, key=lambda point: point.pair)

    def __str__(self) -> str:
        shown = _point_table(self.names, self.points, self.non_dominated)
        area = _summary_line(self.non_dominated, self.hypervolume(), self.reference)
        return "\n".join(line for line in (shown, area, self.trouble) if line)

    @property
    def trouble(self) -> str:
        """What is wrong with the ends, in words; empty if each is better in its own goal."""
        first, last = self.points[0], self.points[-1]
        if first.held < last.held and first.minimized > last.minimized:
            return ""
        return (
            "The ends do not trade one for the other: train them longer (end_steps), start with a "
            f"larger learning_rate, or {self.names[0]} and {self.names[1]} are not in conflict."
        )

    def to_json(self) -> str:
        """Everything but the weights."""
        flags = zip(self.points, self.non_dominated, strict=True)
        points = [to_plain(p) | {"gap": p.gap, "non_dominated": flag} for p, flag in flags]
        content: dict[str, Any] = {"names": list(self.names), "method": self.method}
        content |= {"hypervolume": self.hypervolume(), "reference": list(self.reference)}
        content["points"] = points
        return front_to_json(content | {"unevenness": self.unevenness, "recipe": self.recipe})

    @classmethod
    def from_json(cls, text: str) -> Front:
        """What :meth:`to_json` wrote; without weights."""
        names, method, points, recipe = front_from_json(text)
        return cls(names, method, points, (), recipe)

    @classmethod
    def load(cls, folder: str | Path) -> Front:
        """The finished points in a folder, of a front that may still be under way."""
        return front_in(open_store(Path(folder)))

    def save(self, folder: str | Path) -> None:
        """Write all points with their weights, for :meth:`load`."""
        if len(self.state_dicts) != len(self.points):
            raise ValueError("This front has no weights to save; write to_json() instead.")
        about = {"names": list(self.names), "method": self.method, "points": len(self.points)}
        store = Store(Path(folder), self.recipe | about)
        for point, tensors in zip(self.points, self.state_dicts, strict=True):
            store.write(point, tensors)

    def plot(self, path: str | Path | None = None, **others: Front) -> Figure:
        """Draw the front, and other fronts of the same objectives beside it.

        Args:
            path: A file to write; its ending decides the kind. None writes nothing.
            **others: Fronts by the name they get in the legend.
        """
        return _draw_fronts(self, others, None if path is None else Path(path))


def front_in(store: Store) -> Front:
    """The finished points of a store, with their weights on demand."""
    done = store.done()
    first, second = store.recipe["names"]
    states = StoredStates(store, tuple(done))
    recipe = dict(store.recipe)
    return Front((first, second), recipe["method"], tuple(done.values()), states, recipe)


def _point_table(
    names: tuple[str, str], points: Sequence[FrontPoint], flags: Sequence[bool]
) -> str:
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
    return "\n".join(_aligned(row, widths) for row in rows)


def _summary_line(flags: Sequence[bool], area: float, reference: Pair) -> str:
    """How many points are not dominated, and the area that they dominate."""
    below = f"{reference[0]:.4g}, {reference[1]:.4g}"
    kept = f"{sum(flags)} of {len(flags)} points are not dominated"
    return f"{kept}; hypervolume {area:.4g} below ({below})."


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Numbers to the right, the words at the end to the left."""
    numbers = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
    return "  ".join([*numbers, row[-1]]).rstrip()


_INK, _FAINT = "#24292f", "#d9dde2"
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")  # Okabe and Ito's
_MARKERS = ("o", "*", "^", "s", "D", "v")


def _draw_fronts(front: Front, others: Mapping[str, Front], path: Path | None) -> Figure:
    """One panel; dominated points are hollow."""
    optional("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.family": "sans-serif", "font.size": 10, "svg.hashsalt": "setpoint"}):
        figure = Figure(figsize=(5.6, 4.2), layout="constrained")
        axes = figure.subplots()
        _draw_frame(axes, front.names[1], front.names[0])
        for point in front.points:
            if point.level is not None:
                axes.axvline(point.level, color=_FAINT, linewidth=0.7, zorder=0.5)
        series = {front.method: front, **others}
        for number, (name, one) in enumerate(series.items()):
            _draw_points(axes, one, name, number)
        if others:
            axes.legend(frameon=False, labelcolor=_INK)
        if path is not None:
            save_figure(path, figure, dpi=160)
    return figure


def _draw_frame(axes: Any, x: str, y: str) -> None:
    """Few lines: the eye should find the points."""
    axes.set_xlabel(x, color=_INK)
    axes.set_ylabel(y, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_INK)
    axes.tick_params(colors=_INK)
    axes.set_axisbelow(True)


def _draw_points(axes: Any, front: Front, name: str, number: int) -> None:
    """The points of one front, joined along the held objective."""
    colour, mark = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
    ordered = sorted(zip(front.points, front.non_dominated, strict=True), key=lambda p: p[0].held)
    kept = [point for point, flag in ordered if flag]
    axes.plot([p.held for p in kept], [p.minimized for p in kept], color=colour, linewidth=1.2)
    for flag, fill, label in ((True, colour, name), (False, "white", None)):
        chosen = [point for point, kept_flag in ordered if kept_flag == flag]
        axes.scatter(
            [point.held for point in chosen],
            [point.minimized for point in chosen],
            s=64 if mark == "*" else 34,
            marker=mark,
            facecolors=fill,
            edgecolors=colour,
            zorder=3,
            label=label,
        )

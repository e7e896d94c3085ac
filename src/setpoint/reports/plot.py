"""A small drawing board: two scales, and marks on them, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from setpoint.reports.html import Html, clip, join, tag

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 420, 64, 14, 12, 44


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high``, evenly or by their logarithm, with marks to read them by."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]] = ()
    log: bool = False

    def place(self, value: float) -> float:
        """Where ``value`` lies between the ends, 0 to 1; what is outside sits on the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass
class Plot:
    """Marks are drawn in the order in which they are made."""

    x: Scale
    y: Scale
    title: str
    description: str
    height: int = 300
    left: int = LEFT
    marks: list[Html] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Data to picture."""
        wide, high = WIDTH - self.left - RIGHT, self.height - TOP - BOTTOM
        return self.left + wide * self.x.place(x), TOP + high * (1 - self.y.place(y))

    def frame(self, x_label: str, y_label: str = "", *, grid: bool = True) -> None:
        """The axes: faint horizontal lines, a base line, few numbers."""
        base, far = self.height - BOTTOM, WIDTH - RIGHT
        for value, text in self.y.ticks:
            _, y = self.at(self.x.low, value)
            if grid:
                self._line(self.left, y, far, y, "grid")
            self.text(self.left - 8, y + 4, text, "end")
        for value, text in self.x.ticks:
            x, _ = self.at(value, self.y.low)
            self._line(x, base, x, base + 5, "axis")
            self.text(x, base + 18, text, "middle")
        self._line(self.left, base, far, base, "axis")
        self.text((self.left + far) / 2, self.height - 6, x_label, "middle")
        if y_label:
            place = f"translate(12 {(TOP + base) / 2:.1f}) rotate(-90)"
            self.marks.append(tag("text", y_label, transform=place, text_anchor="middle"))

    def curve(
        self, xs: Sequence[float], ys: Sequence[float], class_: str, *, steps: bool = False
    ) -> None:
        """A line through the points; ``steps`` goes sideways first, then up."""
        path, last = "", (math.nan, math.nan)
        for x, y in (self.at(float(x), float(y)) for x, y in zip(xs, ys, strict=True)):
            if math.isnan(last[0]):
                path = f"M{x:.1f} {y:.1f}"
            elif steps:
                path += f"H{x:.1f}" * (abs(x - last[0]) > 0) + f"V{y:.1f}" * (y != last[1])
            else:
                path += f"L{x:.1f} {y:.1f}"
            last = (x, y)
        self.marks.append(tag("path", d=path, class_=f"curve {class_}"))

    def upright(self, x: float, label: str = "", *, top: bool = False) -> None:
        """A vertical line from edge to edge, its label on the side with room."""
        place, _ = self.at(x, self.y.low)
        self._line(place, TOP, place, self.height - BOTTOM, "bound")
        if label:
            y = TOP + 9 if top else self.height - BOTTOM - 8
            right = place < (self.left + WIDTH - RIGHT) / 2
            self.text(
                place + (5 if right else -5),
                y,
                label,
                "start" if right else "end",
                "t-ink",
            )

    def box(self, low: tuple[float, float], high: tuple[float, float], class_: str) -> None:
        """A rectangle between two corners in data."""
        (x0, y0), (x1, y1) = self.at(*low), self.at(*high)
        size = {"width": f"{max(x1 - x0, 0.8):.1f}", "height": f"{max(y0 - y1, 0.8):.1f}"}
        self.marks.append(tag("rect", x=f"{x0:.1f}", y=f"{y1:.1f}", **size, class_=class_))

    def dot(self, x: float, y: float, class_: str = "dot") -> None:
        """A point worth seeing."""
        left, top = self.at(x, y)
        self.marks.append(tag("circle", cx=f"{left:.1f}", cy=f"{top:.1f}", r=5, class_=class_))

    def whisker(self, low: float, high: float, y: float) -> None:
        """A horizontal interval."""
        (x0, top), (x1, _) = self.at(low, y), self.at(high, y)
        self._line(x0, top, x1, top, "whisker")

    def text(self, x: float, y: float, text: str, anchor: str, class_: str | None = None) -> None:
        """Words at a place of the picture, not of the data."""
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text_anchor": anchor}
        self.marks.append(tag("text", clip(text, 44), **place, class_=class_))

    def _line(self, x0: float, y0: float, x1: float, y1: float, class_: str) -> None:
        ends = {"x1": f"{x0:.1f}", "y1": f"{y0:.1f}", "x2": f"{x1:.1f}", "y2": f"{y1:.1f}"}
        self.marks.append(tag("line", **ends, class_=class_))

    def svg(self, number: int) -> Html:
        """The picture; ``number`` tells it from the others on the page."""
        title, description = f"plot-{number}-title", f"plot-{number}-description"
        return tag(
            "svg",
            tag("title", self.title, id=title),
            tag("desc", self.description, id=description),
            join(*self.marks),
            viewBox=f"0 0 {WIDTH} {self.height}",
            role="img",
            aria_labelledby=f"{title} {description}",
        )

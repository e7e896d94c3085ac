"""A plot as marks on two scales; the macro ``svg`` of ``macros.html.jinja`` writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from markupsafe import Markup

from setpoint.reports.text import MINUS, clip

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 420, 64, 14, 12, 44
_LETTER = 7
"""The width of a letter of 12 px, about."""


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high``, evenly or by their logarithm, with labelled ticks."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]] = ()
    log: bool = False

    def place(self, value: float) -> float:
        """The position between the ends, 0 to 1; a value outside is put on the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(low: float, high: float, *, shares: bool = False, about: int = 5) -> Scale:
    """An even axis with ticks at round numbers; ``shares`` are shown in per cent."""
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    raw = (high - low) / about
    size = 10 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = [(i * step, _tick(i * step, shares)) for i in range(first, last + 1)]
    return Scale(low, high, ticks)


def logarithmic(low: float, high: float) -> Scale:
    """A logarithmic axis of shares, with ticks at powers of ten (and 2 and 5 if it is short)."""
    fine = (1, 2, 5) if high / low < 300 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [m * 10.0**e for e in range(first, last + 1) for m in fine]
    scale, ticks = Scale(low, high, log=True), list[tuple[float, str]]()
    for value in (v for v in reversed(values) if low * 0.999 <= v <= high * 1.001):
        text, shown = _tick(value, True), ticks[-1] if ticks else None
        if shown is None or _are_apart(scale, (value, text), shown):
            ticks.append((value, text))
    return replace(scale, ticks=ticks[::-1])


def _are_apart(scale: Scale, tick: tuple[float, str], other: tuple[float, str]) -> bool:
    """Whether the labels of two ticks below a plot do not touch."""
    room = abs(scale.place(other[0]) - scale.place(tick[0])) * (WIDTH - LEFT - RIGHT)
    return room >= _LETTER * (len(tick[1]) + len(other[1])) / 2


def up_to_one(low: float = 0.0) -> Scale:
    """Shares up to 100 %."""
    return linear(low, 1.0, shares=True, about=5)


def counted(most: float) -> Scale:
    """Counts on a logarithmic axis that starts below one."""
    top = 10.0 ** max(1, math.ceil(math.log10(max(most, 1) * 1.05)))
    steps = range(round(math.log10(top)) + 1)
    every = 2 if len(steps) > 5 else 1
    return Scale(0.5, top, [(10.0**e, f"{10**e:,}") for e in steps[::every]], log=True)


def _tick(value: float, shares: bool) -> str:
    text = f"{100 * value:.6g} %" if shares else f"{value:.6g}"
    return "0" if value == 0 else text.replace("-", MINUS)


class Mark(NamedTuple):
    """One SVG element: its tag, its attributes and the text inside."""

    tag: str
    attributes: dict[str, Any]
    text: str = ""


@dataclass
class Plot:
    """Marks, drawn in the order in which they are added.

    Args:
        x: The horizontal scale.
        y: The vertical scale.
        title: For screen readers, in a few words.
        description: For screen readers: what the picture shows, in numbers.
        heading: The line above the picture; a user's words in it through ``text.name``.
        height: Of the picture.
        left: Room for the labels of the vertical scale.
    """

    x: Scale
    y: Scale
    title: str
    description: str
    heading: str | Markup = ""
    height: int = 300
    left: int = LEFT
    width: int = WIDTH
    marks: list[Mark] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """From data to picture."""
        wide, high = self.width - self.left - RIGHT, self.height - TOP - BOTTOM
        return self.left + wide * self.x.place(x), TOP + high * (1 - self.y.place(y))

    def frame(self, x_label: str, y_label: str = "") -> None:
        """The axes: faint horizontal lines, a base line, ticks and labels."""
        base, far = self.height - BOTTOM, self.width - RIGHT
        for value, text in self.y.ticks:
            _, y = self.at(self.x.low, value)
            self._line(self.left, y, far, y, "grid")
            self.text(self.left - 8, y + 4, text, "end")
        for value, text in self.x.ticks:
            x, _ = self.at(value, self.y.low)
            self._line(x, base, x, base + 5, "axis")
            self.text(x, base + 18, text, "middle")
        self._line(self.left, base, far, base, "axis")
        self.text((self.left + far) / 2, self.height - 6, x_label, "middle")
        if y_label:
            turned = f"translate(12 {(TOP + base) / 2:.1f}) rotate(-90)"
            self._mark("text", {"transform": turned, "text-anchor": "middle"}, y_label)

    def curve(
        self, xs: Sequence[float], ys: Sequence[float], class_: str, *, steps: bool = False
    ) -> None:
        """A line through the points; with ``steps`` it goes sideways first, then up."""
        path, last = "", (math.nan, math.nan)
        for x, y in (self.at(float(x), float(y)) for x, y in zip(xs, ys, strict=True)):
            if math.isnan(last[0]):
                path = f"M{x:.1f} {y:.1f}"
            elif steps:
                path += f"H{x:.1f}" * (abs(x - last[0]) > 0) + f"V{y:.1f}" * (y != last[1])
            else:
                path += f"L{x:.1f} {y:.1f}"
            last = (x, y)
        self._mark("path", {"d": path, "class": f"curve {class_}"})

    def upright(
        self,
        x: float,
        label: str = "",
        *,
        top: bool = False,
        class_: str = "bound",
        right: bool | None = None,
    ) -> None:
        """A vertical line from edge to edge; its label on the ``right``, or where there is room."""
        place, _ = self.at(x, self.y.low)
        self._line(place, TOP, place, self.height - BOTTOM, class_)
        if label:
            y = TOP + 9 if top else self.height - BOTTOM - 8
            right = place < (self.left + self.width - RIGHT) / 2 if right is None else right
            if right and place + 5 + _LETTER * len(label) > self.width:
                right, y, label = False, y + 16, f"{label} →"  # below a label on the left
            shift, anchor = (5, "start") if right else (-5, "end")
            beside = not right and place + shift - _LETTER * len(label) < self.left
            y += 16 if beside else 0  # below the first label of the other axis
            self.text(place + shift, y, label, anchor, f"t-ink t-{class_}")

    def level(self, y: float) -> None:
        """A horizontal line from edge to edge."""
        _, place = self.at(self.x.low, y)
        self._line(self.left, place, self.width - RIGHT, place, "bound")

    def box(self, low: tuple[float, float], high: tuple[float, float], class_: str) -> None:
        """A rectangle between two corners in data."""
        (x0, y0), (x1, y1) = self.at(*low), self.at(*high)
        size = {"width": f"{max(x1 - x0, 0.8):.1f}", "height": f"{max(y0 - y1, 0.8):.1f}"}
        self._mark("rect", {"x": f"{x0:.1f}", "y": f"{y1:.1f}", **size, "class": class_})

    def dot(self, x: float, y: float, radius: float = 5) -> None:
        """A filled circle at a point in data."""
        left, top = self.at(x, y)
        place = {"cx": f"{left:.1f}", "cy": f"{top:.1f}", "r": radius}
        self._mark("circle", {**place, "class": "dot"})

    def whisker(self, one: tuple[float, float], other: tuple[float, float]) -> None:
        """An interval between two points in data."""
        self._line(*self.at(*one), *self.at(*other), "whisker")

    def text(self, x: float, y: float, text: str, anchor: str, class_: str | None = None) -> None:
        """Words at a place of the picture, not of the data."""
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "class": class_}
        self._mark("text", place, clip(text, 44))

    def _line(self, x0: float, y0: float, x1: float, y1: float, class_: str) -> None:
        ends = {"x1": f"{x0:.1f}", "y1": f"{y0:.1f}", "x2": f"{x1:.1f}", "y2": f"{y1:.1f}"}
        self._mark("line", {**ends, "class": class_})

    def _mark(self, tag: str, attributes: dict[str, Any], text: str = "") -> None:
        self.marks.append(Mark(tag, attributes, text))

"""Does the bound hold? Split by split, with what every section is made of."""

from __future__ import annotations

from collections.abc import Iterator

from setpoint.rates import Bound
from setpoint.reports import charts
from setpoint.reports.html import Html, tag
from setpoint.reports.html import table as html_table
from setpoint.reports.numbers import level, measured, whole
from setpoint.reports.plot import Plot
from setpoint.reports.words import SAYS, pretty, rate_name
from setpoint.results.findings import Findings
from setpoint.results.measured import Measured
from setpoint.results.rows import SplitRow


def section(title: str, *children: object) -> Html:
    """A heading with what belongs to it."""
    return tag("section", tag("h2", title), *children)


def figure(
    plot: Plot, number: Iterator[int], *, titled: str | Html = "", note: object = None
) -> Html:
    """A picture with its name above and a remark below."""
    head = tag("p", titled, class_="name") if titled else None
    return tag("figure", head, plot.svg(next(number)), tag("figcaption", note) if note else None)


def by_split(found: Findings, number: Iterator[int]) -> Html:
    """Does the bound hold on data the model has not seen?"""
    pictures = []
    for place, bound in enumerate(found.goal.bounds[:2]):
        rows = [(row.name, row.bounds[place]) for row in found.splits]
        line = bound if isinstance(bound, Bound) else None
        plot = charts.by_split(rows, rate_name(bound.expression), line)
        pictures.append(figure(plot, number, titled=f"Bound: {pretty(str(bound))}"))
    label = _label(found)
    rows = [(row.name, _wanted(row)) for row in found.splits]
    if len(pictures) < 2:
        aim = f"Objective: {label}" if found.goal.objective is not None else label
        pictures.append(figure(charts.by_split(rows, label, None), number, titled=aim))
    head: list[object] = ["Split"]
    for bound in found.goal.bounds:
        head += [_capital(rate_name(bound.expression)), pretty(f"{_sense(bound)} {_level(bound)}")]
    head += [_capital(label), "Positives", "Negatives"]
    body = [_split_line(found, row) for row in found.splits]
    return section(
        "Does it hold?",
        tag(
            "p",
            "The threshold was set on calibration data. Test data are the fairest judge: neither "
            "the model nor the threshold has seen them. Training data flatter the model.",
        ),
        tag("div", *pictures, class_="pair"),
        html_table(None, head, body),
        tag(
            "p",
            f"Each end of an interval holds with {level(found.verdict.confidence)} confidence by "
            "itself (Clopper and Pearson, exact for every sample size). “Unproven” means that the "
            "bound lies inside the interval: these data alone cannot tell.",
            class_="note",
        ),
    )


def _label(found: Findings) -> str:
    objective = found.goal.objective
    return "recall" if objective is None else rate_name(objective)


def _wanted(row: SplitRow) -> Measured:
    """What is shown beside the bound: the objective, or recall if there is none."""
    return row.recall if row.objective is None else row.objective


def _split_line(found: Findings, row: SplitRow) -> list[object]:
    line: list[object] = [row.name]
    for bound, rate in zip(found.goal.bounds, row.bounds, strict=True):
        says = rate.against(bound) if isinstance(bound, Bound) else ""
        line += [measured(rate), tag("span", SAYS.get(says, ""), class_=f"says {says}")]
    return [*line, measured(_wanted(row)), whole(row.positives), whole(row.negatives)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sense(bound: object) -> str:
    return str(getattr(bound, "sense", "at"))


def _level(bound: object) -> str:
    share = getattr(getattr(bound, "expression", None), "is_share", False)
    return (
        level(float(getattr(bound, "level", 0.0))) if share else f"{getattr(bound, 'level', 0.0):g}"
    )

"""The sections behind the operating point: groups, training, facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setpoint.reports import charts
from setpoint.reports.html import Html, join, name, tag
from setpoint.reports.html import table as html_table
from setpoint.reports.numbers import measured, points, whole
from setpoint.reports.sections import figure, section
from setpoint.results.findings import ClassFindings, Findings
from setpoint.results.measured import Measured

ALWAYS = (
    "The calibration cases were drawn like the cases to come, independently of each other.",
    "Neither training nor the choice of the model has looked at the calibration data.",
    "Scores are computed in the same way and precision as here, and compared with a strict >.",
)
MOST_PLOTS = 6


def groups(found: Findings) -> Html | None:
    """Rates by group, and the widest gap."""
    if not found.groups:
        return None
    rows: list[list[object]] = [
        [
            name(g.name, 60),
            whole(g.count),
            *map(measured, (g.fpr, g.recall, g.precision, g.coverage)),
        ]
        for g in found.groups
    ]
    gaps = [tag("li", f"{label}: {_gap(gap)}") for label, gap in found.gaps.items()]
    head: list[object] = [
        "Group",
        "Cases",
        "False positive rate",
        "Recall",
        "Precision",
        "Alert rate",
    ]
    return section(
        "Groups",
        tag(
            "p",
            "By ",
            name(found.run.group, 60),
            f", on {found.judged.name} data. Small groups have wide intervals: look at those "
            "before the values.",
        ),
        html_table(None, head, rows),
        tag("p", "Widest gap between two groups, in points:", class_="note") if gaps else None,
        tag("ul", *gaps) if gaps else None,
    )


def _gap(gap: Measured) -> str:
    """``4.1 (0.0 to 9.7)``, in points."""
    value, *between = (points(end).lstrip("+") for end in (gap.value, *(gap.interval or ())))
    return f"{value} ({' to '.join(between)})" if between else value


def training(found: Findings | ClassFindings, number: Iterator[int]) -> Html | None:
    """What went down, and what went up."""
    if not found.history:
        return None
    plots = [
        figure(charts.history(s), number, titled=name(s.name, 40))
        for s in found.history[:MOST_PLOTS]
    ]
    return section("Training", tag("div", *plots, class_="pair"))


def facts(found: Findings) -> Html:
    """Data, seed, versions, assumptions: what another person needs to do it again."""
    run = found.run
    sizes = ", ".join(f"{row.name} {whole(row.positives + row.negatives)}" for row in found.splits)
    pairs: list[tuple[str, object]] = [
        ("Goal", run.goal),
        ("Label", join(name(run.label), ", positive: “", name(run.positive), "”")),
        ("Method", join(name(run.method), ", model: ", name(run.model))),
        ("Cases", sizes),
    ]
    return rests_on(found, pairs, found.verdict.assumptions or ALWAYS)


def rests_on(
    found: Findings | ClassFindings, pairs: list[tuple[str, object]], assumed: Sequence[str]
) -> Html:
    """Assumptions, what was done to the data, and settings, for any run."""
    run = found.run
    pairs = [
        *pairs,
        ("Seed", "not set" if run.seed is None else run.seed),
        ("Made", run.created or "unknown"),
        ("Versions", ", ".join(f"{k} {v}" for k, v in run.versions.items()) or "unknown"),
    ]
    items = [tag("dt", key) + tag("dd", value) for key, value in pairs]
    return section(
        "What this rests on",
        tag("h3", "Assumptions"),
        tag("ul", *(tag("li", text) for text in assumed)),
        _notes(found),
        tag("h3", "Data and settings"),
        tag("dl", *map(Html, items), class_="facts"),
        _columns(found),
    )


def _notes(found: Findings | ClassFindings) -> Html | None:
    if not found.run.notes:
        return None
    lines = [tag("li", name(note, 400)) for note in found.run.notes]
    return join(tag("h3", "What was done to the data"), tag("ul", *lines))


def _columns(found: Findings | ClassFindings) -> Html | None:
    if not found.run.columns:
        return None
    listing = [tag("li", name(column)) for column in found.run.columns[:500]]
    return tag(
        "details",
        tag("summary", f"{whole(len(found.run.columns))} columns used"),
        tag("ul", *listing),
    )

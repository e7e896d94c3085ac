"""The sections behind the operating point: comparison, groups, training, facts."""

from __future__ import annotations

from collections.abc import Iterator

from setpoint.report import charts
from setpoint.report.html import Html, join, name, tag
from setpoint.report.html import table as html_table
from setpoint.report.numbers import measured, percent, points, threshold, whole
from setpoint.report.sections import figure, section
from setpoint.report.words import rate_name
from setpoint.results.bootstrap import Paired
from setpoint.results.comparison import Deployed
from setpoint.results.findings import Findings

ALWAYS = (
    "The calibration cases were drawn like the cases to come, independently of each other.",
    "Neither training nor the choice of the model has looked at the calibration data.",
    "Scores are computed in the same way and precision as here, and compared with a strict >.",
)
MOST_PLOTS = 6


def comparison(found: Findings) -> Html | None:
    """Was it worth it? The same data, the same rows, the usual way."""
    both = found.comparison
    if both is None:
        return None
    head: list[object] = ["Model", "Threshold", "False positive rate", "Recall", "Precision"]
    return section(
        "Compared with the usual way",
        tag(
            "p",
            "The usual way is ",
            name(both.theirs.name, 60),
            " and then the best threshold on validation data. ",
            _paired(found, both.paired),
        ),
        html_table(
            f"As deployed, each with its own threshold, on {found.judged.name} data",
            head,
            [_deployed(both.ours), _deployed(both.theirs)],
        ),
    )


def _deployed(model: Deployed) -> list[object]:
    shown = "per group"
    if model.threshold is None:
        shown = "none"
    elif isinstance(model.threshold, float | int):
        shown = threshold(float(model.threshold))
    return [name(model.name, 60), shown, *map(measured, (model.fpr, model.recall, model.precision))]


def _paired(found: Findings, paired: Paired | None) -> Html | None:
    """The difference with both thresholds placed so that the bound is met on these very data."""
    objective = found.goal.objective
    if paired is None or objective is None:
        return None
    label, share = rate_name(objective), objective.is_share
    values = [percent(v) if share else f"{v:.4g}" for v in (paired.ours, paired.theirs)]
    start = (
        f"With both thresholds set to meet the bound on {found.judged.name} data exactly, "
        f"{label} is {values[0]} against {values[1]}"
    )
    if paired.interval is None or not share:
        return join(f"{start}; too few draws were feasible for an interval.")
    low, high = paired.interval
    sure = "no difference beyond chance"
    if low > 0 or high < 0:
        sure = "better beyond chance" if low > 0 else "worse beyond chance"
    change = f"{points(paired.gain)} points for {found.run.method or 'this model'}"
    between = f"({points(low)} to {points(high)}, paired bootstrap, {paired.draws} draws)"
    return join(f"{start}: ", tag("strong", change), f" {between}, {sure}.")


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
    gaps = [
        tag("li", f"{label}: {points(gap).lstrip('+')} points") for label, gap in found.gaps.items()
    ]
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
        tag("p", "Widest gap between two groups, as measured:", class_="note") if gaps else None,
        tag("ul", *gaps) if gaps else None,
    )


def training(found: Findings, number: Iterator[int]) -> Html | None:
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
        ("Seed", "not set" if run.seed is None else run.seed),
        ("Made", run.created or "unknown"),
        ("Versions", ", ".join(f"{k} {v}" for k, v in run.versions.items()) or "unknown"),
    ]
    items = [tag("dt", key) + tag("dd", value) for key, value in pairs]
    assumed = [tag("li", text) for text in found.verdict.assumptions or ALWAYS]
    return section(
        "What this rests on",
        tag("h3", "Assumptions"),
        tag("ul", *assumed),
        _notes(found),
        tag("h3", "Data and settings"),
        tag("dl", *map(Html, items), class_="facts"),
        _columns(found),
    )


def _notes(found: Findings) -> Html | None:
    if not found.run.notes:
        return None
    lines = [tag("li", name(note, 400)) for note in found.run.notes]
    return join(tag("h3", "What was done to the data"), tag("ul", *lines))


def _columns(found: Findings) -> Html | None:
    if not found.run.columns:
        return None
    listing = [tag("li", name(column)) for column in found.run.columns[:500]]
    return tag(
        "details",
        tag("summary", f"{whole(len(found.run.columns))} columns used"),
        tag("ul", *listing),
    )

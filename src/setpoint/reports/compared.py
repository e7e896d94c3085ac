"""Was it worth it? The same rows, scored by the usual way."""

from __future__ import annotations

from setpoint.reports.html import Html, join, name, tag
from setpoint.reports.html import table as html_table
from setpoint.reports.numbers import measured, percent, points, threshold
from setpoint.reports.sections import section
from setpoint.reports.words import pretty, rate_name
from setpoint.results.bootstrap import Deployed, Paired
from setpoint.results.findings import Findings


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
    problem = found.goal.problem
    if paired is None or problem is None:
        return None
    here = f"on {found.judged.name} data"
    if problem.swept is not None:
        share, start = True, f"The area {here} ({pretty(str(problem))})"
    else:
        share, label = problem.objective.is_share, rate_name(problem.objective)
        start = f"With both thresholds set to meet the bound {here} exactly, {label}"
    values = [percent(v) if share else f"{v:.4g}" for v in (paired.ours, paired.theirs)]
    start = f"{start} is {values[0]} against {values[1]}"
    if paired.interval is None or not share:
        return join(f"{start}; too few draws were feasible for an interval.")
    low, high = paired.interval
    sure = "no difference beyond chance"
    if low > 0 or high < 0:
        sure = "better beyond chance" if low > 0 else "worse beyond chance"
    change = f"{points(paired.gain)} points for {found.run.method or 'this model'}"
    between = f"({points(low)} to {points(high)}, paired bootstrap, {paired.draws} draws)"
    return join(f"{start}: ", tag("strong", change), f" {between}, {sure}.")

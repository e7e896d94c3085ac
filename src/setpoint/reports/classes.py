"""The sections of a run for several classes."""

from __future__ import annotations

from setpoint.rates import Bound
from setpoint.reports.banner import TITLES
from setpoint.reports.html import Html, join, name, tag
from setpoint.reports.html import table as html_table
from setpoint.reports.numbers import NOTHING, level, measured, percent, threshold, whole
from setpoint.reports.sections import section
from setpoint.reports.words import pretty
from setpoint.results.findings import ClassFindings

PROMISE = {
    "certified": "On new data like the calibration data, {what}, with {sure} confidence.",
    "infeasible": "There are too few calibration cases for any proof, with {sure} confidence, that "
    "{what}.",
    "not certified": "The calibration data do not prove, with {sure} confidence, that {what}.",
    "no certificate": "Nothing below is a promise: it is what was measured.",
}


def banner(found: ClassFindings) -> Html:
    """Status, promise, and the numbers that matter."""
    verdict = found.verdict
    what = pretty(" and ".join(map(str, found.problem.subject_to)))
    text = PROMISE[verdict.status].format(what=what, sure=level(verdict.confidence))
    proved = [
        tag("li", tag("bdi", pretty(bound)), f": at {_side(bound)} {percent(value)} is proved")
        for bound, value in verdict.proved.items()
    ]
    return tag(
        "section",
        tag("h2", TITLES[verdict.status], id="verdict"),
        tag("p", text),
        tag("ul", *proved) if proved else None,
        *(tag("p", pretty(note)) for note in verdict.notes),
        _figures(found),
        class_=f"verdict {verdict.status.replace(' ', '-')}",
        aria_labelledby="verdict",
        style="margin-top:0",
    )


def _figures(found: ClassFindings) -> Html:
    """The objective with the shifts and without, and the class that is found least."""
    split, where = found.judged, f"on {found.judged.name}"
    label = pretty(str(found.problem.objective))
    cells = [_figure(f"{_capital(label)} {where}", value(found, split.objective))]
    cells.append(_figure("Without shifts", value(found, split.before)))
    there = [row for row in found.classes if row.count]
    rare = min(there, key=lambda row: row.recall.value)
    small = join("of “", name(rare.name, 40), "”")
    cells.append(_figure(f"Lowest recall {where}", percent(rare.recall.value), small))
    right = found.confusions.after.trace()
    text = f"{whole(right)} of {whole(split.count)} cases"
    cells.append(_figure(f"Decided rightly {where}", percent(right / split.count), join(text)))
    return tag("dl", *cells, class_="figures")


def by_split(found: ClassFindings) -> Html:
    """What was asked for, on every part of the data."""
    targets = found.problem.subject_to
    head: list[object] = ["Split", pretty(_capital(str(found.problem.objective)))]
    head += ["Without shifts", *(pretty(str(target)) for target in targets)]
    compared = any(split.theirs is not None for split in found.splits)
    head += [name(_capital(found.run.baseline_name), 40)] if compared else []
    rows: list[list[object]] = []
    for split in found.splits:
        row: list[object] = [split.name, value(found, split.objective), value(found, split.before)]
        row += [_against(t, v) for t, v in zip(targets, split.targets, strict=True)]
        row += [value(found, split.theirs)] if compared else []
        rows.append([*row, whole(split.count)])
    text = (
        "The shifts were chosen on validation data, and calibration and test data have seen "
        "neither the model nor the shifts. Training data flatter the model."
    )
    if compared:
        text += f" “{_capital(found.run.baseline_name)}” is with shifts of its own."
    return section("What was asked for", tag("p", text), html_table(None, [*head, "Cases"], rows))


def classes(found: ClassFindings) -> Html:
    """Every class against the rest."""
    head: list[object] = ["Class", "Cases", "Shift", "Recall", "Precision", "Predicted"]
    rows: list[list[object]] = [
        [
            name(row.name, 40),
            whole(row.count),
            threshold(row.shift),
            *map(measured, (row.recall, row.precision, row.coverage)),
        ]
        for row in found.classes
    ]
    return section(
        "Class by class",
        tag(
            "p",
            f"On {found.judged.name} data, with the shifts. A shift is subtracted from the score "
            "of its class: where it is negative the class is decided more often. Each end of an "
            f"interval holds with {level(found.verdict.confidence)} confidence by itself.",
        ),
        html_table(None, head, rows),
    )


def facts(found: ClassFindings) -> list[tuple[str, object]]:
    """What the run was about, in pairs."""
    run = found.run
    sizes = ", ".join(f"{split.name} {whole(split.count)}" for split in found.splits)
    shown = [name(n, 40) for n in run.names[:20]]
    more = f" and {len(run.names) - 20} more" if len(run.names) > 20 else ""
    return [
        ("Goal", run.goal),
        ("Label", join(name(run.label), ": ", Html(", ".join(shown)), more)),
        ("Method", join(name(run.method), ", model: ", name(run.model))),
        ("Cases", sizes),
    ]


def value(found: ClassFindings, number: float | None) -> str:
    """The objective as a share if it is one."""
    if number is None or number != number:
        return NOTHING
    return percent(number) if found.problem.objective.is_share else f"{number:.4g}"


def _against(target: object, number: float) -> Html:
    """A measured target, and whether it is met there; nothing is proved by that."""
    text = NOTHING if number != number else percent(number)
    if not isinstance(target, Bound) or number != number:
        return join(text)
    met = number <= target.level if target.sense == "<=" else number >= target.level
    small = tag(
        "small", "within" if met else "outside", class_=f"says {'met' if met else 'broken'}"
    )
    return join(text, small)


def _figure(label: str, shown: str, small: Html | None = None) -> Html:
    dd = tag("dd", shown, tag("small", small) if small else None)
    return tag("div", tag("dt", label), dd)


def _side(bound: str) -> str:
    return "most" if "<=" in bound else "least"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

"""The verdict, in words for whoever has to sign it."""

from __future__ import annotations

from setpoint.rates import Bound, Setpoint
from setpoint.reports.html import Html, join, name, tag
from setpoint.reports.numbers import ends, level, percent, threshold, whole
from setpoint.reports.words import listed, pretty, promise, rate_name
from setpoint.results.findings import Findings
from setpoint.results.measured import Measured

TITLES = {
    "certified": "✓ Certified",
    "not certified": "Not certified",
    "infeasible": "✗ Infeasible",
    "no certificate": "Measured, not certified",
}


def banner(found: Findings) -> Html:
    """Status, promise, the numbers that matter, and what would change the verdict."""
    verdict = found.verdict
    notes = [
        tag("p", join("What would change this: ", pretty(text)), class_="note")
        for text in verdict.advice
    ]
    return tag(
        "section",
        tag("h2", TITLES[verdict.status], id="verdict"),
        tag("p", _promise(found)),
        *(tag("p", _sentence(pretty(note))) for note in verdict.notes),
        _broken(found),
        _figures(found),
        *notes,
        class_=f"verdict {verdict.status.replace(' ', '-')}",
        aria_labelledby="verdict",
        style="margin-top:0",
    )


def _promise(found: Findings) -> Html:
    verdict, run = found.verdict, found.run
    what = listed([promise(bound, run.positive) for bound in found.goal.bounds])
    sure = f"with {level(verdict.confidence)} confidence"
    if verdict.guarantee == "mean":
        sure = "on average over calibration samples"
    if not found.goal.bounds:
        return join("The goal has no bound, so there is nothing to certify.")
    if verdict.status == "certified":
        return join("On new data like the calibration data, ", what, ", ", sure, ".")
    if verdict.status == "not certified":
        return join("The calibration data do not prove, ", sure, ", that ", what, ".")
    if verdict.status == "infeasible":
        return join(
            "With these data no threshold can be shown to keep the promise that ", what, "."
        )
    return join("Nothing below is a promise: no certificate was made for “", what, "”.")


def _broken(found: Findings) -> Html | None:
    """A certificate does not outrank fresh data that contradict it."""
    row = found.judged
    if row.name != "test" or found.verdict.status != "certified":
        return None
    for bound, rate in zip(found.goal.bounds, row.bounds, strict=True):
        if isinstance(bound, Bound) and rate.against(bound) == "broken":
            here = f"{percent(rate.value) if rate.total else f'{rate.value:.4g}'} ({ends(rate)})"
            return tag(
                "p",
                f"But the test data contradict it: {rate_name(bound.expression)} {here} there. "
                "Find out how they differ from the calibration data before relying on it.",
                class_="says broken",
                style="white-space:normal",
            )
    return None


def _figures(found: Findings) -> Html:
    """The threshold, what it does on the judged split, and how many alerts that means."""
    row, where = found.judged, f"on {found.judged.name}"
    cells = [_threshold(found)]
    for bound, rate in list(zip(found.goal.bounds, row.bounds, strict=True))[:2]:
        label = f"{_capital(rate_name(bound.expression))} {where}"
        cells.append(_figure(label, rate, _asked(found, bound)))
    if not {str(b.expression) for b in found.goal.bounds} & {"recall", "tpr", "fnr"}:
        cells.append(_figure(f"Recall {where}", row.recall))
    else:
        cells.append(_figure(f"Precision {where}", row.precision))
    flagged = f"{whole(row.coverage.count or 0)} of {whole(row.coverage.total or 0)} cases"
    alerts = tag("dd", f"{1000 * row.coverage.value:.1f}", tag("small", flagged))
    cells.append(tag("div", tag("dt", f"Alerts per 1,000 {where}"), alerts))
    return tag("dl", *cells, class_="figures")


def _threshold(found: Findings) -> Html:
    run = found.run
    if run.threshold is None:
        shown: Html = join("none")
    elif isinstance(run.threshold, float | int):
        shown = join(threshold(float(run.threshold)))
    else:
        parts = [join(name(g, 20), f": {threshold(t)}") for g, t in list(run.threshold.items())[:6]]
        return tag(
            "div", tag("dt", "Threshold per group"), tag("dd", *(tag("small", p) for p in parts))
        )
    return tag(
        "div",
        tag("dt", "Threshold"),
        tag("dd", shown, tag("small", "flag a case if its score is above")),
    )


def _figure(label: str, rate: Measured, *lines: str) -> Html:
    value = percent(rate.value) if rate.total is not None else f"{rate.value:.4g}"
    small = [tag("small", line) for line in (ends(rate), *lines) if line]
    return tag("div", tag("dt", label), tag("dd", value, *small))


def _asked(found: Findings, bound: Bound | Setpoint) -> str:
    """``asked ≤ 1 %, proved ≤ 0.97 %``."""
    sense = bound.sense if isinstance(bound, Bound) else "at"
    share = bound.expression.is_share
    text = f"asked {sense} {level(bound.level) if share else f'{bound.level:g}'}"
    proved = found.verdict.proved.get(str(bound))
    if proved is not None:
        text += f", proved {sense} {percent(proved) if share else f'{proved:g}'}"
    return pretty(text)


def _sentence(text: str) -> str:
    return _capital(text) + ("" if text.endswith((".", "!", "?")) else ".")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

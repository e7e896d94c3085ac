"""The verdict, in words for whoever has to sign it."""

from __future__ import annotations

from setpoint.rates import Bound
from setpoint.report.html import Html, join, name, tag
from setpoint.report.numbers import between, level, percent, threshold, whole
from setpoint.report.words import listed, promise, rate_name
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
        tag("p", join("What would change this: ", text), class_="note") for text in verdict.changes
    ]
    return tag(
        "section",
        tag("h2", TITLES[verdict.status], id="verdict"),
        tag("p", _promise(found)),
        *(tag("p", reason) for reason in verdict.reasons if verdict.status != "certified"),
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
            here = f"{percent(rate.value)} ({between(rate.interval)})"
            return tag(
                "p",
                f"But the test data contradict it: {rate_name(bound.expression)} {here} there. "
                "Find out how they differ from the calibration data before relying on it.",
                class_="says broken",
                style="white-space:normal",
            )
    return None


def _figures(found: Findings) -> Html:
    row = found.judged
    where = f"on {row.name}"
    cells = [_threshold(found)]
    for bound, rate in list(zip(found.goal.bounds, row.bounds, strict=True))[:2]:
        asked = f"asked: {'at' if not isinstance(bound, Bound) else bound.sense} {_asked(bound)}"
        asked = asked.replace("<=", "≤").replace(">=", "≥")
        cells.append(_figure(f"{_capital(rate_name(bound.expression))} {where}", rate, asked))
    shown = {str(bound.expression) for bound in found.goal.bounds}
    other = (
        ("recall", row.recall)
        if not shown & {"recall", "tpr", "fnr"}
        else ("precision", row.precision)
    )
    cells.append(_figure(f"{_capital(other[0])} {where}", other[1], ""))
    alerts = row.coverage
    cells.append(
        tag(
            "div",
            tag("dt", f"Alerts per 1,000 {where}"),
            tag(
                "dd",
                f"{1000 * alerts.value:.1f}",
                tag("small", f"{whole(alerts.count or 0)} of {whole(alerts.total or 0)} cases"),
            ),
        )
    )
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


def _figure(label: str, rate: Measured, asked: str) -> Html:
    below = " · ".join(text for text in (between(rate.interval), asked) if text)
    value = percent(rate.value) if rate.total is not None else f"{rate.value:.4g}"
    return tag("div", tag("dt", label), tag("dd", value, tag("small", below)))


def _asked(bound: object) -> str:
    expression, asked = getattr(bound, "expression", None), float(getattr(bound, "level", 0.0))
    return level(asked) if getattr(expression, "is_share", False) else f"{asked:g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

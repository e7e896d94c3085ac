"""The page of a three-way certificate: who is accepted, reviewed and rejected, and what is proved.

Its two thresholds cannot be moved: everything is in tables and one picture, without a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from markupsafe import Markup

from setpoint._version import __version__
from setpoint.reports.charts import histogram_plot
from setpoint.reports.run_page import environment, plain
from setpoint.reports.svg import Plot
from setpoint.reports.text import capital, cases_per_unit, level, money, name
from setpoint.reports.wording import Nouns, bound_in_words
from setpoint.results.findings import ASSUMPTIONS
from setpoint.results.three_way import ThreeWayFindings

_TITLES = {
    "certified": "✓ Certified",
    "not certified": "Not certified",
    "infeasible": "✗ Infeasible",
}


def three_way_page(
    found: ThreeWayFindings,
    nouns: Nouns,
    *,
    label: str = "label",
    group: str = "group",
    notes: Sequence[str] = (),
) -> str:
    """The page as one HTML document; write it as UTF-8.

    Args:
        found: The certificate and the rows to show.
        nouns: The words of the task.
        label: The name of the label.
        group: The column that groups come from.
        notes: What was done to the data, in sentences.
    """
    certificate = found.certificate
    names = _decision_names(nouns)
    template = environment().get_template("three_way.html.jinja")
    shown = template.render(
        found=found,
        certificate=certificate,
        nouns=nouns,
        names=names,
        title=_TITLES[certificate.status],
        tone=certificate.status.replace(" ", "-"),
        headline=_headline(found, nouns, names),
        label=label,
        group=group,
        notes=notes,
        assumptions=certificate.assumptions or ASSUMPTIONS,
        plots=[(1, _scores(found, names))],
        per=cases_per_unit(len(found.scores), found.days),
        unit="a day" if found.days else "per 1,000 cases",
        paid=_paid(found),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        version=__version__,
        numbers=_numbers(found),
    )
    return f"{shown}\n"


def _decision_names(nouns: Nouns) -> dict[str, Markup]:
    """What a case with each decision is called."""
    low = "Rejected" if nouns.done.striptags() == "accepted" else "Left alone"
    first = name(capital(nouns.done.striptags()), 44)
    return {"accept": first, "review": Markup("Reviewed"), "reject": Markup(low)}


def _headline(found: ThreeWayFindings, nouns: Nouns, names: dict[str, Markup]) -> Markup:
    """Both promises and the verdict in one sentence."""
    (above, _), (below, _) = found.sides
    low = replace(
        nouns,
        done=Markup("{} or reviewed").format(nouns.done),
        undone=Markup("{} cases").format(names["reject"].lower()),
    )
    what = Markup("{} and {}").format(bound_in_words(above, nouns), bound_in_words(below, low))
    sure, status = (
        f"with {level(found.certificate.confidence)} confidence",
        found.certificate.status,
    )
    if status == "certified":
        return Markup("{}: proved {}").format(Markup(capital(what)), sure)
    if status == "infeasible":
        return Markup("Too few cases to prove that {}").format(what)
    return Markup("Not proved {}: {}").format(sure, what)


def _scores(found: ThreeWayFindings, names: dict[str, Markup]) -> Plot:
    """The scores of both classes and the two thresholds."""
    plot, certificate = histogram_plot(found.histogram), found.certificate
    if certificate.upper is not None and certificate.lower is not None:
        low, high = (names[key].striptags() for key in ("reject", "accept"))
        plot.upright(certificate.lower, low, top=True, class_="threshold", right=False)
        plot.upright(certificate.upper, high, top=True, class_="threshold", right=True)
    return plot


def _paid(found: ThreeWayFindings) -> tuple[str, str] | None:
    """The cost of a day or of 1,000 cases, and its interval."""
    cost, per = found.cost, cases_per_unit(len(found.scores), found.days)
    if cost is None or cost.interval is None:
        return None
    low, high = (money(per * end) for end in cost.interval)
    return money(per * cost.value), f"{low} to {high}"


def _numbers(found: ThreeWayFindings) -> Any:
    """The numbers of the page for machines, as plain JSON."""
    certificate = found.certificate
    return plain(
        {
            "format": "setpoint three-way report 1",
            "goal": certificate.goal,
            "status": certificate.status,
            "confidence": certificate.confidence,
            "lower": certificate.lower,
            "upper": certificate.upper,
            "decisions": found.rows,
            "bounds": [{"bound": str(bound), "measured": rate} for bound, rate in found.sides],
            "groups": found.by_group,
            "periods": found.by_period,
            "days": found.days,
            "costs": found.costs,
            "cost": found.cost,
        }
    )

"""One self-contained page: no script runs, nothing is loaded, every word of the user's is text."""

from __future__ import annotations

from importlib.resources import files
from itertools import count
from typing import Any

from setpoint.certificates.classes import ASSUMED
from setpoint.reports import background, classes, compared, operating, sections
from setpoint.reports.banner import banner
from setpoint.reports.confusion import confusion
from setpoint.reports.embed import class_data, data
from setpoint.reports.html import Html, clip, join, json_block, name, tag
from setpoint.reports.words import pretty
from setpoint.results.findings import ClassFindings, Findings, class_findings, findings
from setpoint.results.run import ClassRun, RunResult

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(run: RunResult | ClassRun) -> str:
    """The report of a run as one HTML document; write it as UTF-8."""
    return _of_classes(class_findings(run)) if isinstance(run, ClassRun) else _of_two(findings(run))


def _of_two(found: Findings) -> str:
    number = count(1)  # pictures, in the order of the page
    made = join(
        "Report on finding “", name(found.run.positive, 60), "” in ", name(found.run.label, 60)
    )
    main = (
        banner(found),
        sections.by_split(found, number),
        operating.curves(found, number),
        operating.sensitivity(found),
        operating.scores(found, number),
        compared.comparison(found),
        background.groups(found),
        background.training(found, number),
        background.facts(found),
    )
    return _document(found, made, main, data(found))


def _of_classes(found: ClassFindings) -> str:
    made = join(f"Report on telling {len(found.run.names)} classes apart in ")
    main = (
        classes.banner(found),
        classes.by_split(found),
        confusion(found),
        classes.classes(found),
        background.training(found, count(1)),
        background.rests_on(found, classes.facts(found), ASSUMED),
    )
    return _document(found, join(made, name(found.run.label, 60)), main, class_data(found))


def _document(
    found: Findings | ClassFindings, made: Html, main: tuple[Html | None, ...], numbers: Any
) -> str:
    body = tag(
        "body",
        tag("header", tag("p", made, class_="made"), tag("h1", _sentence(found.run.goal))),
        tag("main", *main),
        tag(
            "footer",
            "Made by setpoint. This page loads nothing and runs nothing; "
            "its numbers are also in it as JSON.",
        ),
        json_block(numbers, id_="setpoint-report"),
    )
    return "<!DOCTYPE html>\n" + tag("html", _head(found), body, lang="en") + "\n"


def _head(found: Findings | ClassFindings) -> Html:
    style = files("setpoint.reports").joinpath("style.css").read_text(encoding="utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{found.verdict.status.capitalize()}: {clip(pretty(found.run.goal))}"),
        tag("style", Html(style)),
    )


def _sentence(goal: str) -> str:
    return clip(pretty(goal[:1].upper() + goal[1:]), 300)

"""A page with the confusion matrix before the shifts and with them."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from setpoint.report.html import Html, json_block, name, tag
from setpoint.report.html import table as html_table
from setpoint.report.numbers import percent, whole
from setpoint.report.words import pretty
from setpoint.results.confusion import Confusions

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def confusion_page(found: Confusions, goal: object = "") -> str:
    """One self-contained HTML document; write it as UTF-8.

    Args:
        found: Both matrices, such as ``Classifier.confusions_``.
        goal: What was wanted, for the heading.
    """
    style = files("setpoint.report").joinpath("style.css").read_text(encoding="utf-8")
    title = pretty(str(goal)) or "Who is taken for whom"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("header", tag("p", "Report on several classes", class_="made"), tag("h1", title)),
        tag("main", confusion_section(found)),
        json_block(_data(found), id_="setpoint-confusion"),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def confusion_section(found: Confusions) -> Html:
    """Both matrices, one below the other."""
    note = "Rows are true classes, columns what they were taken for; the diagonal is right."
    return tag(
        "section",
        tag("h2", "Who is taken for whom"),
        tag("p", note),
        _table("Before: the highest score decides", found, found.before),
        _table("After: the highest shifted score decides", found, found.after),
    )


def _table(caption: str, found: Confusions, matrix: Any) -> Html:
    head: list[object] = ["True", *(name(n, 24) for n in found.names), "Recall"]
    rows: list[list[object]] = [
        [
            name(n, 24),
            *(tag("strong", whole(x)) if i == j else whole(x) for j, x in enumerate(row)),
            _share(recall),
        ]
        for i, (n, row, recall) in enumerate(
            zip(found.names, matrix, found.recalls(matrix), strict=True)
        )
    ]
    rows.append(["Precision", *(_share(x) for x in found.precisions(matrix)), ""])
    return html_table(caption, head, rows)


def _share(value: float) -> str:
    return "-" if np.isnan(value) else percent(float(value))


def _data(found: Confusions) -> dict[str, Any]:
    return {
        "classes": [str(n) for n in found.names],
        "before": found.before.tolist(),
        "after": found.after.tolist(),
    }

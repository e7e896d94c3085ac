"""Who is taken for whom, before the shifts and with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.reports.html import Html, join, name, tag
from setpoint.reports.numbers import NOTHING, percent, whole
from setpoint.reports.sections import section
from setpoint.results.confusion import Confusions
from setpoint.results.findings import ClassFindings

MOST = 20
"""Classes that are shown one by one, the most frequent; the JSON block has all."""


def confusion(found: ClassFindings) -> Html:
    """Both matrices, one below the other."""
    both, left = _shown(found.confusions)
    note = (
        f"On {found.judged.name} data. Rows are true classes, columns what they were taken for; "
        "the diagonal is right. The darker a cell, the larger its share of the row."
    )
    few = f" The {MOST} most frequent classes are shown, the other {left} as one." if left else ""
    return section(
        "Who is taken for whom",
        tag("p", note + few),
        _table("Before: the highest score decides", both, both.before),
        _table("After: the highest shifted score decides", both, both.after),
    )


def _shown(found: Confusions) -> tuple[Confusions, int]:
    """The matrices with all but the most frequent classes taken together, and how many those are.

    What is decided among those that are taken together is counted where it is right or wrong.
    """
    count = len(found.names)
    if count <= MOST:
        return found, 0
    frequent = np.sort(np.argsort(-found.before.sum(1), kind="stable")[:MOST])
    rest = np.setdiff1d(np.arange(count), frequent)
    groups = [[i] for i in frequent] + [rest.tolist()]
    to = np.array([[i in group for i in range(count)] for group in groups], float)
    names = (*(found.names[i] for i in frequent), "others")
    return Confusions(names, *(to @ m @ to.T for m in (found.before, found.after))), len(rest)


def _table(caption: str, found: Confusions, matrix: Any) -> Html:
    head = ["True", *(name(n, 24) for n in found.names), "Recall"]
    recalls, sizes = found.recalls(matrix), np.maximum(matrix.sum(1), 1)
    lines = []
    for i, (n, row) in enumerate(zip(found.names, matrix, strict=True)):
        cells = [_cell(x, x / sizes[i], i == j) for j, x in enumerate(row)]
        lines.append(
            tag("tr", tag("th", name(n, 24), scope="row"), *cells, tag("td", _share(recalls[i])))
        )
    precisions = [tag("td", _share(x)) for x in found.precisions(matrix)]
    lines.append(tag("tr", tag("th", "Precision", scope="row"), *precisions, tag("td", "")))
    body = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))),
        tag("tbody", *lines),
        class_="matrix",
    )
    return tag("div", body, class_="scroll", role="region", aria_label=caption, tabindex="0")


def _cell(count: float, share: float, right: bool) -> Html:
    """A count on a ground as dark as its share; what is right and what is wrong differ in hue."""
    shown = tag("strong", whole(count)) if right else join(whole(count))
    kind = "right" if right else "wrong"
    return tag("td", shown, class_=kind, style=f"--share:{100 * share:.0f}%")


def _share(value: float) -> str:
    return NOTHING if np.isnan(value) else percent(float(value))

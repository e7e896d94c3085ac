"""The sections about the operating point: curves, threshold, scores."""

from __future__ import annotations

from collections.abc import Iterator

from setpoint.reports import charts
from setpoint.reports.html import Html, join, name, tag
from setpoint.reports.html import table as html_table
from setpoint.reports.numbers import measured, percent, threshold, whole
from setpoint.reports.sections import figure, section
from setpoint.results.findings import Findings


def curves(found: Findings, number: Iterator[int]) -> Html | None:
    """ROC and precision-recall, zoomed to where the decision is made."""
    if not found.curves:
        return None
    return section(
        "Curves at the operating point",
        tag(
            "p",
            f"On {found.judged.name} data. The dot is what the threshold does, the shaded box "
            "how sure that is.",
        ),
        tag(
            "div",
            figure(charts.roc(found), number, titled="ROC curve, zoomed"),
            figure(charts.precision_recall(found), number, titled="Precision and recall"),
            class_="pair",
        ),
        _prevalence(found),
    )


def sensitivity(found: Findings) -> Html | None:
    """What the neighbours of the threshold would do."""
    if not found.sensitivity:
        return None
    rows: list[list[object]] = [
        [
            join(threshold(step.threshold), " (chosen)" if step.chosen else ""),
            f"{step.alerts_per_1000:.1f}",
            measured(step.fpr),
            measured(step.recall),
            measured(step.precision),
        ]
        for step in found.sensitivity
    ]
    shown = "Threshold" if found.one_threshold else "Shift of all thresholds"
    return section(
        "If the threshold moved",
        tag(
            "p",
            f"From half to twice as many alerts on {found.judged.name} data. Only the chosen "
            "threshold carries a certificate: picking another one by this table voids it.",
        ),
        html_table(
            None,
            [shown, "Alerts per 1,000", "False positive rate", "Recall", "Precision"],
            rows,
            chosen=next((i for i, step in enumerate(found.sensitivity) if step.chosen), None),
        ),
    )


def scores(found: Findings, number: Iterator[int]) -> Html:
    """How well the scores separate the classes, and whether they are fine enough."""
    positive = f"“{found.run.positive}”"
    h = found.histogram
    warning = None
    if h.largest_tie > 0.01:
        warning = tag(
            "p",
            f"Ties: {percent(h.largest_tie)} of the scores are one single value, and only "
            f"{whole(h.distinct)} values occur. A threshold cannot split equal scores; keep "
            "scores as logits in float32 and do not round them.",
            class_="note",
        )
    total = (found.judged.positives, found.judged.negatives)
    return section(
        "Scores",
        tag("p", f"Number of cases by score on {found.judged.name} data, on a logarithmic axis."),
        tag(
            "div",
            figure(
                charts.scores(found, True, positive),
                number,
                titled=join("“", name(found.run.positive, 40), f"”: {whole(total[0])} cases"),
            ),
            figure(
                charts.scores(found, False, "the others"),
                number,
                titled=f"Negatives: {whole(total[1])} cases",
            ),
            class_="pair",
        ),
        warning,
    )


def _prevalence(found: Findings) -> Html | None:
    """Precision depends on how frequent positives are; recall and FPR do not."""
    if not found.prevalence:
        return None
    rows: list[list[object]] = [
        [percent(p.prevalence), percent(p.precision), f"{p.alerts_per_1000:.1f}"]
        for p in found.prevalence
    ]
    own = next((i for i, p in enumerate(found.prevalence) if p.own), None)
    return join(
        tag("h3", "Precision where positives are rarer or more frequent"),
        tag(
            "p",
            "Recall and false positive rate stay the same if only the mix of classes changes; "
            "precision does not.",
        ),
        html_table(None, ["Share of positives", "Precision", "Alerts per 1,000"], rows, chosen=own),
    )

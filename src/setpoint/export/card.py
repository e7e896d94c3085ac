"""A model card in Markdown: what the model promises, on what data, under which assumptions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from setpoint.certificates import Certificate, Claim, ThreeWayCertificate
from setpoint.certificates.classes import ASSUMED
from setpoint.certificates.text import value_text
from setpoint.results import Findings, Measured, RunResult


def model_card(run: RunResult) -> str:
    """The card of a run, from the same numbers as its report.

    Args:
        run: As ``setpoint train`` leaves it in its folder, for two classes or for several.

    Examples:
        >>> import numpy as np
        >>> scores, labels = np.linspace(0, 1, 100), np.arange(100) >= 50
        >>> run = RunResult("fpr <= 0.1", {"test": (scores, labels)}, 0.5, label="is_fraud")
        >>> print(model_card(run).splitlines()[0])
        # is_fraud: 1 or not
    """
    found = Findings(run)
    if run.classes:
        measured = _class_tables(found)
        what, rule = "which class", "the highest of `score - shift`"
    else:
        measured = _table(found)
        what, rule = f"{_plain(run.positive)} or not", "`score > threshold`, strictly"
    parts = [
        f"# {_plain(run.label)}: {what}",
        _summary(run, found.verdict.status, rule),
        "## Promise",
        _promise(run.certificate),
        "## Measured",
        measured,
        "## Data and training",
        _training(run),
        "## Limits",
        _limits(found),
    ]
    return "\n\n".join(parts) + "\n"


def certificate_card(certificate: Certificate | ThreeWayCertificate) -> str:
    """The card of a certificate alone: what is promised of a model's scores, and its limits.

    Examples:
        >>> import numpy as np
        >>> from setpoint import certify
        >>> found = certify(np.arange(1000.0), np.arange(1000) >= 500, "fpr <= 0.05")
        >>> print(certificate_card(found).splitlines()[0])
        # Decisions: fpr <= 0.05
    """
    entries = json.loads(certificate.to_json())
    decided = [
        _line(["bound", "measured", "proved", "counts"]),
        _line(["---"] * 4),
        *(_line(_claim(claim)) for claim in certificate.claims),
    ]
    limits = [f"- {_plain(line)}" for line in entries.get("assumptions", ())]
    limits.append("- Other data than these, other uses, and other groups were not judged.")
    rules = _rules(certificate)
    if certificate.label_names:
        rules.append("labels: {!r}, and {!r} as the positive one".format(*certificate.label_names))
    parts = [
        f"# Decisions: {_plain(certificate.goal)}",
        f"Verdict: **{_plain(certificate.verdict)}**. Decisions are strict comparisons of a score "
        "with a threshold.",
        "## Promise",
        _promise(entries),
        "## Decisions",
        "\n".join(f"- {_plain(rule)}" for rule in rules),
        "## Measured",
        "\n".join(decided),
        "## Limits",
        "\n".join(limits),
    ]
    return "\n\n".join(parts) + "\n"


def _rules(certificate: Certificate | ThreeWayCertificate) -> list[str]:
    if isinstance(certificate, Certificate):
        column = certificate.column
        names = ["" if column is None else f"{column} = {p.group!r}: " for p in certificate.points]
        told = [point.describe(certificate.dtype) for point in certificate.points]
        return [f"{name}{text}" for name, text in zip(names, told, strict=True)]
    if not certificate.certified:
        return ["none"]
    return [f"accept: score > {certificate.upper}", f"reject: score <= {certificate.lower}"]


def _claim(claim: Claim) -> list[str]:
    values = (claim.measured, claim.proved)
    shown = ("" if value is None else value_text(claim.bound, value) for value in values)
    return [_plain(claim.bound), *shown, _plain(claim.counts)]


_MODELS = {
    "mlp": "An MLP",
    "linear": "A linear model",
    "boosted": "Boosted trees",
    "stacked": "A weighted sum of models",
}


def _summary(run: RunResult, status: str, rule: str) -> str:
    model = _MODELS.get(run.model, f"A {run.model or 'model'}")
    return (
        f"{model} trained by {run.method or 'an unnamed method'} for the goal "
        f"{_code(run.goal)}. Verdict: **{_plain(status)}**. "
        f"Decisions are {rule}."
    )


def _promise(certificate: Mapping[str, Any] | None) -> str:
    if certificate is None:
        return "Nothing was certified: the figures below are measurements, not promises."
    lines = [
        f"- goal: {_code(certificate['goal'])}",
        f"- status: {_plain(certificate['status'])}",
        f"- confidence: {certificate['confidence']:g}",
    ]
    lines += [f"- {_plain(note)}" for note in certificate.get("notes", ())]
    return "\n".join(lines)


def _table(found: Findings) -> str:
    lines = [
        "| split | positives | negatives | FPR | recall | precision |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in found.splits:
        rates = " | ".join(_percent(rate) for rate in (row.fpr, row.recall, row.precision))
        lines.append(f"| {row.name} | {row.positives:,} | {row.negatives:,} | {rates} |")
    return "\n".join([*lines, "", _convention(found)])


def _convention(found: Findings) -> str:
    sure = f"{100 * found.verdict.confidence:g} %"
    return f"In brackets: two-sided {sure} intervals (Clopper and Pearson), each by itself."


def _class_tables(found: Findings) -> str:
    """The goal on every split, then every class on the one nearest to new data."""
    asked = [found.goal.objective, *(bound.expression for bound in found.goal.bounds)]
    head = ["split", "cases", *(_plain(expression) for expression in asked)]
    lines = [_line(head), _line(["---"] * len(head))]
    for split in found.splits:
        values = (f"{rate.value:.4g}" for rate in (split.wanted, *split.bounds))
        lines.append(_line([split.name, f"{split.count:,}", *values]))
    rows = ["class", "cases", "shift", "recall", "precision", "predicted"]
    lines += ["", f"On {found.judged.name} data, by class:", ""]
    lines += [_line(rows), _line(["---"] * len(rows))]
    for row in found.classes:
        rates = (_percent(rate) for rate in (row.recall, row.precision, row.coverage))
        lines.append(_line([_plain(row.name), f"{row.count:,}", f"{row.shift:.4g}", *rates]))
    return "\n".join([*lines, "", _convention(found)])


def _percent(rate: Measured) -> str:
    if rate.value != rate.value:
        return "none"
    text = f"{100 * rate.value:.3g} %"
    if rate.interval is None:
        return text
    return f"{text} ({100 * rate.interval.low:.3g} to {100 * rate.interval.high:.3g})"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _training(run: RunResult) -> str:
    columns = ", ".join(_code(name) for name in run.columns) or "not recorded"
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    lines = [f"- features: {columns}", f"- seed: {run.seed}"]
    lines += [f"- {_plain(note)}" for note in run.notes]
    if versions:
        lines.append(f"- versions: {versions}")
    if run.created:
        lines.append(f"- made: {run.created}")
    return "\n".join(lines)


def _limits(found: Findings) -> str:
    run = found.run
    assumed = () if run.certificate is None else run.certificate.get("assumptions", ())
    if run.classes and found.verdict.status == "certified":
        assumed = ASSUMED
    lines = [f"- {_plain(line)}" for line in assumed]
    lines.append("- Other data than these, other uses, and other groups were not judged.")
    return "\n".join(lines)


_MEANING = re.compile(r"[&\\`*\[\]|#]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])")
"""Characters with a meaning to Markdown or HTML; ``<=`` and ``is_fraud`` have none."""


def _plain(text: object) -> str:
    """Text from a user's file, on one line and without meaning to Markdown or HTML."""
    line = " ".join(str(text).split())
    return _MEANING.sub(lambda found: f"&#{ord(found.group())};", line)


def _code(text: object) -> str:
    """The same as a code span, in which only the backtick means anything."""
    return "`" + " ".join(str(text).split()).replace("`", "'") + "`"

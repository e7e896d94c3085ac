"""A model card in Markdown: what the model promises, on what data, under which assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from setpoint.certificates.classes import ASSUMED
from setpoint.results import Findings, Measured, RunResult


def model_card(run: RunResult) -> str:
    """The card of a run, from the same numbers as its report.

    Args:
        run: As ``setpoint train`` leaves it in its folder, for two classes or for several.
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


def _summary(run: RunResult, status: str, rule: str) -> str:
    return (
        f"A {run.model or 'model'} trained by {run.method or 'an unnamed method'} for the goal "
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
    return "\n".join(lines)


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
    return "\n".join(lines)


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


_ENTITIES = {ord(character): f"&#{ord(character)};" for character in "&\\`*_[]<>|#"}


def _plain(text: object) -> str:
    """Text from a user's file, on one line and without meaning to Markdown or HTML."""
    return " ".join(str(text).split()).translate(_ENTITIES)


def _code(text: object) -> str:
    """The same as a code span, in which only the backtick means anything."""
    return "`" + " ".join(str(text).split()).replace("`", "'") + "`"

"""A model card in Markdown: what the model promises, on what data, under which assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpoint.results import Findings, Measured, RunResult, findings


def model_card(run: RunResult) -> str:
    """The card of a run, from the same numbers as its report.

    Args:
        run: As ``setpoint train`` leaves it in its folder.
    """
    found = findings(run)
    parts = [
        f"# {_plain(run.label)}: {_plain(run.positive)} or not",
        _summary(run, found),
        "## Promise",
        _promise(run.certificate),
        "## Measured",
        _table(found),
        "## Data and training",
        _training(run),
        "## Limits",
        _limits(run),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(run: RunResult, found: Findings) -> str:
    return (
        f"A {run.model or 'model'} trained by {run.method or 'an unnamed method'} for the goal "
        f"{_code(run.goal)}. Verdict: **{_plain(found.verdict.status)}**. "
        "Decisions are `score > threshold`, strictly."
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


def _percent(rate: Measured) -> str:
    if rate.value != rate.value:
        return "none"
    text = f"{100 * rate.value:.3g} %"
    if rate.interval is None:
        return text
    return f"{text} ({100 * rate.interval.low:.3g} to {100 * rate.interval.high:.3g})"


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


def _limits(run: RunResult) -> str:
    assumed = () if run.certificate is None else run.certificate.get("assumptions", ())
    lines = [f"- {_plain(line)}" for line in assumed]
    lines.append("- Other data than these, other uses, and other groups were not judged.")
    return "\n".join(lines)


def _plain(text: object) -> str:
    """Text from a user's file, on one line and without meaning to Markdown or HTML."""
    line = " ".join(str(text).split())
    for character in "\\`*_[]<>|#":
        line = line.replace(character, f"&#{ord(character)};")
    return line


def _code(text: object) -> str:
    """The same as a code span, in which only the backtick means anything."""
    return "`" + " ".join(str(text).split()).replace("`", "'") + "`"

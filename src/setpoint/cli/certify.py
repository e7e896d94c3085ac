"""``setpoint certify``: a threshold that provably holds, from a file of scores. Never torch."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from setpoint.cli.common import DONE, NOT_CERTIFIED, Command, UserError, check_file, count, share


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="scores.csv", help="csv or parquet, one row an example")
    add("--score", required=True, metavar="COLUMN", help="the scores: higher is more positive")
    add("--label", metavar="COLUMN", help="the true class; not needed for coverage alone")
    add("--goal", required=True, help='what to prove, as in "fpr <= 0.01" or "recall >= 0.95"')
    add("--confidence", type=share, default=0.95, metavar="SHARE", help="default: 0.95")
    add("--candidates", type=count, default=1, metavar="N", help="models tried on these rows")
    add("--guarantee", choices=("pac", "mean"), default="pac", help="default: pac")
    add("--prevalence", type=share, metavar="SHARE", help="share of positives where it is used")
    add("--group", metavar="COLUMN", help="one threshold for each value of this column")
    add("--clusters", metavar="COLUMN", help="who a row belongs to: one row each, or refused")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--out", type=Path, metavar="FILE", help="write the certificate as JSON, for `check`")
    add("--json", action="store_true", help="print the certificate as JSON")


def _run(given: argparse.Namespace) -> int:
    from setpoint.tables import open_table, read_scores
    from setpoint.tables.scores import read_texts

    if given.out is not None:
        check_file(given.out)
    goal = _goal(given.goal, given.label, given.group)
    source = open_table(given.file)
    data = read_scores(source, given.score, given.label, given.group, given.positive)
    clusters = None if given.clusters is None else read_texts(source, given.clusters, "--clusters")
    from setpoint.certificates import certify

    certificate = certify(
        data.scores,
        data.labels,
        goal,
        confidence=given.confidence,
        candidates=given.candidates,
        guarantee=given.guarantee,
        prevalence=given.prevalence,
        groups=None if given.group is None else {given.group: data.groups},
        clusters=clusters,
    )
    if given.out is not None:
        save(given.out, certificate)
    print(as_json(certificate) if given.json else certificate)
    return DONE if certificate.status == "certified" else NOT_CERTIFIED


def _goal(text: str, label: str | None, group: str | None) -> Any:
    """Told as a mistake in the goal before the file is read."""
    from setpoint.certificates.goals import read_goal as read
    from setpoint.cli.goals import read_goal
    from setpoint.rates import coverage

    found = read_goal(text, read)
    alerts = coverage.numerator, coverage.denominator
    if label is None and any((r.numerator, r.denominator) != alerts for r in found.rates):
        raise UserError(f"--goal {text!r} counts positives and negatives: add --label COLUMN.")
    columns = {column for where in found.wheres for column, _ in where}
    if columns - {group}:
        raise UserError(f"--goal {text!r} looks at groups: add --group {min(columns)} (one only).")
    return text


def as_json(certificate: Any) -> str:
    """A certificate as indented JSON."""
    return json.dumps(json.loads(certificate.to_json()), indent=2, ensure_ascii=False)


def save(path: Path, certificate: Any) -> None:
    """Write a certificate completely or not at all."""
    import os

    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(as_json(certificate) + "\n", encoding="utf-8")
    os.replace(draft, path)


CERTIFY = Command(
    _arguments, _run, "A threshold that provably holds on new data, from scores and labels."
)

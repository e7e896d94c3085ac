"""``setpoint report``: the page of a certificate on scored rows, or of a run."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from setpoint._files import check_output, write_file
from setpoint.certificates import Certificate, ThreeWayCertificate
from setpoint.certificates.calibration_drift import order_note
from setpoint.cli.common import (
    DONE,
    UserError,
    add_decimal,
    add_output,
    add_page_arguments,
    as_json,
    page_words,
    tell,
)
from setpoint.reports import page, report
from setpoint.runs import (
    REPORT_FILE,
    history_file,
    read_certificate_file,
    read_checks,
    read_manifest,
    read_result,
)
from setpoint.tables import Scores, open_table, read_scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A file of scores with a certificate, or a run folder."""
    add = parser.add_argument
    add("source", type=Path, metavar="scores.csv | run/", help="scored rows, or a run of `train`")
    add("--certificate", type=Path, metavar="FILE", help="what `certify` wrote, for scored rows")
    add("--score", metavar="COLUMN", help="the scores: higher is more positive")
    add("--label", metavar="COLUMN", help="the true class")
    add("--group", metavar="COLUMN", help="rates for each value of this column")
    add("--clusters", metavar="COLUMN", help="who a row belongs to, if it was certified so")
    add("--id", metavar="COLUMN", help="names the row, if ties are broken by lot")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--time", metavar="COLUMN", help="when each row came: rates by period, alerts a day")
    add("--by", choices=("hour", "day", "week", "month"), help="periods to show")
    add("--history", type=Path, metavar="FILE", help="what `check` noted; default: its own file")
    add_page_arguments(parser)
    where = "the page (default: report.html, in the run folder for a run)"
    add_output(parser, "page.html", where)
    add_decimal(parser)
    add("--json", action="store_true", help="print what was written as JSON")
    parser.set_defaults(also_reads=_history)


def run(given: argparse.Namespace) -> int:
    """Write the page."""
    if given.source.is_dir() and given.certificate is None:
        for name in ("score", "label", "group", "clusters", "time", "by", "id"):
            if getattr(given, name) is not None:
                raise UserError(f"--{name} is for scored rows; {given.source} is a run.")
        result = read_result(given.source, read_manifest(given.source))
        checks = read_checks(_history(given))
        result = replace(result, checks=checks, **page_words(given))
        out = given.out or _default(given, given.source)
        text = page(result, script=not given.no_script)
    else:
        out, text = given.out or _default(given, Path()), _of_scores(given)
    write_file(out, text.encode(), force=given.force)
    print(as_json({"report": str(out)}) if given.json else f"Written: {out}")
    return DONE


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _history(given: argparse.Namespace) -> Path:
    """The file of earlier checks, which need not be there."""
    history: Path | None = given.history
    return history or history_file(given.certificate or given.source)


def _default(given: argparse.Namespace, folder: Path) -> Path:
    read = (given.source, given.certificate, _history(given))
    inputs = [path for path in read if path not in (None, folder)]
    check_output(folder / REPORT_FILE, force=given.force, inputs=inputs)
    return folder / REPORT_FILE


def _of_scores(given: argparse.Namespace) -> str:
    needed = {"certificate": "FILE", "score": "COLUMN", "label": "COLUMN"}
    missing = [f"--{name} {what}" for name, what in needed.items() if getattr(given, name) is None]
    if missing:
        hint = " (named first: they are not the certificate)" if _is_json(given.source) else ""
        raise UserError(f"a page of scored rows{hint} needs {', '.join(missing)}, too.")
    certificate = read_certificate_file(given.certificate)
    if certificate.clusters is not None and given.clusters is None:
        raise UserError(
            f"{given.certificate} is about a row of each cluster: add --clusters COLUMN."
        )
    columns = (given.score, given.label, given.group, given.positive)
    source = open_table(given.source, given.decimal)
    named = {"clusters": given.clusters, "times": given.time, "ids": given.id}
    known = certificate.label_names
    data = read_scores(source, *columns, **named, known_as=known, one_will_do=True)
    rows = data.labelled
    order = None if given.time is not None else order_note(rows.scores, rows.labels)
    notes = [*data.notes, *([] if order is None else [order])]
    tell(notes)
    data = replace(data, notes=tuple(notes), label_names=known or data.label_names)
    return scored_page(given, certificate, data, checks=read_checks(_history(given)))


def scored_page(
    given: argparse.Namespace,
    certificate: Certificate | ThreeWayCertificate,
    data: Scores,
    **more: Any,
) -> str:
    """The page of a certificate on scored rows, as the options ask for it; ``more``: see report."""
    columns = {name: getattr(data, name) for name in ("notes", "times", "ids", "clusters")}
    return report(
        data.scores,
        data.labels,
        certificate,
        groups=None if given.group is None else {given.group: data.groups},
        label=given.label,
        by=given.by,
        script=not given.no_script,
        **columns,
        **page_words(given, data.label_names),
        **more,
    )

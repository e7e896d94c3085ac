"""``setpoint check``: does a certificate still hold on new rows? For cron: 0 yes, 1 no."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.certificates import ClassCertificate, ThreeWayCertificate
from setpoint.certificates.drift import Check
from setpoint.certificates.times import later, period_of, rates_by_period, read_times
from setpoint.cli.common import (
    DONE,
    NOT_PROVED,
    PERIOD_UNITS,
    UserError,
    add_columns,
    add_decimal,
    as_json,
    fraction,
    one_line,
    related_to_rows,
    several_columns,
    tell,
)
from setpoint.runs import (
    Manifest,
    history_file,
    note_check,
    read_certificate,
    read_certificate_file,
    read_manifest,
)
from setpoint.tables import (
    NO_ROWS,
    Scores,
    TableError,
    TableSource,
    need_column,
    open_table,
    read_score_columns,
    read_scores,
)
from setpoint.tables.scores import known_labels

_SHOWN = ("when", "file", "examples", "verdict")
_LATEST = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A certificate or a run, and a file of new rows."""
    add = parser.add_argument
    add("certificate", type=Path, help="certificate.json, or a folder that `setpoint train` wrote")
    add("file", type=Path, metavar="new.csv", help="csv or parquet, one row per example")
    add_columns(parser, "the scores; without it, the run's model scores the rows")
    add("--group", metavar="COLUMN", help="the groups, if the certificate is about groups")
    add("--clusters", metavar="COLUMN", help="who a row belongs to, if it was certified so")
    add("--time", metavar="COLUMN", help="when a row was measured, for --by and alerts per day")
    add("--by", choices=PERIOD_UNITS, help="with --time: show the rates by period")
    add("--id", metavar="COLUMN", help="names the row, if ties are broken by lot")
    add("--amounts", "--amount", metavar="COLUMN", help="what a row is worth, if costs go by it")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--significance", type=fraction, default=0.001, metavar="SHARE", help="of an alarm (0.001)")
    noted = "where checks are noted (default: beside the certificate, NAME.checks.jsonl)"
    add("--history", type=Path, metavar="FILE", help=noted)
    add("--no-history", action="store_true", help="note nothing")
    add_decimal(parser)
    add("--json", action="store_true", help="print the verdict as JSON")


def run(given: argparse.Namespace) -> int:
    """Print what the new rows say about the certificate."""
    manifest: Manifest | None = None
    if given.certificate.is_dir():
        manifest = read_manifest(given.certificate)
        certificate: Any = read_certificate(given.certificate, manifest)
        if manifest.classes:
            _check_several(given)
    else:
        certificate = _of_file(given.certificate)
    several = several_columns(given)
    source = open_table(given.file, given.decimal)
    if given.by is not None and given.time is None:
        raise UserError("--by goes by time: add --time COLUMN.")
    if getattr(certificate, "clusters", None) is not None and given.clusters is None:
        raise UserError(
            f"{given.certificate} is about a row of each cluster: add --clusters COLUMN."
        )
    column = getattr(certificate, "column", None)
    if given.group is None and column in source.names:
        given.group = column
    known_as = getattr(certificate, "label_names", ())
    more: dict[str, Any] = {"significance": given.significance}
    if several is not None:
        data = None
        names = (*several, given.positive)
        read = read_score_columns(source, *names, known_as=known_as, one_will_do=True)
        tell(read.notes)
        known = related_to_rows(source, several.scores[0], given)
        more |= {"groups": known["groups"], "clusters": known["clusters"]}
        found = certificate.check(read.scores, read.labels, **more)
    else:
        data = _read(given, manifest, source, known_as)
        also = {"clusters": data.clusters}
        if not isinstance(certificate, (ThreeWayCertificate, ClassCertificate)):
            also |= {"times": data.times, "ids": data.ids, "amounts": data.amounts}
        more |= {name: column for name, column in also.items() if column is not None}
        columns = None if given.group is None else {given.group: data.groups}
        found = certificate.check(data.scores, data.labels, groups=columns, **more)
    history = [] if given.no_history else _note(given, found, certificate)
    if given.json:
        told = [{key: entry[key] for key in _SHOWN} for entry in history]
        print(as_json({**asdict(found), "exit_code": found.exit_code, "history": told}))
    else:
        print(found)
        for line in _period_lines(given, certificate, data):
            print(line)
        for line in _history_lines(history, given.significance):
            print(line)
    return DONE if found.exit_code == 0 else NOT_PROVED


def _period_lines(
    given: argparse.Namespace, certificate: Any, data: Scores | None
) -> Iterator[str]:
    """From when to when the new rows were measured, and with --by their rates by period."""
    if data is None or data.times is None:
        return
    times = read_times(data.times, data.scores.reshape(len(data.scores), -1)[:, 0])
    first, last = period_of(times)
    yield f"measured from {first} to {last}"
    known = getattr(certificate, "period", ())
    if known and not later(times, known[1]):
        yield (
            f"The certificate was measured from {known[0]} to {known[1]}: rows up to then may be "
            "those it rests on, and say nothing new."
        )
    if given.by is not None:
        data = data.labelled
        rows = (data.scores, data.labels, data.times, given.by)
        related = (data.ids, data.clusters, data.amounts)
        three = isinstance(certificate, ThreeWayCertificate)
        for each in certificate.sides if three else [certificate]:
            yield from map(str, rates_by_period(each, *rows, *related))


def _note(given: argparse.Namespace, found: Check, certificate: Any) -> list[dict[str, Any]]:
    """Note the check; whatever is wrong with the file does not change the verdict."""
    path = given.history or history_file(given.certificate)
    try:
        return note_check(path, found, certificate, str(given.file))
    except (OSError, ValueError) as error:
        tell([f"This check is not noted: {one_line(error)}"])
        return []


def _history_lines(history: list[dict[str, Any]], significance: float) -> Iterator[str]:
    """The latest checks, and how likely one of all is a false alarm."""
    if len(history) < 2:
        return
    chance = min(1.0, len(history) * significance)
    today = datetime.now(timezone.utc).date().isoformat()
    yield (
        f"{len(history)} checks so far; that chance alone makes one of them alarm has a "
        f"probability of at most {100 * chance:.3g} %:"
    )
    for entry in history[-_LATEST:]:
        when, file, rows, verdict = (entry[key] for key in _SHOWN)
        day = when[:10].replace(today, "today")
        yield f"  {day:<10}  {verdict:<6}  {rows:,} rows of {file}"


def _check_several(given: argparse.Namespace) -> None:
    """Several classes have one score each, from the run's model, and no positive one."""
    if given.score is not None:
        raise UserError(
            f"{given.certificate} is a run for several classes: its model scores the rows; leave "
            "--score out."
        )
    if given.positive is not None:
        raise UserError(f"--positive is for two classes; {given.certificate} is for several.")
    if given.by is not None:
        raise UserError(f"--by is for two classes; {given.certificate} is for several.")


def _of_file(path: Path) -> Any:
    if not path.exists():
        raise UserError(f"{path}: no such file; name a certificate or the folder of a run.")
    if path.is_file() and ClassCertificate.kind.encode() in path.read_bytes():
        raise UserError(
            f"{path} is about several classes: name its folder, which has the model; scores of "
            "each class are for `setpoint watch`."
        )
    return read_certificate_file(path)


def _read(
    given: argparse.Namespace,
    manifest: Manifest | None,
    source: TableSource,
    known_as: Sequence[str],
) -> Scores:
    """The scores of a column, or those of the run's own model, and the columns that were named."""
    if given.score is None and manifest is None:
        raise UserError("--score is missing: a certificate alone cannot score rows.")
    if given.score is None and manifest is not None:
        return _score(given, manifest, source)
    data = read_scores(
        source,
        given.score,
        given.label,
        given.group,
        given.positive,
        clusters=given.clusters,
        times=given.time,
        ids=given.id,
        amounts=given.amounts,
        classes=None if manifest is None else manifest.label_names,
        known_as=known_as,
        one_will_do=True,
    )
    tell(data.notes)
    return data


def _score(given: argparse.Namespace, manifest: Manifest, source: TableSource) -> Scores:
    """Scores of the run's own model and the columns that were named, chunk by chunk."""
    from setpoint.runs.model import load_model, score_rows

    model = load_model(given.certificate, manifest)
    names = {option: getattr(given, option) for option in ("group", "clusters", "time", "id")}
    named = {"label": given.label, **names}.items()
    also = [need_column(source, name, f"--{option}") for option, name in named if name is not None]
    scores, labels = [], []
    columns: dict[str, list[Any]] = {option: [] for option in names}
    for chunk, features in manifest.encoder.chunks(source, also):
        scores.append(score_rows(model, features))
        if given.label is not None:
            labels.append(known_labels(chunk, given.label, manifest.label_names))
        for option, name in names.items():
            columns[option] += [] if name is None else [chunk.texts(name)]
    if not scores:
        raise TableError(source.path, NO_ROWS)
    known = (labels, *(columns[name] for name in ("group", "clusters", "time", "id")))
    truth, groups, clusters, times, ids = (np.concatenate(own) if own else None for own in known)
    return Scores(np.concatenate(scores), truth, groups, clusters, (), times, None, ids)

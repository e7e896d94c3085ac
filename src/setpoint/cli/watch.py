"""``setpoint watch``: a certificate in production, file by file. For cron: 0 holds, 1 broken.

The state file is replaced in one step, under a lock, after a file is counted: a run that is killed
has counted its file wholly or not at all. Rows that were counted before are left out: those of the
same file again, whatever it is called, and the beginning of a file that has grown.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural, quoted
from setpoint._files import (
    OutputError,
    check_output,
    finish_moves,
    only_one,
    write_file,
    write_files,
)
from setpoint.certificates import Certificate, ClassCertificate, ThreeWayCertificate
from setpoint.certificates.text import share_text
from setpoint.certificates.times import PERIODS, period_units
from setpoint.cli.common import (
    DONE,
    NOT_PROVED,
    UserError,
    add_columns,
    add_decimal,
    add_output,
    as_json,
    fraction,
    read_text,
    refuse_options,
    several_columns,
    tell,
)
from setpoint.cli.watched_rows import (
    AnyCertificate,
    WatchedRows,
    column_names,
    read_file,
    read_scores_to_compare,
)
from setpoint.monitoring import ClassMonitor, JointMonitor, Monitor
from setpoint.monitoring.counted_rows import rows_counted, with_file
from setpoint.runs import read_any_certificate_file
from setpoint.runs.folder import CERTIFICATE_FILE
from setpoint.tables.values import DATE_ORDERS

AnyMonitor = Monitor | JointMonitor
_LABELS_LATER = "Labels of rows that wait for them come with --id and --label, without --score."
_LOCK_PATIENCE = 60.0
"""Seconds to wait for another run that holds the state."""
_MOST_REPLAYED = 20_000
"""Periods; each is an update of its own, of some milliseconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A certificate, a file of new rows, and where the state is kept."""
    add = parser.add_argument
    add(
        "certificate", type=Path, metavar="certificate.json", help="what `certify` or `train` wrote"
    )
    add("file", type=Path, nargs="?", metavar="today.csv", help="new rows: csv or parquet")
    add_columns(parser, "the scores; without it, labels of earlier rows (--id)")
    add("--time", metavar="COLUMN", help="when each row came: dates, or numbers")
    how = "which comes first in dates like 03/04/2024"
    add("--dates", choices=tuple(DATE_ORDERS), help=how)
    add("--group", metavar="COLUMN", help="the groups, if the certificate is about groups")
    add("--id", metavar="COLUMN", help="names of rows, to join labels that come later")
    add("--clusters", metavar="COLUMN", help="who a row belongs to: a cluster counts once")
    add("--amount", "--amounts", metavar="COLUMN", help="what each row is worth, if costs go by it")
    how = "the share with which each label was sampled: a column, or one number"
    add("--label-weight", metavar="COLUMN", help=how)
    add("--features", metavar="COLUMNS", help="columns to watch, too: names with commas between")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--state", type=Path, metavar="state.json", help="what has been counted so far")
    add("--reference", type=Path, metavar="FILE", help="a new state: calibration scores (--score)")
    add("--watch", metavar="KINDS", help="a new state: some of rates,alerts,scores (default: all)")
    how = "a new state: the chance of ever raising a false alarm (default: 0.05)"
    add("--false-alarm", type=fraction, metavar="SHARE", help=how)
    add("--by", choices=tuple(PERIODS), help="a new state: what rows are put into (default: day)")
    add("--page", type=Path, metavar="watch.html", help="write the page of the state")
    add("--replay", type=Path, metavar="all.csv", help="what it would have said, without a state")
    again = "certify the rows of the file anew, for --out; what is left of the confidence is spent"
    add("--recalibrate", action="store_true", help=again)
    add_output(parser, "new.json", "with --recalibrate: where the new certificate goes")
    add_decimal(parser)
    add("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Count a file, and say whether the certificate holds."""
    if given.certificate.is_dir():
        given.certificate /= CERTIFICATE_FILE
    certificate = read_any_certificate_file(given.certificate)
    of_classes = isinstance(certificate, ClassCertificate)
    given.several = several_columns(given, one_label=of_classes)
    _check_usage(given)
    _check_kind(given, certificate)
    _check_page(given)
    if given.replay is not None:
        return _replay(given, certificate)
    with _alone(given.state):
        finish_moves(Path(os.path.realpath(given.state)))
        replaced = [given.state] * given.state.exists()
        replaced += [given.out] * (given.force and given.out is not None)
        given.files = {}  # what is written together with the state
        monitor, rows = _open_state(given, certificate), read_file(given, certificate)
        counted = (_join if given.score is None else _count)(given, monitor, rows)
        given.files = {given.state: f"{monitor.to_json()}\n".encode(), **given.files}
        write_files(given.files, force=replaced)
        _write_page(given, monitor)
    print(as_json(_told_as_json(monitor, counted)) if given.json else monitor)
    return DONE if monitor.exit_code == 0 else NOT_PROVED


def _check_kind(given: argparse.Namespace, certificate: AnyCertificate) -> None:
    """Refuse options that do not go with the certificate."""
    if isinstance(certificate, ClassCertificate):
        _check_classes(given, certificate)
        return
    outputs: Sequence[str] = getattr(certificate, "outputs", ())
    named = given.several.scores if given.several else [given.score]
    if given.score is not None and len(named) != max(1, len(outputs)):
        wanted = f"{len(outputs)} outputs, {', '.join(outputs):.200}" if outputs else "one score"
        raise UserError(
            f"{given.certificate} is about {wanted}: add --score for each (and --label), no more."
        )
    if outputs:
        k = len(outputs)
        why = (
            "with one score: certify each output by itself for it, --confidence "
            f"{1 - (1 - certificate.confidence) / k:.6g}, and watch it with --false-alarm "
            f"{(given.false_alarm or 0.05) / k:.6g}"
        )
        refuse_options(given, ("reference", "group", "id", "clusters", "amount", "features"), why)
    if isinstance(certificate, ThreeWayCertificate):
        why = "with one threshold; three ways are certified anew, and watched by their sides"
        refuse_options(given, ("recalibrate", "page", "watch"), why)


def _check_classes(given: argparse.Namespace, certificate: ClassCertificate) -> None:
    """Several classes take a score of each, and the name of one in the column of labels."""
    scores = given.several.scores if given.several else [given.score]
    if given.score is not None and len(scores) != len(certificate.classes):
        raise UserError(
            f"{given.certificate} is about the classes {', '.join(certificate.classes):.200}: add "
            "--score for the score of each, in this order (`setpoint predict` writes them)."
        )
    why = "with two classes; several are watched by their bounds alone"
    options = ("recalibrate", "page", "watch", "reference", "amount", "features", "positive")
    refuse_options(given, options, why)


def _told(given: argparse.Namespace, before: int, size: int) -> str:
    if before < size:
        new = plural(size - before, "new row")
        return f"{given.file} has grown: {before:,} rows were counted before, {new} now."
    told = f"{given.file} was counted before: nothing is counted."
    return told if given.label is None or given.score is None else f"{told} {_LABELS_LATER}"


def _check_usage(given: argparse.Namespace) -> None:
    if given.replay is not None:
        if given.file is not None or given.state is not None:
            raise UserError("--replay FILE keeps no state: leave the other file and --state out.")
        if given.time is None or given.score is None:
            raise UserError("--replay needs --score and --time.")
        given.file = given.replay
        return
    if given.file is None or given.state is None:
        raise UserError("name a file of new rows and --state state.json (or --replay all.csv).")
    if not given.state.parent.is_dir():
        raise UserError(
            f"--state {given.state}: the folder {given.state.parent} does not exist; make it first."
        )
    if given.score is None and (given.id is None or given.label is None):
        raise UserError(
            "--score is missing (`setpoint predict` writes the scores of a run); for labels of "
            "earlier rows name --id and --label."
        )
    written = [os.path.realpath(p) for p in (given.state, given.page, given.out) if p is not None]
    if len(set(written)) < len(written):
        raise UserError("--state, --page and --out are files of their own; name each differently.")
    if given.recalibrate and (given.label is None or given.score is None or given.out is None):
        raise UserError("--recalibrate needs --score, --label and --out.")
    if given.out is not None and not given.recalibrate:
        raise UserError("--out is for --recalibrate; the state goes to --state.")


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Hold the lock of the state; wait for another run that has it."""
    end = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            holder = only_one(state, "--state")
            holder.__enter__()
            break
        except OutputError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    try:
        yield
    finally:
        holder.__exit__(None, None, None)


def _open_state(given: argparse.Namespace, certificate: AnyCertificate) -> AnyMonitor:
    """The monitor in the state file, or a new one."""
    if not given.state.exists():
        return _new_monitor(given, certificate)
    try:
        text = read_text(given.state, "state")
        kinds = (ClassMonitor, JointMonitor)
        monitor = next((k for k in kinds if k.kind in text[:100]), Monitor).from_json(text)
    except (ValueError, TypeError, OSError) as error:
        raise UserError(f"{given.state}: {error}") from None
    sides: Sequence[AnyCertificate] = [certificate]
    sides = certificate.sides if isinstance(certificate, ThreeWayCertificate) else sides
    watched: Sequence[AnyCertificate] = [part.certificate for part in _parts(monitor)]
    watched = [monitor.certificate] if isinstance(monitor, ClassMonitor) else watched
    if [each.to_json() for each in watched] != [each.to_json() for each in sides]:
        raise UserError(
            f"{given.state} watches another certificate ({_promises_text(watched)}) than "
            f"{given.certificate} ({_promises_text(sides)}). Name that one, or a new state."
        )
    _check_settings(given, monitor)
    return monitor


def _parts(monitor: AnyMonitor) -> list[Monitor]:
    """The monitor, or those of both sides; files, ids and settings are those of the first."""
    return [monitor] if isinstance(monitor, Monitor) else [*monitor.parts.values()]


def _check_settings(given: argparse.Namespace, monitor: AnyMonitor) -> None:
    """Refuse settings that are not those of the state."""
    first = _parts(monitor)[0]
    features = None if given.score is None else column_names(given.features)
    for option, asked, has in (
        ("--false-alarm", given.false_alarm, monitor.false_alarm),
        ("--watch", None if given.watch is None else column_names(given.watch), first.watch),
        ("--by", given.by, first.by),
        ("--features", features, first.feature_names),
        ("--reference", given.reference, None),
    ):
        if asked is not None and asked != has:
            words = ",".join(has) if isinstance(has, tuple) else has
            raise UserError(
                f"{option} is for a new state; {given.state} was begun with {words or 'none'}. "
                "Leave it as it was, or name a new state."
            )


def _promises_text(certificates: Iterable[AnyCertificate]) -> str:
    found = []
    for each in certificates:
        if not isinstance(each, Certificate):
            found.append(each.goal)
            continue
        ends = [f"{p.threshold:.6g}" for p in each.points if p.threshold is not None]
        found.append(f"{each.goal}, score > {', '.join(ends):.100}")
    return "; ".join(found)


def _new_monitor(given: argparse.Namespace, certificate: AnyCertificate) -> AnyMonitor:
    options: dict[str, Any] = {"by": given.by or "day"}
    if not isinstance(certificate, ClassCertificate):
        options["features"] = column_names(given.features)
    if given.reference is not None:
        options["reference"] = read_scores_to_compare(given)
    if given.watch is not None:
        options["watch"] = column_names(given.watch)
    made: AnyMonitor = certificate.monitor(given.false_alarm or 0.05, **options)
    return made


def _count(given: argparse.Namespace, monitor: AnyMonitor, rows: WatchedRows) -> int:
    """Count the rows of the file that were not counted before, or recalibrate on it; how many."""
    first = _parts(monitor)[0]
    times = rows.columns["times"]
    order = np.arange(len(rows)) if times is None else np.argsort(times, kind="stable")
    identity = {kind: column[order] for kind, column in rows.identity.items()}
    before, new = rows_counted(first.files, identity, given.file.name), order[:0]
    used = not given.recalibrate or _recalibrate(given, first, rows)
    if not given.recalibrate:
        new = _not_counted(given, monitor, rows, order[before:])
        if len(new):
            monitor.update(**rows.part(new))
        if before:
            tell([_told(given, before, len(rows))])
    if used and before < len(rows):
        first.files = with_file(first.files, identity, given.file.name, before)
    return len(new)


def _not_counted(
    given: argparse.Namespace, monitor: AnyMonitor, rows: WatchedRows, new: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The rows whose ids were not counted before."""
    ids = rows.columns["ids"]
    if ids is None or given.clusters is not None:
        return new
    again = monitor.counted_before(ids[new])
    if again.any():
        told = f"{plural(int(again.sum()), 'row')} of {given.file} were counted before, by --id"
        tell([f"{told}: left out. {_LABELS_LATER}"])
    return new[~again]


def _join(given: argparse.Namespace, monitor: AnyMonitor, rows: WatchedRows) -> int:
    """Join the labels of the file to the rows that wait for them; how many.

    A row gets one label, so a file of labels may come twice, or again when its rows have come.
    """
    found = rows.columns
    known = ~np.isnan(found["labels"])
    waiting = _parts(monitor)[0].pending.waiting
    waits = known & np.array([str(name) in waiting for name in found["ids"]], bool)
    joined, there = int(waits.sum()), int(known.sum())
    if joined:
        part = rows.part(np.flatnonzero(waits))
        monitor.add_labels(part["ids"], part["labels"], label_shares=part["label_shares"])
    if joined < there:
        tell(
            [
                f"{there - joined:,} of {plural(there, 'label')} in {given.file} have no row that "
                "waits for one: they were joined before, or their rows have not come yet. Then "
                "give the file again."
            ]
        )
    return joined


def _recalibrate(given: argparse.Namespace, monitor: Monitor, rows: WatchedRows) -> bool:
    """Certify the labelled rows of the file; whether the state goes on with the new certificate."""
    known = ~np.isnan(rows.columns["labels"])
    part = rows.part(np.flatnonzero(known.reshape(len(rows), -1).any(1)))
    columns = {name: part[name] for name in ("groups", "clusters", "times", "amounts", "ids")}
    found = monitor.recalibrate(part["scores"], part["labels"], **columns)
    given.files[given.out] = f"{found.to_json()}\n".encode()
    told = f"{found.status} with {share_text(found.confidence)} confidence: see {given.out}."
    why = f" {found.notes[0]}." if found.notes and not found else ""
    tell([told if found else f"{told}{why} The state keeps the old certificate."])
    return bool(found)


def _replay(given: argparse.Namespace, certificate: AnyCertificate) -> int:
    """What the monitor would have said, period by period."""
    monitor, rows = _new_monitor(given, certificate), read_file(given, certificate)
    first = _parts(monitor)[0]
    times = rows.columns["times"]
    order = np.argsort(times, kind="stable")
    units = period_units(times[order], first.by)
    begins = np.flatnonzero(np.concatenate([[True], units[1:] != units[:-1]]))
    if len(begins) > _MOST_REPLAYED:
        raise UserError(
            f"--replay counts up to {_MOST_REPLAYED:,} periods one by one; column "
            f"{quoted(given.time)} has {len(begins):,} of them. Name a longer period (--by "
            "month), or a column of dates."
        )
    said = []
    for part in np.split(order, begins[1:]):
        status = monitor.update(**rows.part(part))
        period = first.history.periods[-1]
        said.append({"period": period.name, "rows": period.rows, "status": status})
        if not given.json:
            print(f"{period.name:<12} {period.rows:>9,} rows  {status}")
    _write_page(given, monitor)
    if given.json:
        print(as_json({**_told_as_json(monitor, monitor.rows), "periods": said}))
    return DONE if monitor.exit_code == 0 else NOT_PROVED


def _told_as_json(monitor: AnyMonitor, counted: int) -> dict[str, Any]:
    """The state in plain values, of both sides if there are two."""
    if isinstance(monitor, Monitor):
        return summary(monitor, counted)
    parts = {name: summary(part, counted) for name, part in monitor.parts.items()}
    said = {"status": monitor.status, "verdict": monitor.verdict, "rows": monitor.rows}
    return {**said, "counted": counted, "false_alarm": monitor.false_alarm, "parts": parts}


def summary(monitor: Monitor, counted: int) -> dict[str, Any]:
    """The state in plain values."""
    limits = monitor.limits
    return {
        "status": monitor.status,
        "verdict": monitor.verdict,
        "goal": monitor.certificate.goal,
        "rows": monitor.rows,
        "counted": counted,
        "false_alarm": monitor.false_alarm,
        "tests": {
            name: {
                "log_evidence": test.log_evidence,
                "alarm_at": limits[name],
                "part_of_false_alarm": monitor.budget[name],
                "alarm": name in monitor.alarms,
                "since": monitor.since(name) if name in monitor.alarms else None,
            }
            for name, test in monitor.tests.items()
        },
        "metrics": monitor.metrics(),
        "notes": list(monitor.notes),
        "spent": monitor.spent,
    }


def _check_page(given: argparse.Namespace) -> None:
    """Refuse a page that cannot be written, before anything is counted."""
    if given.page is None:
        return
    from setpoint.reports.watch_page import MARK

    read = (given.certificate, given.file, given.state, given.reference)
    inputs = [path for path in read if path is not None]
    check_output(given.page, force=True, inputs=inputs, option="--page")
    if given.page.is_file() and not given.force and MARK not in given.page.read_bytes():
        raise UserError(f"--page {given.page} is no page of `watch`; name another, or add --force.")


def _write_page(given: argparse.Namespace, monitor: AnyMonitor) -> None:
    if given.page is not None and isinstance(monitor, Monitor):
        from setpoint.reports.watch_page import watch_page

        _check_page(given)  # somebody may have put a file there
        force = given.force or given.page.exists()
        write_file(given.page, watch_page(monitor).encode(), force=force)

"""``setpoint watch``: a certificate in production, file by file. For cron: 0 holds, 1 broken.

The state file is replaced in one step, under a lock, after a file is counted: a run that is killed
has counted its file wholly or not at all. Rows that were counted before are left out: those of the
same file again, whatever it is called, and the beginning of a file that has grown.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint._files import OutputError, check_output, only_one, write_file
from setpoint.certificates import Certificate
from setpoint.certificates.text import share_text
from setpoint.certificates.times import PERIODS, period_names, read_times
from setpoint.cli.common import (
    DONE,
    NOT_PROVED,
    UserError,
    add_decimal,
    add_output,
    as_json,
    fraction,
    tell,
)
from setpoint.monitoring import Monitor
from setpoint.monitoring.counted_rows import rows_counted, with_file
from setpoint.runs import read_certificate_file
from setpoint.tables import (
    NO_ROWS,
    Chunk,
    TableError,
    TableSource,
    is_index,
    need_column,
    open_table,
    score_column,
    score_format,
)
from setpoint.tables.labels import LabelCount
from setpoint.tables.values import PLAIN, missing, numbers

_LABELS_LATER = "Labels of rows that wait for them come with --id and --label, without --score."
_LOCK_PATIENCE = 60.0
"""Seconds to wait for another run that holds the state."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A certificate, a file of new rows, and where the state is kept."""
    add = parser.add_argument
    add("certificate", type=Path, metavar="certificate.json", help="what `certify` wrote")
    add("file", type=Path, nargs="?", metavar="today.csv", help="new rows: csv or parquet")
    add("--score", metavar="COLUMN", help="the scores; without it, labels of earlier rows (--id)")
    add("--label", metavar="COLUMN", help="the true class; cells may be empty")
    add("--time", metavar="COLUMN", help="when each row came: ISO dates, or numbers")
    add("--group", metavar="COLUMN", help="the groups, if the certificate is about groups")
    add("--id", metavar="COLUMN", help="names of rows, to join labels that come later")
    add("--clusters", metavar="COLUMN", help="who a row belongs to: a cluster counts once")
    add("--amount", metavar="COLUMN", help="what each row is worth, if costs go by it")
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
    certificate = read_certificate_file(given.certificate)
    if not isinstance(certificate, Certificate):
        raise UserError(
            f"{given.certificate} is no certificate of one threshold, or of one for each group; "
            "`watch` is for those. Compare single files by `check`, or certify each decision (each "
            "class against the others, each side of three ways) by itself."
        )
    if certificate.outputs:
        k = len(certificate.outputs)
        raise UserError(
            f"{given.certificate} is about {k} outputs; `watch` reads one --score. In Python: "
            "certificate.monitor().update(scores, labels) with a column for each. From a shell "
            f"certify each by itself, --confidence {1 - (1 - certificate.confidence) / k:.6g}, and "
            f"watch it with --false-alarm {(given.false_alarm or 0.05) / k:.6g}."
        )
    _check_usage(given)
    _check_page(given)
    if given.replay is not None:
        return _replay(given, certificate)
    with _alone(given.state):
        begun = given.state.exists()
        monitor, rows = _open_state(given, certificate), read_file(given, certificate.label_names)
        counted = (_join if given.score is None else _count)(given, monitor, rows)
        write_file(given.state, f"{monitor.to_json()}\n".encode(), force=begun)
        _write_page(given, monitor)
    print(as_json(summary(monitor, counted)) if given.json else monitor)
    return DONE if monitor.exit_code == 0 else NOT_PROVED


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
        raise UserError("--score is missing; for labels of earlier rows name --id and --label.")
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
    lock, end = state.with_name(f".{state.name}.lock"), time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            holder = only_one(lock, str(state))
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


def _open_state(given: argparse.Namespace, certificate: Certificate) -> Monitor:
    """The monitor in the state file, or a new one."""
    if not given.state.exists():
        return _new_monitor(given, certificate)
    try:
        monitor = Monitor.from_json(given.state.read_text(encoding="utf-8"))
    except (ValueError, TypeError, OSError) as error:
        raise UserError(f"{given.state}: {error}") from None
    if monitor.certificate.to_json() != certificate.to_json():
        raise UserError(
            f"{given.state} watches another certificate ({monitor.certificate.goal}, "
            f"{_threshold_text(monitor.certificate)}) than {given.certificate} "
            f"({certificate.goal}, {_threshold_text(certificate)}). Name that one, or a new state."
        )
    _check_settings(given, monitor)
    return monitor


def _check_settings(given: argparse.Namespace, monitor: Monitor) -> None:
    """Refuse settings that are not those of the state."""
    features = None if given.score is None else _names(given.features)
    for option, asked, has in (
        ("--false-alarm", given.false_alarm, monitor.false_alarm),
        ("--watch", None if given.watch is None else _names(given.watch), monitor.watch),
        ("--by", given.by, monitor.by),
        ("--features", features, monitor.feature_names),
        ("--reference", given.reference, None),
    ):
        if asked is not None and asked != has:
            words = ",".join(has) if isinstance(has, tuple) else has
            raise UserError(
                f"{option} is for a new state; {given.state} was begun with {words or 'none'}. "
                "Leave it as it was, or name a new state."
            )


def _threshold_text(certificate: Certificate) -> str:
    found = [
        f"{point.threshold:.6g}" for point in certificate.points if point.threshold is not None
    ]
    return f"score > {', '.join(found)}"


def _new_monitor(given: argparse.Namespace, certificate: Certificate) -> Monitor:
    reference = None
    if given.reference is not None:
        source = open_table(given.reference, given.decimal)
        reference = np.concatenate(_scores(source, _chunks(source, [given.score]), given.score))
    return certificate.monitor(
        0.05 if given.false_alarm is None else given.false_alarm,
        watch=("rates", "alerts", "scores") if given.watch is None else _names(given.watch),
        reference=reference,
        features=_names(given.features),
        by=given.by or "day",
    )


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(frozen=True)
class WatchedRows:
    """The columns of a file, as :meth:`Monitor.update` takes them."""

    columns: dict[str, Any]
    groups: dict[str, NDArray[Any]] | None
    features: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.identity.values())))

    @property
    def identity(self) -> dict[str, NDArray[Any]]:
        """What rows are known by: everything but labels."""
        names = ["scores", "times", "ids", "clusters"]
        found = {name: self.columns[name] for name in names if self.columns[name] is not None}
        return {**found, **{f"group {name}": each for name, each in (self.groups or {}).items()}}

    def part(self, rows: NDArray[Any]) -> dict[str, Any]:
        """Some of the rows, as arguments."""
        found = {
            name: None if column is None else column[rows] for name, column in self.columns.items()
        }
        for name, columns in (("groups", self.groups), ("features", self.features)):
            found[name] = None if not columns else {k: v[rows] for k, v in columns.items()}
        return found


def read_file(given: argparse.Namespace, known_as: Sequence[str] = ()) -> WatchedRows:
    """The named columns of the file, checked; ``known_as``: the labels of the certificate.

    Raises:
        TableError: The file, the row and column of the first value that cannot be used.
    """
    source, features = open_table(given.file, given.decimal), _names(given.features)
    named = {
        "--score": given.score,
        "--label": given.label,
        "--time": given.time,
        "--group": given.group,
        "--id": given.id,
        "--clusters": given.clusters,
        "--label-weight": given.label_weight,
        "--amount": given.amount,
    }
    if _is_share(source, given.label_weight):
        del named["--label-weight"]
    wanted = [need_column(source, n, option) for option, n in named.items() if n is not None]
    wanted += [need_column(source, name, "--features") for name in features]
    chunks = _chunks(source, wanted)
    texts = {
        name: None if column is None else np.concatenate([chunk.texts(column) for chunk in chunks])
        for name, column in (("ids", given.id), ("clusters", given.clusters))
    }
    columns = {
        "scores": None if given.score is None else _joined(_scores(source, chunks, given.score)),
        "labels": None if given.label is None else _labels(source, chunks, given, known_as),
        "times": None if given.time is None else _times(chunks, given.time),
        "label_shares": None if given.label_weight is None else _shares(source, chunks, given),
        "amounts": None if given.amount is None else _joined(_scores(source, chunks, given.amount)),
        **texts,
    }
    groups = None
    if given.group is not None:
        groups = {given.group: _joined([chunk.texts(given.group) for chunk in chunks])}
    extra = {name: _feature(source, chunks, name) for name in features}
    return WatchedRows(columns, groups, extra)


def _is_share(source: TableSource, text: str | None) -> bool:
    """Whether a text is a number between 0 and 1 and no column."""
    try:
        return text is not None and text not in source.names and 0 < float(text) <= 1
    except ValueError:
        return False


def read_columns(
    source: TableSource, time_column: str, without: Collection[str]
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """The times of a table, and its other columns as numbers or texts."""
    need_column(source, time_column, "--time")
    left_out = {time_column, *without, *source.unreadable}
    names = [name for name in source.names if name not in left_out and not is_index(name)]
    chunks = _chunks(source, [time_column, *names])
    columns = {}
    for name in names:
        column = np.concatenate([chunk.column(name) for chunk in chunks])
        known, _ = score_format(source, name, chunks)
        found, wrong = numbers(column, known)
        columns[name] = found if wrong is None else column
    return read_times(_times(chunks, time_column)), columns


def _joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(columns)


def _chunks(source: TableSource, wanted: list[str]) -> list[Chunk]:
    chunks = list(source.chunks(wanted))
    if not chunks:
        raise TableError(source.path, NO_ROWS)
    return chunks


def _scores(source: TableSource, chunks: list[Chunk], name: str) -> list[NDArray[Any]]:
    need_column(source, name, "--score")
    known, notes = score_format(source, name, chunks)
    tell(notes)
    return [score_column(chunk, name, known) for chunk in chunks]


def _feature(source: TableSource, chunks: list[Chunk], name: str) -> NDArray[Any]:
    """A column of numbers, NaN where a cell is empty."""
    known, notes = score_format(source, name, chunks)
    tell(notes)
    columns = []
    for chunk in chunks:
        column = chunk.column(name)
        found, wrong = numbers(column, known)
        if wrong is not None:
            problem = (
                f"{column[wrong]!r:.40} is not {known.name}; --features are columns of numbers."
            )
            raise chunk.error(problem, wrong, name)
        columns.append(found)
    return _joined(columns)


def _labels(
    source: TableSource, chunks: list[Chunk], given: argparse.Namespace, known_as: Sequence[str]
) -> NDArray[Any]:
    """0 and 1, NaN where the cell is empty."""
    count = LabelCount(source.path, given.label)
    absent = [_empty(chunk.column(given.label)) for chunk in chunks]
    labelled = [
        chunk.select(np.flatnonzero(~none).tolist())
        for chunk, none in zip(chunks, absent, strict=True)
    ]
    if not any(map(len, labelled)):
        return np.full(sum(map(len, chunks)), np.nan)
    for there in filter(len, labelled):
        count.update(there)
    classes = count.two_classes(given.positive, known=known_as, one_will_do=True)
    found = []
    for none, there in zip(absent, labelled, strict=True):
        labels = np.full(len(none), np.nan)
        if len(there):
            labels[~none] = classes.encode(there, given.label)
        found.append(labels)
    return np.concatenate(found)


def _empty(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells have no label: missing ones, and texts without a letter (of parquet files)."""
    if column.dtype != object:
        return missing(column)
    blank = (text is None or not str(text).strip() for text in column)
    return np.fromiter(blank, bool, len(column))


def _times(chunks: list[Chunk], name: str) -> NDArray[Any]:
    """Numbers if all are, else texts."""
    columns = [chunk.column(name) for chunk in chunks]
    for chunk, column in zip(chunks, columns, strict=True):
        absent = np.flatnonzero(missing(column))
        if len(absent):
            problem = "the time is missing; fill it in or remove the row."
            raise chunk.error(problem, int(absent[0]), name)
    read = [numbers(column, PLAIN) for column in columns]
    if all(wrong is None for _, wrong in read):
        return np.concatenate([values for values, _ in read])
    return np.concatenate([chunk.texts(name, "time") for chunk in chunks])


def _shares(source: TableSource, chunks: list[Chunk], given: argparse.Namespace) -> NDArray[Any]:
    """The shares with which labels were sampled; 1 where the cell is empty."""
    if _is_share(source, given.label_weight):
        return np.full(sum(map(len, chunks)), float(given.label_weight))
    found = []
    for chunk in chunks:
        shares, there = np.ones(len(chunk)), chunk.with_value(given.label_weight)
        known = ~missing(chunk.column(given.label_weight))
        if known.any():
            shares[known] = score_column(there, given.label_weight)
        found.append(shares)
    return np.concatenate(found)


def _count(given: argparse.Namespace, monitor: Monitor, rows: WatchedRows) -> int:
    """Count the rows of the file that were not counted before, or recalibrate on it; how many."""
    times = rows.columns["times"]
    order = np.arange(len(rows)) if times is None else np.argsort(read_times(times), kind="stable")
    identity = {kind: column[order] for kind, column in rows.identity.items()}
    before, new = rows_counted(monitor.files, identity, given.file.name), order[:0]
    used = not given.recalibrate or _recalibrate(given, monitor, rows)
    if not given.recalibrate:
        new = _not_counted(given, monitor, rows, order[before:])
        if len(new):
            monitor.update(**rows.part(new))
        if before:
            tell([_told(given, before, len(rows))])
    if used and before < len(rows):
        monitor.files = with_file(monitor.files, identity, given.file.name, before)
    return len(new)


def _not_counted(
    given: argparse.Namespace, monitor: Monitor, rows: WatchedRows, new: NDArray[np.intp]
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


def _join(given: argparse.Namespace, monitor: Monitor, rows: WatchedRows) -> int:
    """Join the labels of the file to the rows that wait for them; how many.

    A row gets one label, so a file of labels may come twice, or again when its rows have come.
    """
    found = rows.columns
    known = ~np.isnan(found["labels"])
    waits = known & np.array([str(name) in monitor.pending.waiting for name in found["ids"]], bool)
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
    part = rows.part(np.flatnonzero(~np.isnan(rows.columns["labels"])))
    columns = {name: part[name] for name in ("groups", "clusters", "times", "amounts", "ids")}
    found = monitor.recalibrate(part["scores"], part["labels"], **columns)
    write_file(given.out, f"{found.to_json()}\n".encode(), force=given.force)
    told = f"{found.status} with {share_text(found.confidence)} confidence: see {given.out}."
    why = f" {found.notes[0]}." if found.notes and not found else ""
    tell([told if found else f"{told}{why} The state keeps the old certificate."])
    return bool(found)


def _replay(given: argparse.Namespace, certificate: Certificate) -> int:
    """What the monitor would have said, period by period."""
    monitor, rows = _new_monitor(given, certificate), read_file(given, certificate.label_names)
    times = read_times(rows.columns["times"])
    order = np.argsort(times, kind="stable")
    names = period_names(times[order], monitor.by)
    begins = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
    said = []
    for part in np.split(order, begins[1:]):
        status = monitor.update(**rows.part(part))
        period = monitor.history.periods[-1]
        said.append({"period": period.name, "rows": period.rows, "status": status})
        if not given.json:
            print(f"{period.name:<12} {period.rows:>9,} rows  {status}")
    _write_page(given, monitor)
    if given.json:
        print(as_json({**summary(monitor, monitor.rows), "periods": said}))
    return DONE if monitor.exit_code == 0 else NOT_PROVED


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


def _write_page(given: argparse.Namespace, monitor: Monitor) -> None:
    if given.page is not None:
        from setpoint.reports.watch_page import watch_page

        _check_page(given)  # somebody may have put a file there
        force = given.force or given.page.exists()
        write_file(given.page, watch_page(monitor).encode(), force=force)

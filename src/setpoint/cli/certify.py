"""``setpoint certify``: a threshold that provably holds, from a file of scores."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._files import write_files
from setpoint.certificates import Certificate, certify, goal_to_certify
from setpoint.certificates.calibration_drift import DRIFTS, exchangeability
from setpoint.certificates.goals import as_capacity
from setpoint.certificates.options import PER_PERIOD, Options, why_apart
from setpoint.cli.common import (
    DONE,
    NOT_PROVED,
    PERIOD_UNITS,
    LabelColumns,
    UserError,
    add_columns,
    add_decimal,
    add_output,
    add_page_arguments,
    as_json,
    count,
    flag_of,
    fraction,
    gap_goal,
    output_file,
    parse_goal,
    positive_number,
    refuse_options,
    related_to_rows,
    several_columns,
    tell,
)
from setpoint.problems import holds_always
from setpoint.rates import coverage
from setpoint.tables import Scores, TableSource, open_table, read_score_columns, read_scores

if TYPE_CHECKING:
    from setpoint.certificates import ThreeWayCertificate
    from setpoint.certificates.goals import CertificateGoal
    from setpoint.tables.arrow_file import ArrowSource

    AnyCertificate = Certificate | ThreeWayCertificate


_OF_ONE_GOAL = (
    *("plan", "labels", "prevalence", "latest", "by", "old_threshold", "unlabelled"),
    *("amounts", "id"),
)
"""Options that do not go with three-way decisions; groups do, on their page."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A file of scores, its columns, and what to prove."""
    add = parser.add_argument
    rows = "csv or parquet, one row per example; a folder of parquet files of any size"
    add("file", type=Path, metavar="scores.csv", help=rows)
    add_columns(parser, "the scores: higher is more positive", required=True)
    add("--goal", help='what to prove, as in "fpr <= 0.01" or "recall >= 0.95"')
    add("--accept", metavar="BOUND", help='instead of --goal: above, as in "precision >= 0.99"')
    add("--reject", metavar="BOUND", help='with --accept: below, as in "npv >= 0.999"')
    add("--plan", type=Path, metavar="FILE", help="which rows are labelled, from `setpoint plan`")
    add("--labels", type=Path, metavar="FILE", help="with --plan: the rows it chose, labelled")
    add("--confidence", type=fraction, default=0.95, metavar="SHARE", help="of the proof (0.95)")
    add("--candidates", type=count, default=1, metavar="N", help="models tried on these rows")
    add("--guarantee", choices=("pac", "mean"), default="pac", help="mean: on average only")
    share = "share of positives where it is used; twice: the lowest and the highest"
    add("--prevalence", type=fraction, action="append", metavar="SHARE", help=share)
    now = "rows to come, scored in the same column: they bound the share of positives"
    add("--unlabelled", type=Path, metavar="FILE", help=now)
    add(
        "--amounts",
        "--amount",
        metavar="COLUMN",
        help="what each row is worth, for a goal with a cost",
    )
    most = "the largest amount a row can have (default: the largest of these)"
    add("--largest-amount", type=positive_number, metavar="NUMBER", help=most)
    add("--group", metavar="COLUMN", help="one threshold for each value of this column")
    add("--clusters", metavar="COLUMN", help="who a row belongs to; each counts once")
    add("--time", metavar="COLUMN", help="when a row was measured: dates or numbers")
    add("--accept-drift", action="store_true", help="with --time: certify rows that drift, too")
    add("--latest", type=count, metavar="ROWS", help="certify on so many of the latest rows")
    add("--by", choices=PERIOD_UNITS, help="show the certified rates by period")
    add("--old-threshold", type=float, metavar="SCORE", help="where alerts began when labelled")
    add("--ties", choices=("reject", "lot"), default="reject", help="scores at the threshold")
    add("--id", metavar="COLUMN", help="with --ties lot: names the row that a lot is drawn for")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--ray", action="store_true", help="read parquet files by the workers of a Ray cluster")
    add("--test", type=Path, metavar="FILE", help="labelled rows that the certificate must survive")
    add("--allow-useless", action="store_true", help="exit code 0 for `certified, but ...` too")
    add_output(parser, "FILE", "write the certificate as JSON, for `check`")
    add("--page", type=output_file, metavar="page.html", help="write the page for who decides")
    add_page_arguments(parser)
    add_decimal(parser)
    add("--json", action="store_true", help="print the certificate as JSON")


def run(given: argparse.Namespace) -> int:
    """Read the scores, certify, print or write the certificate."""
    several = several_columns(given)
    given.prevalence = _prevalence(given.prevalence)
    kind = _kind_of_proof(given) if several is None else partial(_several_labels, columns=several)
    if given.page is not None and (kind not in (_one_goal, _three_way) or given.label is None):
        raise UserError(
            "--page shows one goal, or --accept and --reject, on labelled rows: leave --page out."
        )
    given.files = {}  # what is to be written besides --out
    certificate = kind(given)
    if given.out is not None:
        tell(_others_of_these_rows(given.out, certificate.fingerprint))
        given.files = {given.out: f"{_indented(certificate)}\n".encode(), **given.files}
    if given.files:
        write_files(given.files, force=given.force)
    print(_indented(certificate) if given.json else certificate)
    return DONE if _is_accepted(given, certificate) else NOT_PROVED


def _several_labels(given: argparse.Namespace, columns: LabelColumns) -> AnyCertificate:
    """A threshold for each of several labels, all promises together."""
    alone = ("accept", "reject", "latest", "by")
    refuse_options(given, alone, "with one score; certify each label by itself for it")
    _refuse_apart(given, "outputs")
    if given.goal is None:
        raise UserError('add --goal "fpr <= 0.01", which every label must satisfy.')
    if not columns.labels:
        raise UserError("several labels: add a --label COLUMN for each --score, in the same order.")
    parse_goal(given.goal, goal_to_certify)
    source = open_table(given.file, given.decimal)
    data = read_score_columns(source, *columns, given.positive)
    tell(data.notes)
    related = related_to_rows(source, columns.scores[0], given)
    made = certify(
        data.scores,
        data.labels,
        given.goal,
        outputs=columns.labels,
        **_options(given, "accept_drift"),
        **related,
    )
    made = replace(made, label_names=data.label_names)
    if given.test is None:
        return made
    source, known_as = open_table(given.test, given.decimal), data.label_names
    names = (*columns, given.positive)
    test = read_score_columns(source, *names, known_as=known_as, one_will_do=True)
    related = related_to_rows(source, columns.scores[0], given)
    return made.tested_on(
        test.scores, test.labels, groups=related["groups"], clusters=related["clusters"]
    )


def _refuse_apart(given: argparse.Namespace, *more: str) -> None:
    """UserError if two options do not go together, as in Python."""
    known = set(more) | ({"mean"} if given.guarantee == "mean" else set())
    for field in fields(Options):
        flag = flag_of(field.name).lstrip("-").replace("-", "_")
        if getattr(given, flag, None) not in (None, field.default):
            known.add(field.name)
    wrong = why_apart(known, flag_of)
    if wrong:
        raise UserError(wrong)


def _is_accepted(given: argparse.Namespace, certificate: AnyCertificate) -> bool:
    """Whether it is certified, without caveats but for those that were allowed."""
    doubts = [
        caveat
        for caveat in getattr(certificate, "caveats", ())
        if not (given.accept_drift and caveat.startswith(DRIFTS))
    ]
    return certificate.certified and (given.allow_useless or not doubts)


def _options(given: argparse.Namespace, *more: str) -> dict[str, Any]:
    """What every certificate is asked with, and ``more`` options, by their names in Python."""
    return _picked(given, "confidence", "candidates", "guarantee", *more)


def _picked(given: argparse.Namespace, *names: str) -> dict[str, Any]:
    """These options by their names in Python."""
    return {name: getattr(given, name) for name in names}


def _kind_of_proof(given: argparse.Namespace) -> Callable[[argparse.Namespace], AnyCertificate]:
    """Which of the three commands this is: one goal, both sides of a review, or a label plan."""
    if given.accept is not None or given.reject is not None:
        if given.goal is not None or given.accept is None or given.reject is None:
            raise UserError("--accept and --reject go together, and without --goal.")
        return _three_way
    if given.goal is None:
        raise UserError('add --goal "fpr <= 0.01", or --accept and --reject.')
    if given.plan is not None:
        from setpoint.cli.plan import certify_from_plan

        return certify_from_plan
    return _one_goal if parse_goal(given.goal, as_capacity) is None else _alerts_per_period


def _alerts_per_period(given: argparse.Namespace) -> AnyCertificate:
    """A threshold for a number of alerts a day."""
    if given.time is None:
        raise UserError(f"--goal {given.goal!r} goes by time: add --time COLUMN.")
    refuse_options(given, ("by",), "with rates, not with alerts per day")
    _refuse_apart(given, PER_PERIOD)
    source = open_table(given.file, given.decimal)
    data = read_scores(source, given.score, given.label, positive=given.positive, times=given.time)
    tell(data.notes)
    data = data if given.latest is None else _latest(data, given.latest)
    made = certify(
        data.scores,
        data.labels,
        given.goal,
        times=data.times,
        **_options(given, "accept_drift"),
    )
    return replace(made, label_names=data.label_names)


def _three_way(given: argparse.Namespace) -> AnyCertificate:
    """Accept, review, reject: two thresholds, both sides proved."""
    from setpoint.certificates import certify_three_way

    alone = _OF_ONE_GOAL if given.page else (*_OF_ONE_GOAL, "group")
    refuse_options(given, alone, "with --goal; leave it out for --accept and --reject")
    if given.label is None:
        raise UserError("--accept and --reject count positives and negatives: add --label COLUMN.")
    for text in (given.accept, given.reject):
        parse_goal(text, goal_to_certify)
    columns = {"group": given.group, "times": given.time, "clusters": given.clusters}
    source = open_table(given.file, given.decimal)
    data = read_scores(source, given.score, given.label, positive=given.positive, **columns)
    tell(data.notes)
    _hint(given, source)
    certificate = certify_three_way(
        data.scores,
        data.labels,
        given.accept,
        given.reject,
        clusters=data.clusters,
        times=data.times,
        **_picked(given, "confidence", "candidates", "accept_drift"),
    )
    certificate = replace(certificate, label_names=data.label_names)
    if given.test is not None:
        source = open_table(given.test, given.decimal)
        test = _test_rows(given, source, certificate, clusters=given.clusters)
        certificate = certificate.tested_on(test.scores, test.labels, clusters=test.clusters)
    if given.page is not None:
        _add_page(given, certificate, data)
    return certificate


def _one_goal(given: argparse.Namespace) -> AnyCertificate:
    """A threshold for one goal, and what test rows say of it."""
    if given.test is not None and given.label is None:
        raise UserError("--test compares labels with the certificate: add --label COLUMN.")
    if given.time is None and (given.latest or given.by):
        raise UserError("--latest and --by go by time: add --time COLUMN.")
    wanted = _check_goal(given.goal, given.label, given.group)
    _refuse_apart(given)
    source = open_table(given.file, given.decimal)
    many, data = _to_stream(given, wanted, source), None
    if many is None:
        certificate, data = _in_memory(given, source)
    else:
        certificate = _of_stream(given, wanted, many)
    test = None
    if given.test is not None:
        source = open_table(given.test, given.decimal)
        also = {"group": given.group, "clusters": given.clusters, "ids": given.id}
        also |= {"times": given.time if given.time in source.names else None}
        test = _test_rows(given, source, certificate, **also, amounts=given.amounts)
        tell(f"{given.test}: {note}" for note in test.notes)
        columns = None if given.group is None else {given.group: test.groups}
        known = {"groups": columns, "clusters": test.clusters, "ids": test.ids}
        known["amounts"] = test.amounts
        certificate = certificate.tested_on(test.scores, test.labels, **known)
    if given.page is not None and data is not None:
        _add_page(given, certificate, data, test=_columns(test))
    return certificate


def _test_rows(
    given: argparse.Namespace, source: TableSource, certificate: AnyCertificate, **columns: Any
) -> Scores:
    """The labelled rows that the certificate must survive, with labels as it calls them."""
    names = _picked(given, "score", "label", "positive")
    return read_scores(
        source, **names, **columns, known_as=certificate.label_names, one_will_do=True
    )


def _prevalence(given: list[float] | None) -> float | tuple[float, float] | None:
    """The share of positives, or the lowest and the highest that it may be."""
    if given is None or len(given) == 1:
        return None if given is None else given[0]
    if len(given) > 2:
        raise UserError("--prevalence is given once, or twice: the lowest and the highest share.")
    return min(given), max(given)


def _in_memory(given: argparse.Namespace, source: TableSource) -> tuple[Certificate, Scores]:
    """Read all rows, then certify them."""
    columns: dict[str, Any] = {"clusters": given.clusters, "times": given.time}
    columns |= {"amounts": given.amounts, "ids": given.id}
    data = read_scores(source, given.score, given.label, given.group, given.positive, **columns)
    tell(data.notes)
    _hint(given, source)
    if given.latest is not None:
        data = _latest(data, given.latest)
    certificate = replace(_proved(given, data), label_names=data.label_names)
    if given.group is not None:
        from setpoint.certificates import approvals

        rows = data.labelled
        known = (rows.scores, rows.labels, rows.groups)
        tell(approvals(certificate, given.group, *known, ids=rows.ids))
    if given.by is not None and not given.json:
        _print_periods(given, certificate, data.labelled)
    return certificate, data


def _hint(given: argparse.Namespace, source: TableSource) -> None:
    """Point out columns that look like customers, or dates, unless they are named."""
    if given.clusters is None:
        from setpoint.tables.related_rows import related_columns

        used = {given.label, given.group, given.time, given.id, given.amounts}
        tell(related_columns(source, given.score, used, dates=given.time is None))


def _scores_to_come(given: argparse.Namespace) -> Any:
    data = read_scores(open_table(given.unlabelled, given.decimal), given.score)
    tell(data.notes)
    return data.scores


def _print_periods(given: argparse.Namespace, certificate: Certificate, data: Scores) -> None:
    """The certified rates by period, and whether the rows drift.

    If drift is why nothing is certified, the rates are those at the threshold that it would be.
    """
    from setpoint.certificates.times import rates_by_period, read_times

    shown = certificate
    if not certificate.certified and any(note.startswith(DRIFTS) for note in certificate.notes):
        shown = _proved(argparse.Namespace(**{**vars(given), "accept_drift": True}), data)
        print("Not certified; at the threshold that the rows without their times would give:")
    if shown.certified and shown.column is None:
        sure = f"{100 * shown.confidence:g} %"
        print(f"Rates by {given.by}, in brackets two-sided {sure} intervals:")
        rows = (shown, data.scores, data.labels, data.times)
        for line in rates_by_period(*rows, given.by, data.ids, data.clusters, data.amounts):
            print(line)
    if data.clusters is None:
        times = read_times(data.times, data.scores)
        found = exchangeability(data.scores, data.labels, times=times, significance=0.001)
        print(f"drift test (false alarm 0.1 %): {found.reason}")


def _proved(given: argparse.Namespace, data: Scores) -> Certificate:
    """The certificate of these rows.

    Thresholds per group of a goal about gaps are chosen on half of the rows (of the clusters) and
    proved on the other half.
    """
    options = _options(given, "prevalence", "accept_drift", "old_threshold")
    problem = None if given.group is None else gap_goal(given.goal)
    if problem is None:
        groups = None if given.group is None else {given.group: data.groups}
        options |= {"groups": groups, "clusters": data.clusters, "times": data.times}
        options |= {"amounts": data.amounts, "largest_amount": given.largest_amount}
        options |= {"ties": given.ties, "ids": data.ids}
        options["unlabelled"] = None if given.unlabelled is None else _scores_to_come(given)
        return certify(data.scores, data.labels, given.goal, **options)
    why = "with one threshold, not with one per group and gaps between them: leave it out"
    refuse_options(given, ("unlabelled", "amounts", "id"), why)
    from setpoint.certificates import certify_groups
    from setpoint.certificates.hold_out import Related

    related = Related.read(data.clusters, data.times, data.scores)
    parts = related.halves(len(data.scores), np.random.RandomState(0))
    columns = [np.asarray(c) for c in (data.scores, data.labels, data.groups)]
    chosen_on, proved_on = ([c[part] for c in columns] for part in parts)
    own, when = data.clusters, data.times
    sides = [None if own is None else own[part] for part in parts]
    options["times"] = None if when is None else when[parts[1]]
    sizes = len(chosen_on[0]), len(proved_on[0])
    told = "Thresholds are chosen on {:,} rows and proved on {:,} others, which are counted below."
    tell([told.format(*sizes)])
    return certify_groups(
        problem, chosen_on, proved_on, column=given.group, clusters=sides, **options
    )


def _add_page(
    given: argparse.Namespace, certificate: AnyCertificate, data: Scores, **more: Any
) -> None:
    """Draw the page of the certificate, to be written with it."""
    from setpoint.cli.report import scored_page

    given.files[given.page] = scored_page(given, certificate, data, **more).encode()


def _columns(test: Scores | None) -> tuple[Any, ...] | None:
    """What a page takes of test rows."""
    if test is None:
        return None
    return test.scores, test.labels, test.groups, test.times, test.ids, test.clusters


def _to_stream(
    given: argparse.Namespace, wanted: CertificateGoal, source: TableSource
) -> ArrowSource | None:
    """The table, if it is read by streaming: many rows in parquet files, or --ray.

    Raises:
        UserError: --ray is given, and they cannot be.
    """
    if not given.ray and not hasattr(source, "feather"):
        return None  # a csv file
    from setpoint.certificates.streams import FEWEST_TO_STREAM, can_stream
    from setpoint.tables.arrow_file import ArrowSource

    related = [given.clusters, given.time, given.old_threshold, given.page]
    related += [given.unlabelled, given.amounts, given.id]
    plain = all(option is None for option in related)
    if isinstance(source, ArrowSource) and not source.feather and plain:
        many = given.ray or source.count >= FEWEST_TO_STREAM
        if many and can_stream(wanted, given.group, given.prevalence):
            return source
    if given.ray:
        raise UserError(
            "--ray reads parquet files for goals about fpr, tnr, recall, fnr, coverage, precision "
            "and npv, without --clusters, --time, --old-threshold and --page."
        )
    return None


def _of_stream(
    given: argparse.Namespace, wanted: CertificateGoal, source: ArrowSource
) -> Certificate:
    """Certify rows that are read several times instead of being held in memory."""
    from setpoint.certificates.streams import (
        ScoreColumns,
        StreamedTable,
        certify_streamed,
        workers_of,
    )

    options = _options(given)
    columns = ScoreColumns(given.score, given.label, given.group)
    with workers_of(given.ray) as pool:
        table = StreamedTable(source, columns, given.positive, pool)
        tell(table.notes)
        found = certify_streamed(wanted, table.sample(given.prevalence), given.group, **options)
    classes = table.columns.classes
    return found if classes is None else replace(found, label_names=classes.both)


def _check_goal(text: str, label: str | None, group: str | None) -> CertificateGoal:
    """UserError for a mistake in the goal, before the file is read."""
    found = parse_goal(text, goal_to_certify)
    alerts = coverage.numerator, coverage.denominator
    if label is None and any((r.numerator, r.denominator) != alerts for r in found.rates):
        raise UserError(f"--goal {text!r} counts positives and negatives: add --label COLUMN.")
    if found.columns - {group}:
        name = min(found.columns)
        raise UserError(f"--goal {text!r} looks at groups: add --group {name} (one only).")
    for bound in found.bounds:
        if bound.excludes_nothing:
            raise UserError(f"{holds_always(bound)} Leave it out, or choose another level.")
    return found


def _latest(data: Scores, rows: int) -> Scores:
    """The latest rows, of equally late ones the last in the file."""
    from setpoint.certificates.times import read_times

    when = read_times(data.times, data.scores)
    last = np.sort(np.argsort(when, kind="stable")[-rows:])
    return replace(data.rows(last), times=when[last])


def _others_of_these_rows(out: Path, fingerprint: str) -> tuple[str, ...]:
    """A sentence if other certificates in the folder of ``out`` rest on the same rows."""
    mark = f'"fingerprint": "{fingerprint}"'.encode()
    beside = [path for path in out.parent.glob("*.json") if path.resolve() != out.resolve()]
    others = sum(mark in path.read_bytes() for path in beside if path.is_file())
    if not others:
        return ()
    return (
        f"{out} is certificate number {others + 1} on these rows in this folder. If the best of "
        f"them is used, pass --candidates {others + 1} to each.",
    )


def _indented(certificate: AnyCertificate) -> str:
    return as_json(json.loads(certificate.to_json()))

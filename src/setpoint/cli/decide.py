"""``setpoint decide``: the decisions of a certificate on a file of scores."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates import Certificate
from setpoint.cli.common import DONE, UserError, as_json, tell
from setpoint.cli.predict import Decided, add_decisions, new_names, write_decisions
from setpoint.runs import read_certificate_file
from setpoint.tables import TableSource, need_column, open_table, score_column, score_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A file of scores, a certificate, and where the decisions go."""
    add = parser.add_argument
    add("file", type=Path, metavar="scored.csv", help="a table with a column of scores")
    scored = "the scores that were certified; of several labels one for each, in their order"
    add("--score", required=True, action="append", metavar="COLUMN", help=scored)
    add("--certificate", required=True, type=Path, metavar="FILE", help="what `certify` wrote")
    add("--group", metavar="COLUMN", help="the groups, if each has a threshold of its own")
    add("--id", metavar="COLUMN", help="names the row, if ties are broken by lot")
    names = "what to write below and above the threshold (default: the labels certified, or 0 1)"
    add("--names", nargs=2, metavar=("LOW", "HIGH"), help=names)
    add_decisions(parser, "a column of decisions")


def run(given: argparse.Namespace) -> int:
    """Write every row of the file with its decision."""
    certificate = read_certificate_file(given.certificate)
    if not certificate.certified:
        why = f"{given.certificate} decides nothing: the goal is {certificate.status}"
        raise UserError(f"{why}; certify with more rows or a looser goal.")
    labels = getattr(certificate, "outputs", ())
    column = None if labels else getattr(certificate, "column", None)
    if len(given.score) != max(1, len(labels)):
        wanted = f"{len(labels)} outputs, {', '.join(labels):.200}" if labels else "one score"
        raise UserError(f"{given.certificate} is about {wanted}: add --score for each, no more.")
    if (column is None) != (given.group is None):
        advice = f"add --group {column}" if column else "leave --group out"
        raise UserError(f"{given.certificate} has {_thresholds(column)}: {advice}.")
    if bool(getattr(certificate, "lots", ())) != (given.id is not None):
        how = "add --id COLUMN" if given.id is None else "leave --id out"
        broken = "breaks" if given.id is None else "does not break"
        raise UserError(f"{given.certificate} {broken} ties by lot: {how}.")
    given.names = given.names or certificate.label_names or ("0", "1")
    source = open_table(given.file, given.decimal)
    seen: Counter[str] = Counter()
    decided = _decisions(given, certificate, source, seen)
    names = new_names(source.names, [f"decision_{name}" for name in labels] or ["decision"])
    count = write_decisions(source, given.out, names, decided, force=given.force)
    told = ", ".join(f"{number:,} {name!r}" for name, number in sorted(seen.items()))
    result = {"rows": count, "out": str(given.out), "decisions": dict(sorted(seen.items()))}
    print(as_json(result) if given.json else f"{count:,} rows written to {given.out}: {told}.")
    return DONE


def _thresholds(column: str | None) -> str:
    return "one threshold for everyone" if column is None else f"a threshold for each {column}"


def _decisions(
    given: argparse.Namespace, certificate: Any, source: TableSource, seen: Counter[str]
) -> Decided:
    for name in given.score:
        need_column(source, name, "--score")
    for option in ("group", "id"):
        if getattr(given, option) is not None:
            need_column(source, getattr(given, option), f"--{option}")
    chunks = source.chunks()
    first = next(chunks, None)
    if first is None:
        return
    formats = {name: score_format(source, name) for name in given.score}
    tell(note for _, notes in formats.values() for note in notes)
    for chunk in chain([first], chunks):
        columns = [score_column(chunk, name, known) for name, (known, _) in formats.items()]
        scores = columns[0]
        if isinstance(certificate, Certificate) and certificate.outputs:
            yield chunk, list(_of_labels(certificate, columns, given.names, seen))
            continue
        if isinstance(certificate, Certificate):
            groups = () if given.group is None else (chunk.texts(given.group, "group"),)
            ids = None if given.id is None else chunk.texts(given.id, "id")
            above = np.asarray(certificate.decide(scores, *groups, ids=ids))
            decided: NDArray[Any] = np.where(above, given.names[1], given.names[0])
        else:
            decided = certificate.decide(scores)
        seen.update(decided.tolist())
        yield chunk, [decided]


def _of_labels(
    certificate: Certificate, columns: list[Any], words: Sequence[str], seen: Counter[str]
) -> Iterator[NDArray[Any]]:
    """A column of decisions for each label, empty where it has no threshold."""
    decided = np.asarray(certificate.decide(np.column_stack(columns)))
    for place, label in enumerate(certificate.outputs):
        texts = np.where(decided[:, place], words[1], words[0])
        texts = texts if label in certificate.thresholds else np.full(len(texts), "")
        seen.update(f"{label}: {text or 'no threshold'}" for text in texts.tolist())
        yield texts

"""``setpoint predict``: the decisions of a run on new rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._files import replacing
from setpoint.axes.class_data import decide
from setpoint.cli.common import DONE, NOT_PROVED, add_decimal, add_output, as_json
from setpoint.runs import Manifest, read_certificate, read_manifest
from setpoint.tables import Chunk, TableSource, open_table
from setpoint.tables.table import need_column


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A run folder, a file of new rows, and where the decisions go."""
    add = parser.add_argument
    add("run_folder", type=Path, metavar="run/", help="a folder that `setpoint train` wrote")
    add("file", type=Path, metavar="new.csv", help="a table with the columns of training")
    add_decisions(parser, "scores and decisions")


def add_decisions(parser: argparse.ArgumentParser, columns: str) -> None:
    """Where rows go with these ``columns``, and how what was done is told."""
    where = f"the rows as they are with {columns}, in the format of the file"
    add_output(parser, "decisions.csv", where, required=True)
    add_decimal(parser)
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


def run(given: argparse.Namespace) -> int:
    """Write every row of the file with its scores and its decision."""
    manifest = read_manifest(given.run_folder)
    certificate = read_certificate(given.run_folder, manifest)
    if certificate.exit_code:
        what = "shifts" if manifest.classes else "threshold"
        why = f"{given.run_folder} has no certified {what} ({certificate.status})"
        print(f"setpoint: error: {why}; train with more rows or a looser goal.", file=sys.stderr)
        return NOT_PROVED
    source = open_table(given.file, given.decimal)
    manifest.encoder.check(source)
    column = getattr(certificate, "column", None)
    if column is not None:
        need_column(source, column, "the group")
    scores = [f"score {name}" for name in manifest.classes] or ["score"]
    names = new_names(source.names, [*scores, "decision"])
    decided = _decisions(given.run_folder, manifest, certificate, source)
    count = write_decisions(source, given.out, names, decided, force=given.force)
    if certificate.status != "certified":
        print(f"They are not certified: {certificate.notes[0]}", file=sys.stderr)
    done = f"{count:,} decisions written to {given.out}."
    told = {"rows": count, "out": str(given.out), "status": certificate.status}
    print(as_json(told) if given.json else done)
    return DONE


def new_names(names: Sequence[str], new: Sequence[str]) -> list[str]:
    """``score`` and ``decision``, or longer names where the file has these already."""
    found: list[str] = []
    for name in new:
        while name in names or name in found:
            name = f"setpoint_{name}"
        found.append(name)
    return found


Decided = Iterator[tuple[Chunk, list[Any]]]
"""Chunks of a table, and columns to add to each."""


def write_decisions(
    source: TableSource, out: Path, names: list[str], rows: Decided, *, force: bool
) -> int:
    """Write the rows of a table with new columns, scores or decisions; returns how many."""
    empty = [np.empty(0, str if "decision" in name else np.float32) for name in names]
    with replacing(out, force=force) as file:
        named = ((chunk, dict(zip(names, columns, strict=True))) for chunk, columns in rows)
        return source.write(file, out, named, dict(zip(names, empty, strict=True)))


def _decisions(folder: Path, manifest: Manifest, certificate: Any, source: TableSource) -> Decided:
    from setpoint.runs.model import load_model, score_rows

    model = load_model(folder, manifest)
    classes = np.array(manifest.label_names.names)
    for chunk in source.chunks():
        scores = score_rows(model, manifest.encoder.encode(chunk, source))
        if manifest.classes:
            decided = decide(scores, certificate.shifts)
        else:
            column = certificate.column
            groups = () if column is None else (chunk.texts(column, "group"),)
            decided = certificate.decide(scores, *groups)
        yield chunk, [*scores.reshape(len(chunk), -1).T, classes[np.asarray(decided).astype(int)]]

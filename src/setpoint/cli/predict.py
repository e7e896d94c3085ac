"""``setpoint predict``: the decisions of a run on new rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setpoint.axes.class_data import decide
from setpoint.cli.common import DONE, NOT_PROVED, UserError, check_file
from setpoint.runs import Manifest, read_certificate, read_manifest
from setpoint.tables import TableSource, cells, open_table, safe_cell, write_csv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A run folder, a file of new rows, and where the decisions go."""
    add = parser.add_argument
    add("run_folder", type=Path, metavar="run/", help="a folder that `setpoint train` wrote")
    add("file", type=Path, metavar="new.csv", help="csv or parquet with the columns of training")
    add("--out", required=True, type=Path, metavar="decisions.csv", help="where they go")
    add("--force", action="store_true", help="replace the file --out")


def run(given: argparse.Namespace) -> int:
    """Write every row of the file with its scores and its decision."""
    check_file(given.out)
    if given.out.exists() and given.file.exists() and given.out.samefile(given.file):
        raise UserError(f"--out {given.out} is the file to read; name another.")
    if given.out.exists() and not given.force:
        raise UserError(f"--out {given.out} exists; name another file, or replace it by --force.")
    manifest = read_manifest(given.run_folder)
    certificate = read_certificate(given.run_folder, manifest)
    if certificate.exit_code:
        what = "shifts" if manifest.classes else "threshold"
        why = f"{given.run_folder} has no certified {what} ({certificate.status})"
        print(f"setpoint: error: {why}; train with more rows or a looser goal.", file=sys.stderr)
        return NOT_PROVED
    source = open_table(given.file)
    new = [*(f"score {name}" for name in manifest.classes or ("",)), "decision"]
    header = [safe_cell(name) for name in [*source.names, *_new_names(source.names, new)]]
    rows = _decisions(given.run_folder, manifest, certificate, source)
    count = write_csv(given.out, header, rows)
    print(f"{count:,} decisions written to {given.out}.")
    if certificate.status != "certified":
        print(f"They are not certified: {certificate.notes[0]}", file=sys.stderr)
    return DONE


def _new_names(names: tuple[str, ...], new: list[str]) -> list[str]:
    """``score`` and ``decision``, or longer names where the file has these already."""
    found: list[str] = []
    for name in map(str.strip, new):
        while name in names or name in found:
            name = f"setpoint_{name}"
        found.append(name)
    return found


def _decisions(
    folder: Path, manifest: Manifest, certificate: Any, source: TableSource
) -> Iterator[list[str]]:
    """Every row of the file as it was, with its scores and the class it is decided to be."""
    from setpoint.runs.model import load_model, score_rows

    model = load_model(folder, manifest)
    readable = [name for name in source.names if name not in source.unreadable]
    classes = [safe_cell(name) for name in manifest.label_names.names]
    for chunk, features in manifest.encoder.chunks(source, readable):
        scores = score_rows(model, features)
        if manifest.classes:
            decided = decide(scores, certificate.shifts)
        else:
            decided = certificate.decide(scores)
        empty = [""] * len(chunk)
        columns = [
            cells(chunk.columns[name]) if name in chunk.columns else empty for name in source.names
        ]
        columns += [[str(score) for score in column] for column in scores.reshape(len(chunk), -1).T]
        columns.append([classes[int(d)] for d in decided])
        yield from map(list, zip(*columns, strict=True))

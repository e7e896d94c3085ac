"""``setpoint check``: does a promise still hold on new rows? For cron: 0 yes, 1 no."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from setpoint.cli.common import DONE, NOT_CERTIFIED, Command, UserError, share


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("certificate", type=Path, help="certificate.json, or a folder that `setpoint train` wrote")
    add("file", type=Path, metavar="new.csv", help="csv or parquet, one row an example")
    add("--score", metavar="COLUMN", help="the scores; without it, the run's model scores the rows")
    add("--label", metavar="COLUMN", help="the true class, if it is known by now")
    add("--group", metavar="COLUMN", help="the groups, if the certificate is about groups")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--significance", type=share, default=0.001, metavar="SHARE", help="default: 0.001")


def _run(given: argparse.Namespace) -> int:
    from setpoint.tables import Classes, open_table, read_scores

    if given.certificate.is_dir():
        certificate, manifest = _of_run(given.certificate)
    else:
        certificate, manifest = _of_file(given.certificate), None
    if manifest is not None and manifest.classes:
        _check_several(given)
    source = open_table(given.file)
    if given.score is None:
        if manifest is None:
            raise UserError("--score is missing: a certificate alone cannot score rows.")
        scores, labels, groups = _score(given, manifest, source)
    else:
        classes = None if manifest is None else Classes(manifest.negative, manifest.positive)
        wanted = (given.score, given.label, given.group, given.positive)
        data = read_scores(source, *wanted, classes=classes, one_will_do=True)
        scores, labels, groups = data.scores, data.labels, data.groups
    columns = None if given.group is None else {given.group: groups}
    found = certificate.check(scores, labels, groups=columns, significance=given.significance)
    print(found)
    return DONE if found.exit_code == 0 else NOT_CERTIFIED


def _of_run(folder: Path) -> tuple[Any, Any]:
    from setpoint.runs import read_manifest
    from setpoint.runs.result import read_promise

    manifest = read_manifest(folder)
    return read_promise(folder, manifest), manifest


def _check_several(given: argparse.Namespace) -> None:
    """Several classes have a score each, which the run's model gives, and no positive one."""
    if given.score is not None:
        raise UserError(
            f"{given.certificate} is a run for several classes: its model scores the rows; leave "
            "--score out."
        )
    if given.positive is not None:
        raise UserError(f"--positive is for two classes; {given.certificate} is for several.")


def _of_file(path: Path) -> Any:
    from setpoint.certificates import ClassCertificate
    from setpoint.runs.result import parse_certificate

    if not path.exists():
        raise UserError(f"{path}: no such file; name a certificate or the folder of a run.")
    content = path.read_bytes()
    if ClassCertificate.kind.encode() in content:
        raise UserError(f"{path} is about several classes: name its folder, which has the model.")
    return parse_certificate(path, content)


def _score(given: argparse.Namespace, manifest: Any, source: Any) -> tuple[Any, Any, Any]:
    """Scores of the run's own model, chunk by chunk."""
    import numpy as np

    from setpoint.runs.model import load_model, score_rows
    from setpoint.tables import Classes, TableError, need_column
    from setpoint.tables.labels import Several
    from setpoint.tables.values import need_groups

    model = load_model(given.certificate, manifest)
    two = Classes(manifest.negative, manifest.positive)
    classes = Several(manifest.classes) if manifest.classes else two
    named = ((given.label, "--label"), (given.group, "--group"))
    also = [need_column(source, name, option) for name, option in named if name is not None]
    scores, labels, groups = [], [], []
    for chunk, features in manifest.encoder.chunks(source, also):
        scores.append(score_rows(model, features))
        if given.label is not None:
            labels.append(classes.encode(source, chunk, given.label))
        if given.group is not None:
            groups.append(need_groups(source, chunk, given.group))
    if not scores:
        raise TableError(source.path, "has a header and no rows.")
    joined = (np.concatenate(parts) if parts else None for parts in (scores, labels, groups))
    return tuple(joined)  # type: ignore[return-value]


CHECK = Command(_arguments, _run, "Does the promise still hold on new rows? Exit code 1: no.")

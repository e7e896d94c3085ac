"""``setpoint plan``: which rows of an unlabelled table to label, so that few labels prove much."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._files import check_output, finish_moves, replacing_all
from setpoint.certificates import Certificate, LabelPlan, certify, label_plan
from setpoint.cli.common import (
    DONE,
    UserError,
    add_decimal,
    add_output,
    as_json,
    count,
    fraction,
    parse_goal,
    read_text,
    refuse_options,
    seed,
    tell,
)
from setpoint.tables import Chunk, TableSource, open_table, read_scores

Columns = dict[str, NDArray[Any]]

PLAN_ROW, PLAN_ORDER, LABEL = "plan_row", "plan_order", "label"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A file of scores, what is to be proved, and how many labels can be had."""
    add = parser.add_argument
    add("file", type=Path, metavar="scores.csv", help="csv or parquet, one row per example")
    add("--score", required=True, metavar="COLUMN", help="the scores: higher is more positive")
    add("--goal", required=True, help='a bound on fpr, precision or recall: "fpr <= 0.001"')
    add("--budget", type=count, default=2000, metavar="N", help="labels to ask for (2,000)")
    guess = "roughly the share of positives; it does not enter the proof (0.02)"
    add("--prevalence", type=fraction, default=0.02, metavar="SHARE", help=guess)
    known = "all rows above this threshold, fixed before they came, are labelled already"
    add("--reviewed", type=float, metavar="THRESHOLD", help=known)
    add("--seed", type=seed, default=0, help="of the random draw (0)")
    where = f"the rows to label, with an empty column {LABEL!r}; the plan goes to FILE.plan.json"
    add_output(parser, "to_label.csv", where, required=True)
    add_decimal(parser)
    add("--json", action="store_true", help="print what was done as JSON")


def run(given: argparse.Namespace) -> int:
    """Write the rows to label, and the plan that `certify --plan` needs."""
    beside = Path(f"{given.out}.plan.json")
    check_output(beside, force=given.force, inputs=[given.file])
    source = open_table(given.file, given.decimal)
    data = read_scores(source, given.score)
    tell(data.notes)
    plan = parse_goal(
        given.goal,
        lambda goal: label_plan(
            data.scores,
            goal,
            given.budget,
            prevalence=given.prevalence,
            reviewed=given.reviewed,
            seed=given.seed,
        ),
    )
    _write(source, given.out, beside, plan, force=given.force)
    how = (
        f"setpoint certify {given.file} --score {given.score} --goal {given.goal!r} "
        f"--plan {beside} --labels {given.out}"
    )
    if given.json:
        print(as_json({"rows": len(plan.rows), "out": str(given.out), "plan": str(beside)}))
    else:
        print(f"{plan}\nWritten to {given.out}. Fill in the column {LABEL!r}, then:\n  {how}")
    return DONE


def _write(source: TableSource, out: Path, beside: Path, plan: LabelPlan, *, force: bool) -> None:
    """The rows of the plan as they are, with their number, the order to label in, and no label.

    They and the plan get their names together: either is of no use with another one's.
    """
    order = {row: place for place, row in enumerate(plan.rows)}
    first = 0

    def chosen() -> Iterator[tuple[Chunk, Columns]]:
        nonlocal first
        for chunk in source.chunks():
            places = [i for i in range(len(chunk)) if first + i in order]
            rows = [first + i for i in places]
            first += len(chunk)
            if places:
                yield chunk.select(places), _columns(rows, [order[row] for row in rows])

    with replacing_all([beside, out], force=force) as (plan_file, file):
        source.write(file, out, chosen(), _columns([], []))
        plan_file.write(f"{plan.to_json()}\n".encode())


def _columns(rows: list[int], order: list[int]) -> Columns:
    return {
        PLAN_ROW: np.array(rows, np.int64),
        PLAN_ORDER: np.array(order, np.int64),
        LABEL: np.array([""] * len(rows), str),
    }


def certify_from_plan(given: argparse.Namespace) -> Certificate:
    """The certificate of ``certify scores.csv --plan FILE --labels to_label.csv``.

    Raises:
        UserError: An option that does not go with a plan, or a file that is no plan.
    """
    others = ("group", "clusters", "time", "prevalence", "unlabelled", "amounts", "id", "test")
    refuse_options(given, (*others, "old_threshold"), "without --plan, whose labels say it all")
    if given.candidates != 1 or given.guarantee != "pac":
        raise UserError("--candidates and --guarantee go without --plan.")
    if given.labels is None:
        raise UserError(
            "--plan needs --labels FILE: the rows that `setpoint plan` wrote, labelled."
        )
    finish_moves(Path(os.path.realpath(given.plan)))
    try:
        plan = LabelPlan.from_json(read_text(given.plan, "plan"))
    except (ValueError, TypeError) as error:
        raise UserError(f"{given.plan}: {error}") from None
    data = read_scores(open_table(given.file, given.decimal), given.score)
    label = LABEL if given.label is None else given.label
    rows = read_scores(
        open_table(given.labels, given.decimal),
        PLAN_ROW,
        label,
        positive=given.positive,
        one_will_do=True,
    ).labelled
    tell([*data.notes, *rows.notes])
    labels = np.full(len(data), np.nan)
    numbers = np.asarray(rows.scores)
    inside = (numbers >= 0) & (numbers < len(data)) & (numbers == np.floor(numbers))
    if not inside.all():
        wrong = numbers[~inside][0]
        raise UserError(f"{given.labels}: {PLAN_ROW} {wrong:g} is no row of {given.file}.")
    places = numbers.astype(np.int64)
    labels[places] = rows.labels
    if (labels[places] != rows.labels).any():
        twice = places[labels[places] != rows.labels][0]
        raise UserError(
            f"{given.labels}: {PLAN_ROW} {twice} is there twice, with different labels. Leave the "
            "line that is right."
        )
    found = certify(data.scores, labels, given.goal, confidence=given.confidence, plan=plan)
    return replace(found, label_names=rows.label_names)

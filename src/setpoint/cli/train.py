"""``setpoint train``: from a file to a certified model in a folder."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from setpoint._files import only_one
from setpoint.certificates import CannotPromise, goal_to_certify, refuse_trivial
from setpoint.cli.common import (
    DONE,
    NOT_PROVED,
    UserError,
    add_decimal,
    add_page_arguments,
    as_json,
    count,
    fraction,
    gap_goal,
    page_words,
    parse_goal,
    positive_number,
    seed,
    tell,
)
from setpoint.problems import Problem, as_problem, read_goal
from setpoint.rates import Bound, ClassArea
from setpoint.reports import page
from setpoint.runs import REPORT_FILE, check_free
from setpoint.runs.folder import MODEL_FILES

_RESUME = "The last finished pass is kept: the same command, with any number of processes, goes on."
_METHODS = "implicit (the default), cross_entropy, focal, weighted, resampled, ico, tfco, ..., auto"

_TAKEN = (
    *("file", "label", "positive", "group", "clusters", "time", "test", "decimal"),
    *("method", "model", "epochs", "batch_size", "learning_rate", "seed"),
    *("confidence", "accept_drift"),
)
"""Options that the recipe of a run takes as they are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A file, its columns, the goal, and how to train."""
    add = parser.add_argument
    add(
        "file",
        type=Path,
        metavar="data.csv",
        help="a table (csv, parquet, feather), or a folder of parquet files",
    )
    add("--label", required=True, metavar="COLUMN", help="the true class")
    goal = '"maximize recall subject to fpr <= 0.01" or "fpr <= 0.01"; of several classes '
    goal += '"maximize macro(recall)"'
    add("--goal", required=True, help=goal)
    add("--out", required=True, type=Path, metavar="FOLDER", help="where the run goes")
    models = "linear, mlp, boosted (trees of LightGBM), or auto (the default): a sum of these"
    kinds = [kind for kind in MODEL_FILES if kind != "stacked"]
    add("--model", choices=(*kinds, "auto"), default="auto", help=models)
    add("--method", default="implicit", metavar="NAME", help=_METHODS)
    add("--group", metavar="COLUMN", help="its values are groups: for the goal and the report")
    add("--use-protected", action="store_true", help="learn from the column --group as well")
    add("--clusters", metavar="COLUMN", help="who a row belongs to: rows of one stay together")
    add("--time", metavar="COLUMN", help="when a row came: train on the past, certify the latest")
    add("--accept-drift", action="store_true", help="with --time: certify rows that drift, too")
    add("--test", type=Path, metavar="FILE", help="rows to judge by, used for nothing else")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    columns: dict[str, Any] = {"action": "extend", "nargs": "+", "default": [], "metavar": "COLUMN"}
    add("--drop", **columns, help="do not learn from these")
    add("--keep", **columns, help="no identifiers: use them")
    add("--confidence", type=fraction, default=0.95, metavar="SHARE", help="of the proof (0.95)")
    add("--epochs", type=count, metavar="N", help="passes (default: 1,500 steps, 10 at least)")
    add("--batch-size", type=count, default=512, metavar="N", help="rows per step (512)")
    add("--learning-rate", type=positive_number, metavar="R", help="0.03 for linear, 0.01 for mlp")
    add("--seed", type=seed, default=0, metavar="N", help="of the start (0)")
    add("--no-baseline", action="store_true", help="do not train a network by cross-entropy, too")
    add("--force", action="store_true", help="replace a run that is in --out already")
    add_page_arguments(parser)
    add("--quiet", action="store_true", help="print only the certificate")
    add_decimal(parser)
    add("--json", action="store_true", help="print the certificate as JSON")


def run(given: argparse.Namespace) -> int:
    """Train, certify, write the folder, print the certificate."""
    problem = parse_goal(given.goal, as_problem)
    _check_goal(given, problem)
    if given.out.name in ("", ".."):
        raise UserError(f"--out {given.out}: name the folder itself, as in --out run.")
    inputs = [path for path in (given.file, given.test) if path is not None]
    check_free(given.out, force=given.force, inputs=inputs)  # before training, not after
    from setpoint.distributed import RankLost, is_launched, join_launched

    first = not is_launched() or os.environ["RANK"] == "0"
    told = first and not given.quiet
    if told and not isinstance(read_goal(given.goal), Problem):
        aim = f"{'maximize' if problem.maximize else 'minimize'} {problem.objective}"
        tell([f"--goal has bounds alone: {aim} is the objective."])
    training = _training(given, problem, told)
    training.recipe.check_columns()
    try:
        with (
            join_launched(_RESUME) if is_launched() else nullcontext(),
            only_one(given.out, "--out") if first else nullcontext(),
        ):
            finished = training.run()
            if first:
                shown = page(finished.result, script=not given.no_script)
                finished.write(given.out, shown.encode(), force=given.force)
                training.remove_unfinished()
                _print(given, finished.certificate)
    except KeyboardInterrupt:
        if training.unfinished.exists() and told:
            tell(["The same command goes on from the last pass."])
        raise
    except RankLost as lost:
        raise UserError(str(lost)) from None
    return NOT_PROVED if finished.certificate.exit_code else DONE


def _print(given: argparse.Namespace, certificate: Any) -> None:
    if given.json:
        told = {"run": str(given.out), "report": str(given.out / REPORT_FILE)}
        print(as_json({**told, "certificate": json.loads(certificate.to_json())}))
    else:
        print(certificate)
        print(f"\nWritten to {given.out}: {given.out / REPORT_FILE} shows it.")


def _training(given: argparse.Namespace, problem: Problem, told: bool) -> Any:
    from setpoint.runs.recipe import Recipe
    from setpoint.runs.training import Training
    from setpoint.solvers import methods_named

    methods_named(given.method, problem.kind)
    _check_trees(given)
    words = {} if problem.kind == "classes" else page_words(given)
    recipe = Recipe(
        problem=problem,
        **{name: getattr(given, name) for name in _TAKEN},
        drop=tuple(dict.fromkeys([*given.drop, *_not_learned_from(given)])),
        keep=tuple(given.keep),
        baseline=not given.no_baseline and given.method != "cross_entropy",
        notes=_hints(given) if given.time is None else (*_hints(given), *_moving(given)),
        costs=words.pop("costs", None),
        words=words,
    )
    unfinished = given.out.with_name(f".{given.out.name}.unfinished")
    say = (lambda note: tell([note])) if told else (lambda note: None)
    return Training(recipe, unfinished, say, told and sys.stderr.isatty())


def _not_learned_from(given: argparse.Namespace) -> list[str]:
    """Clusters, times, and the protected column of groups unless ``--use-protected`` is given."""
    found = [name for name in (given.clusters, given.time) if name is not None]
    if given.group is not None and not given.use_protected and given.group not in given.keep:
        found.append(given.group)
    return found


def _hints(given: argparse.Namespace) -> tuple[str, ...]:
    """Sentences on columns that look like ids of clusters or like dates, if none is named."""
    from setpoint.tables import open_table
    from setpoint.tables.related_rows import related_columns

    source = open_table(given.file, given.decimal)
    if given.clusters is not None or given.label not in source.names:
        return ()
    used = {*given.drop, given.group, given.time}
    return tuple(related_columns(source, given.label, used, dates=given.time is None))


def _moving(given: argparse.Namespace) -> tuple[str, ...]:
    """Sentences on columns that move with time within the rows."""
    from setpoint.certificates import moving_columns
    from setpoint.cli.watched_rows import read_columns
    from setpoint.tables import open_table

    source = open_table(given.file, given.decimal)
    without = {given.label, *given.drop} | ({given.clusters} - {None})
    times, columns = read_columns(source, given.time, without)
    return tuple(f"{column}." for column in moving_columns(columns, times=times))


def _check_goal(given: argparse.Namespace, problem: Problem) -> None:
    """UserError for a goal that cannot be trained for and certified, before the file is read.

    A run for two classes ends with a certificate: the goal must have bounds that can be proved, at
    one threshold. Of several classes the shifts are chosen, and what they keep is measured.
    """
    text = given.goal
    if problem.kind == "classes":
        if given.positive is not None:
            raise UserError(f"--positive is for two classes, and --goal {text!r} is about several.")
        if given.positive_name or given.negative_name or given.costs:
            raise UserError("--positive-name, --negative-name and --costs are for two classes.")
        if isinstance(problem.objective, ClassArea):
            raise UserError(
                f"--goal {text!r} is an area: it has no decisions to predict with. Name what they "
                "are judged by, as in 'maximize macro(recall)'."
            )
    else:
        _check_two(text, problem)
    columns = set(problem.columns)
    if len(columns) == 1 and given.group is None:
        (given.group,) = columns
    if columns - {given.group}:
        raise UserError(
            f"--goal {text!r} looks at groups of {', '.join(sorted(columns))}: train takes one "
            "column of groups, and --group must be that one."
        )


def _check_two(text: str, problem: Problem) -> None:
    bounds = problem.subject_to
    if not bounds or not all(isinstance(bound, Bound) for bound in bounds):
        advice = "write 'subject to' and bounds, as in 'maximize recall subject to fpr <= 0.01'"
        raise UserError(f"--goal {text!r} has no bound that can be certified: {advice}.")
    try:
        refuse_trivial(goal_to_certify(problem))
    except CannotPromise as refused:  # a bound that always or never holds, or a useless goal
        raise UserError(f"--goal {text!r}: {refused}") from None
    if problem.thresholds != 1 and gap_goal(text) is None:
        raise UserError(
            f"--goal {text!r} has several thresholds and no gap between groups: leave `with "
            "thresholds per group` out, then `setpoint certify --group` the scores."
        )


def _check_trees(given: argparse.Namespace) -> None:
    """UserError for an option of networks that trees would ignore."""
    settings = {"--epochs": given.epochs, "--learning-rate": given.learning_rate}
    settings["--method"] = None if given.method == "implicit" else given.method
    asked = next((f"{name} {value}" for name, value in settings.items() if value is not None), "")
    if given.model == "boosted" and asked:
        raise UserError(
            f"{asked} is for networks: boosted trees are grown by log-loss for as long as it falls "
            "on validation rows. Leave it out, or take --model linear, mlp or auto."
        )

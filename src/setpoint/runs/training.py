"""One run of ``setpoint train``: survey the file, read it, train, certify, write the folder.

With several ranks each one reads a range of the rows; rank 0 alone surveys the file and writes.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save
from torch import Tensor, nn

from setpoint._checks import plural, quoted, quoted_list
from setpoint._version import versions
from setpoint.axes.class_data import numbered
from setpoint.certificates import (
    Certificate,
    approvals,
    certify,
    certify_groups,
    certify_shifts,
    shifts_to_prove,
)
from setpoint.certificates.clusters import cluster_codes
from setpoint.certificates.copies import copies_between, row_digests
from setpoint.certificates.hold_out import Related
from setpoint.distributed import gather_rows, rank_of, values_of_ranks, workers
from setpoint.problems import Problem
from setpoint.results import RunResult
from setpoint.runs.fitting import CROSSED, Fitting
from setpoint.runs.folder import (
    CERTIFICATE_FILE,
    HISTORY_FILE,
    MODEL_FILES,
    REPORT_FILE,
    RUN_FILE,
    SCORES_FILE,
    Manifest,
    digest,
    write_run,
)
from setpoint.runs.model import model_bytes
from setpoint.runs.recipe import Recipe, groups_of
from setpoint.runs.result import result_of, score_arrays
from setpoint.tables import TableError, TableSource, need_column, open_table
from setpoint.tables.training_file import (
    PART_NAMES,
    DealtRows,
    Shares,
    Survey,
    TablePart,
    count_rows,
    read_all,
    read_parts,
    survey,
)
from setpoint.train import (
    score,
)

_LEAST_ROWS = {"two": 10, "several": 3}  # of each class in each part
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Finished:
    """What a run found, before it is written."""

    manifest: Manifest
    model: nn.Module
    certificate: Any
    history: list[dict[str, Any]]
    splits: dict[str, Any]
    baseline: dict[str, Any] | None
    result: RunResult

    def write(self, folder: Path, page: bytes, *, force: bool) -> None:
        """Write the folder completely or not at all; ``page`` is its report."""
        certificate = json.dumps(json.loads(self.certificate.to_json()), indent=2)
        history = (json.dumps(_finite(entry), allow_nan=False) + "\n" for entry in self.history)
        files = {
            MODEL_FILES[self.manifest.model]: model_bytes(self.model),
            CERTIFICATE_FILE: f"{certificate}\n".encode(),
            HISTORY_FILE: "".join(history).encode(),
            SCORES_FILE: save(score_arrays(self.splits, self.baseline)),
        }
        digests = {name: digest(content) for name, content in files.items()}
        files[RUN_FILE] = replace(self.manifest, files=digests).to_bytes()
        files[REPORT_FILE] = page
        write_run(folder, files, force=force)


@dataclass(frozen=True)
class Training:
    """Trains and certifies; writes nothing but checkpoints.

    With a goal about classes there is one shift per class instead of a threshold: the shifts are
    chosen on the validation part, with room for a proof of the bounds, and what they keep of the
    goal is proved, or measured, on the calibration part.

    Args:
        recipe: What to train.
        unfinished: The folder of checkpoints. Each recipe has a folder of its own in it, so that
            an unfinished run with other settings is kept.
        tell: Called with what happens, in sentences.
        progress: Whether to draw a progress line.
    """

    recipe: Recipe
    unfinished: Path
    tell: Callable[[str], None]
    progress: bool

    def run(self) -> Finished:
        """Train and certify.

        Raises:
            TableError: The file cannot be used, with the reason.
        """
        recipe = self.recipe
        self.tell(f"Reading {recipe.file}, twice: what its columns hold, then the rows.")
        shares = on_first_rank(lambda: deal_rows(recipe))
        seen = on_first_rank(lambda: self._survey(shares))
        features = f"{plural(len(seen.encoder.columns), 'column')} to learn from"
        self.tell(f"{recipe.file}: {plural(seen.rows, 'row')}, {features}.")
        for note in seen.notes:
            self.tell(f"  {note}")
        if recipe.several:
            self.tell(f"{len(seen.classes.names):,} classes in {recipe.label!r}.")
        columns = (recipe.label, seen.classes, seen.encoder)
        with ExitStack() as stack:
            source, start, rows = rank_rows(recipe.file, seen.rows, recipe.decimal)
            reading = read_parts(source, *columns, shares.dealer(start), rows, recipe.group)
            parts = dict(zip(PART_NAMES, stack.enter_context(reading), strict=True))
            for name, part in parts.items():
                self._check(name, part, seen)
            if recipe.test is not None:
                source = rank_rows_of_unknown(recipe.test, recipe.label, recipe.decimal)
                (parts["test"],) = stack.enter_context(read_all(source, *columns, recipe.group))
            tested_by = on_first_rank(lambda: clusters_of_test(recipe))
            for note in self._copies(parts):
                self.tell(f"  {note}")
                seen = replace(seen, notes=(*seen.notes, note))
            return self._train(seen, parts, shares, tested_by)

    def _copies(self, parts: dict[str, TablePart]) -> Iterator[str]:
        """A sentence if rows to certify on are copies of rows that the model is made by."""
        digests = {
            name: all_rows(part, row_digests(part.x).view(np.int64))[0].view(np.uint64)
            for name, part in parts.items()
            if name in PART_NAMES
        }
        made_by = np.concatenate([digests["train"], digests["validation"]])
        found = copies_between(parts["train"].x, made_by, digests["calibration"])
        if found is not None:
            yield (
                f"{found.rows:,} of {len(digests['calibration']):,} rows to certify on are copies "
                "of rows to train on: the certificate is about rows that the model has seen. "
                "Leave copies out, or keep them together: --clusters COLUMN."
            )

    def remove_unfinished(self) -> None:
        """Remove the checkpoints of this run; those of other settings stay."""
        for one in self.recipe.trained():
            shutil.rmtree(self.unfinished / one.key, ignore_errors=True)
        with suppress(OSError):
            self.unfinished.rmdir()

    def _survey(self, shares: Shares | DealtRows) -> Survey:
        recipe = self.recipe
        seen = survey(
            open_table(recipe.file, recipe.decimal),
            recipe.label,
            shares,
            positive=recipe.positive,
            drop=recipe.drop,
            keep=recipe.keep,
            several=recipe.several,
        )
        try:
            self._numbered(seen)
        except ValueError as error:  # the goal names a class that the file does not have
            raise TableError(recipe.file, str(error), column=recipe.label) from None
        if recipe.group in seen.encoder.names:
            note = f"the group {recipe.group!r} is learned from as well."
            seen = replace(seen, notes=(*seen.notes, note))
        elif recipe.group is not None:
            note = f"the group {recipe.group!r} is not learned from; --use-protected does."
            seen = replace(seen, notes=(*seen.notes, note))
        return replace(seen, notes=(*seen.notes, *recipe.notes))

    def _numbered(self, seen: Survey) -> Problem:
        """The goal with classes by number, as training knows them."""
        recipe = self.recipe
        return numbered(recipe.problem, seen.classes.names) if recipe.several else recipe.problem

    def _check(self, name: str, part: TablePart, seen: Survey) -> None:
        """TableError if a part lacks rows of a class, or a group that the goal names."""
        recipe, names = self.recipe, seen.classes.names
        _, labels, groups = all_rows(part)
        counts = np.bincount(labels, minlength=len(names))
        rare, few = int(np.argmin(counts)), int(counts.min())
        least = _LEAST_ROWS["several" if recipe.several else "two"]
        if few < least:
            kind, cure = f"of {quoted(names[rare])}", ". Join rare classes, or remove their rows."
            if not recipe.several:
                kind = "positives" if rare else "negatives"
                cure = " that anything can be said about."
            problem = f"too few rows: the {name} part has {few} {kind}, and {least} is the least"
            raise TableError(recipe.file, f"{problem}{cure}", column=recipe.label)
        asked = {value for where in recipe.problem.slices for _, value in where}
        there = set() if groups is None else set(groups.tolist())
        for value in asked - there:
            wrong = f"the goal asks about {quoted(value)}, which the {name} part does not have; "
            wrong += f"it has {quoted_list(sorted(there))}."
            raise TableError(recipe.file, wrong, column=recipe.group)

    def _train(
        self,
        seen: Survey,
        parts: dict[str, TablePart],
        shares: Shares | DealtRows,
        tested_by: NDArray[Any] | None,
    ) -> Finished:
        outputs = len(seen.classes.names) if self.recipe.several else 1
        more = (self.unfinished, self.tell, self.progress)
        fitting = Fitting(self.recipe, self._numbered(seen), outputs, *more)
        name, best, unseen = fitting.fit(parts, shares)
        recipe, model = self.recipe.of_model(name), best.model
        history = [{**entry, "method": best.name} for entry in best.fitted[best.name].history]
        splits = {n: all_rows(p, part_scores(model, p)) for n, p in parts.items()}
        if unseen is not None:
            cut = len(parts["train"])
            for n, scores in (("train", unseen[:cut]), ("validation", unseen[cut:])):
                splits[n] = (scores, *splits[n][1:])
            seen = replace(seen, notes=(*seen.notes, CROSSED))
        baseline = None
        if recipe.baseline:
            self.tell("Training the same with cross_entropy, to compare.")
            other = fitting.baseline(name, parts).model
            baseline = {n: all_rows(p, part_scores(other, p))[0] for n, p in parts.items()}
        manifest = self._manifest(recipe, seen)
        chosen_on = splits["validation"]
        if unseen is not None:
            chosen_on = _joined_rows(splits["train"], chosen_on)
        certificate, note = self._certify(
            manifest.classes, chosen_on, splits["calibration"], shares
        )
        if "test" in splits:
            scores, labels, column = splits["test"]
            groups = groups_of(self.recipe.problem, self.recipe.group, column)
            certificate = certificate.tested_on(scores, labels, groups=groups, clusters=tested_by)
        if isinstance(certificate, Certificate):
            certificate = replace(certificate, label_names=manifest.label_names.both)
        if recipe.group is not None and isinstance(certificate, Certificate):
            self._tell_approvals(certificate, splits)
        if note:
            self.tell(note)
            manifest = replace(manifest, notes=(*manifest.notes, note))
        result = result_of(manifest, certificate, history, splits, baseline)
        return Finished(manifest, model, certificate, history, splits, baseline, result)

    def _tell_approvals(self, certificate: Certificate, splits: dict[str, Any]) -> None:
        """Say what share of each group is above the threshold, on the rows nearest to new ones."""
        name = "test" if "test" in splits else "calibration"
        for note in approvals(
            certificate, str(self.recipe.group), *splits[name], rows=f" ({name} rows)"
        ):
            self.tell(note)

    def _manifest(self, recipe: Recipe, seen: Survey) -> Manifest:
        names = seen.classes.names
        negative, positive = ("", "") if recipe.several else names
        return Manifest(
            goal=str(recipe.problem),
            label=recipe.label,
            negative=negative,
            positive=positive,
            method=recipe.method,
            model=recipe.model,
            hidden=recipe.hidden,
            seed=recipe.seed,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            encoder=seen.encoder,
            group=recipe.group,
            classes=names if recipe.several else (),
            versions=versions(),
            notes=seen.notes,
            words=recipe.words,
            costs=recipe.costs,
        )

    def _certify(
        self, classes: tuple[str, ...], chosen_on: Any, proved_on: Any, shares: Shares | DealtRows
    ) -> tuple[Any, str | None]:
        """The certificate from rows that nothing else has used, and a note on the shifts."""
        problem, group = self.recipe.problem, self.recipe.group
        given: dict[str, Any] = {"confidence": self.recipe.confidence}
        scores, labels, column = proved_on
        related: dict[str, Any] = {"groups": groups_of(problem, group, column)}
        related |= dict(zip(("clusters", "times"), shares.known("calibration"), strict=True))
        if problem.kind == "groups":
            given |= {"times": related.get("times"), "accept_drift": self.recipe.accept_drift}
            given |= {"column": str(group), "clusters": (None, related.get("clusters"))}
            return certify_groups(problem, chosen_on, proved_on, **given), None
        if not classes:
            given |= {"accept_drift": self.recipe.accept_drift}
            return certify(scores, labels, problem, **related, **given), None
        given["classes"] = classes
        seen, truth, column = chosen_on
        groups = groups_of(problem, group, column)
        shifts, missed = shifts_to_prove(problem, seen, truth, groups=groups, **given)
        return certify_shifts(scores, labels, problem, shifts, **related, **given), missed


def deal_rows(recipe: Recipe) -> Shares | DealtRows:
    """Which rows go to which part: by lot, or as their clusters and times want it.

    Raises:
        TableError: An id or a time is missing or cannot be read, or all are the same.
    """
    shares = Shares(recipe.seed)
    columns = {"--clusters": recipe.clusters, "--time": recipe.time}
    named = {option: name for option, name in columns.items() if name is not None}
    if not named:
        return shares
    source = open_table(recipe.file, recipe.decimal)
    wanted = [need_column(source, name, option) for option, name in named.items()]
    labelled: list[NDArray[Any]] = []
    texts: dict[str, list[NDArray[Any]]] = {name: [] for name in wanted}
    for chunk in source.chunks([recipe.label, *wanted]):
        labelled.append(~chunk.absent(recipe.label))
        for name in wanted:
            texts[name].append(chunk.texts(name))
    known = {name: np.concatenate(found) for name, found in texts.items() if found}
    ids, times = (known.get(name or "") for name in (recipe.clusters, recipe.time))
    random = np.random.RandomState(recipe.seed)
    parts = np.full(sum(map(len, labelled)), -1, np.int64)
    try:
        related = Related.read(ids, times, parts)
        rest, certified = related.hold_out(shares.calibration, random)
        past = related.part(rest)
        train, chosen = past.hold_out(shares.validation / (1 - shares.calibration), random)
    except ValueError as error:
        why = str(error).replace("order=", "--time")
        raise TableError(recipe.file, f"{' and '.join(named)}: {why}") from None
    parts[rest[train]], parts[rest[chosen]], parts[certified] = 0, 1, 2
    return DealtRows(parts, np.concatenate(labelled), *related)


def clusters_of_test(recipe: Recipe) -> NDArray[Any] | None:
    """Who each row of the test file belongs to, of those with a label; None if nobody asked.

    Raises:
        TableError: An id is missing, or all are the same.
    """
    if recipe.test is None or recipe.clusters is None:
        return None
    source = open_table(recipe.test, recipe.decimal)
    column = need_column(source, recipe.clusters, "--clusters")
    chunks = source.chunks([recipe.label, column])
    found = np.concatenate([c.with_value(recipe.label).texts(column) for c in chunks])
    try:
        cluster_codes(found)
    except ValueError as error:
        raise TableError(recipe.test, f"--clusters: {error}") from None
    return found


def part_scores(model: nn.Module, part: TablePart) -> NDArray[np.float32]:
    """The scores of a part, in the precision that decisions are made in."""
    found: Tensor = score(model, torch.from_numpy(part.x))
    return found.numpy().astype(np.float32, copy=False)


def on_first_rank(look: Callable[[], _Found]) -> _Found:
    """What ``look`` returns on rank 0, on all ranks; an error on rank 0 is one on all ranks."""
    if workers() == 1:
        return look()
    found: _Found | None = None
    trouble = None
    if rank_of() == 0:
        try:
            found = look()
        except (OSError, ValueError) as error:
            trouble = error
    told, answer = values_of_ranks((None if trouble is None else str(trouble), found))[0]
    if trouble is not None:
        raise trouble
    if told is not None:
        raise ValueError(f"rank {rank_of()} stops with rank 0: {told}")
    result: _Found = answer
    return result


def rank_rows(file: Path, rows: int, decimal: str | None = None) -> tuple[TableSource, int, int]:
    """The part of a table of ``rows`` rows that this rank reads: its first row, how many."""
    start, stop = (rank * rows // workers() for rank in (rank_of(), rank_of() + 1))
    return open_table(file, decimal).between(start, stop), start, stop - start


def rank_rows_of_unknown(file: Path, label: str, decimal: str | None = None) -> TableSource:
    """The part that this rank reads of a table whose length is not known yet."""
    source = open_table(file, decimal)
    if workers() == 1:
        return source
    return rank_rows(file, on_first_rank(lambda: count_rows(source, label)), decimal)[0]


def all_rows(part: TablePart, scores: Any = None) -> tuple[Any, Any, Any]:
    """Scores, labels and groups of a part from all ranks, in the order of the file."""
    found, _, _ = gather_rows({"scores": scores, "y": part.y, "groups": part.groups})
    return found["scores"], found["y"], found["groups"]


def _joined_rows(*parts: Any) -> tuple[Any, ...]:
    """Scores, labels and groups of several parts as one."""
    columns = zip(*parts, strict=True)
    return tuple(None if c[0] is None else np.concatenate(c) for c in columns)


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """The same with None for NaN and infinities, which JSON does not have."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in entry.items()
    }

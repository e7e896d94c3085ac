"""One run of ``setpoint train``: survey the file, read it, train, certify, write the folder."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save
from torch import nn

from setpoint._checks import plural, quoted, quoted_list
from setpoint.axes.class_data import numbered
from setpoint.certificates import certify, certify_shifts, shifts_to_prove
from setpoint.problems import Problem
from setpoint.results import RunResult
from setpoint.runs.folder import (
    CERTIFICATE_FILE,
    HISTORY_FILE,
    MODEL_FILE,
    REPORT_FILE,
    RUN_FILE,
    SCORES_FILE,
    write_folder,
)
from setpoint.runs.manifest import Manifest, digest, versions
from setpoint.runs.model import model_bytes
from setpoint.runs.result import result_of, score_arrays
from setpoint.runs.training import (
    RunRecipe,
    Trained,
    Watch,
    all_rows,
    groups_of,
    on_first_rank,
    part_scores,
    rank_rows,
    rank_rows_of_unknown,
    train_model,
)
from setpoint.tables import TableError, need_column, open_table
from setpoint.tables.training_file import (
    PART_NAMES,
    Shares,
    Survey,
    TablePart,
    read_all,
    read_parts,
    survey,
)

_LEAST_ROWS = {"two": 10, "several": 3}  # of each class in each part


@dataclass(frozen=True)
class Finished:
    """What a session found, before it is written."""

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
        history = "".join(
            json.dumps(_finite(entry), allow_nan=False) + "\n" for entry in self.history
        )
        files = {
            MODEL_FILE: model_bytes(self.model),
            CERTIFICATE_FILE: f"{certificate}\n".encode(),
            HISTORY_FILE: history.encode(),
            SCORES_FILE: save(score_arrays(self.splits, self.baseline)),
        }
        digests = {name: digest(content) for name, content in files.items()}
        files[RUN_FILE] = replace(self.manifest, files=digests).to_bytes()
        files[REPORT_FILE] = page
        write_folder(folder, files, force=force)


@dataclass(frozen=True)
class Session:
    """What ``setpoint train`` was asked for; :meth:`run` does it and writes nothing.

    With a goal about classes there is one shift per class instead of a threshold: the shifts are
    chosen on the validation part, with room for a proof of the bounds, and what they keep of the
    goal is proved, or measured, on the calibration part.
    """

    file: Path
    label: str
    recipe: RunRecipe
    test: Path | None
    positive: str | None
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    confidence: float
    baseline: bool
    watch: Watch

    @property
    def problem(self) -> Problem:
        """The goal, with classes as the file names them."""
        return self.recipe.problem

    @property
    def group(self) -> str | None:
        """The column of groups."""
        return self.recipe.group

    @property
    def several(self) -> bool:
        """Whether the goal is about classes."""
        return self.problem.kind == "classes"

    def check_columns(self) -> None:
        """TableError for a file that is not there, or a column that it lacks; reads no row."""
        for path in (self.file, self.test):
            if path is not None:
                source = open_table(path)
                need_column(source, self.label, "--label")
                if self.group is not None:
                    need_column(source, self.group, "--group")

    def run(self) -> Finished:
        """Train and certify.

        Raises:
            TableError: The file cannot be used, with the reason.
        """
        self.watch.tell(f"Reading {self.file}, twice: what its columns hold, then the rows.")
        shares = Shares(self.recipe.seed)
        seen = on_first_rank(lambda: self._survey(shares))
        self._introduce(seen)
        columns = (self.label, seen.classes, seen.encoder)
        with ExitStack() as stack:
            own = rank_rows(self.file, seen.rows)
            reading = read_parts(own, *columns, shares.dealer(own.start), len(own), self.group)
            parts = dict(zip(PART_NAMES, stack.enter_context(reading), strict=True))
            for name, part in parts.items():
                self._check(name, part, seen)
            if self.test is not None:
                rows = rank_rows_of_unknown(self.test, self.label)
                (parts["test"],) = stack.enter_context(read_all(rows, *columns, self.group))
            return self._train(seen, parts)

    def _survey(self, shares: Shares) -> Survey:
        seen = survey(
            open_table(self.file),
            self.label,
            shares,
            positive=self.positive,
            drop=self.drop,
            keep=self.keep,
            several=self.several,
        )
        try:
            self._numbered(seen)
        except ValueError as error:  # the goal names a class that the file does not have
            raise TableError(self.file, str(error), column=self.label) from None
        if self.group in seen.encoder.names:
            note = f"the group {self.group!r} is learned from as well; --drop leaves it out."
            seen = replace(seen, notes=(*seen.notes, note))
        return seen

    def _numbered(self, seen: Survey) -> Problem:
        """The goal with classes by number, as training knows them."""
        return numbered(self.problem, seen.classes.names) if self.several else self.problem

    def _introduce(self, seen: Survey) -> None:
        features = f"{plural(len(seen.encoder.columns), 'column')} to learn from"
        self.watch.tell(f"{self.file}: {plural(seen.rows, 'row')}, {features}.")
        for note in seen.notes:
            self.watch.tell(f"  {note}")
        if self.several:
            self.watch.tell(f"{len(seen.classes.names):,} classes in {self.label!r}.")

    def _check(self, name: str, part: TablePart, seen: Survey) -> None:
        """TableError if a part lacks rows of a class, or a group that the goal names."""
        _, labels, groups = all_rows(part)
        counts = np.bincount(labels, minlength=len(seen.classes.names))
        rare, few = int(np.argmin(counts)), int(counts.min())
        least = _LEAST_ROWS["several" if self.several else "two"]
        if few < least and self.several:
            problem = f"too few rows: the {name} part has {few} of "
            problem += f"{quoted(seen.classes.names[rare])}, and {least} is the least. Join rare "
            problem += "classes, or remove their rows."
            raise TableError(self.file, problem, column=self.label)
        if few < least:
            kind = "positives" if counts[1] == few else "negatives"
            problem = f"too few rows: the {name} part has {few} {kind}, and {least} is the least"
            raise TableError(self.file, f"{problem} that anything can be said about.")
        asked = {value for where in self.problem.slices for _, value in where}
        there = set() if groups is None else set(groups.tolist())
        for value in asked - there:
            wrong = f"the goal asks about {quoted(value)}, which the {name} part does not have; "
            wrong += f"it has {quoted_list(sorted(there))}."
            raise TableError(self.file, wrong, column=self.group)

    def _train(self, seen: Survey, parts: dict[str, TablePart]) -> Finished:
        outputs = len(seen.classes.names) if self.several else 1
        recipe = replace(self.recipe, problem=self._numbered(seen), outputs=outputs)
        train, validation = parts["train"], parts["validation"]
        steps = f"{recipe.steps(train):,} steps"
        self.watch.tell(f"Training {recipe.model} with {recipe.method}: {steps}.")
        trained = train_model(recipe, train, validation, self.watch)
        splits = {n: all_rows(p, part_scores(trained.model, p)) for n, p in parts.items()}
        baseline = None
        if self.baseline:
            self.watch.tell("Training the same with cross_entropy, to compare.")
            other = replace(recipe, method="cross_entropy")
            theirs = train_model(other, train, validation, self.watch)
            baseline = {n: all_rows(p, part_scores(theirs.model, p))[0] for n, p in parts.items()}
        return self._finish(self._manifest(seen), trained, splits, baseline)

    def _manifest(self, seen: Survey) -> Manifest:
        names = seen.classes.names
        negative, positive = ("", "") if self.several else names
        return Manifest(
            goal=str(self.problem),
            label=self.label,
            negative=negative,
            positive=positive,
            method=self.recipe.method,
            model=self.recipe.model,
            hidden=self.recipe.hidden,
            seed=self.recipe.seed,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            encoder=seen.encoder,
            group=self.group,
            classes=names if self.several else (),
            versions=versions(),
            notes=seen.notes,
        )

    def _finish(
        self,
        manifest: Manifest,
        trained: Trained,
        splits: dict[str, Any],
        baseline: dict[str, Any] | None,
    ) -> Finished:
        certificate, note = self._certify(manifest.classes, splits)
        if note:
            self.watch.tell(note)
            manifest = replace(manifest, notes=(*manifest.notes, note))
        result = result_of(manifest, certificate, trained.history, splits, baseline)
        return Finished(
            manifest, trained.model, certificate, trained.history, splits, baseline, result
        )

    def _certify(self, classes: tuple[str, ...], splits: dict[str, Any]) -> tuple[Any, str | None]:
        """The certificate from rows that nothing else has used, and a note on the shifts."""
        scores, labels, column = splits["calibration"]
        groups = groups_of(self.problem, self.group, column)
        if not classes:
            options: dict[str, Any] = {"confidence": self.confidence, "groups": groups}
            return certify(scores, labels, self.problem, **options), None
        given: dict[str, Any] = {"classes": classes, "confidence": self.confidence}
        seen, truth, column = splits["validation"]
        chosen_on = groups_of(self.problem, self.group, column)
        shifts, missed = shifts_to_prove(self.problem, seen, truth, groups=chosen_on, **given)
        return certify_shifts(scores, labels, self.problem, shifts, groups=groups, **given), missed


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """The same with None for NaN and infinities, which JSON does not have."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in entry.items()
    }

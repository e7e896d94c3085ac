"""One run of ``setpoint train``: look, read, train, certify. Two passes over the file."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from setpoint._checks import plural
from setpoint.certificates import certify
from setpoint.runs.asked import Asked
from setpoint.runs.finished import Finished, versions
from setpoint.runs.manifest import Manifest
from setpoint.runs.result import result_of
from setpoint.runs.training import (
    Recipe,
    Trained,
    by_first,
    check_both,
    check_groups,
    groups_of,
    own_rows,
    own_share,
    scores_of,
    train_model,
    whole,
)
from setpoint.tables import Classes, open_table
from setpoint.tables.training_file import PARTS, Part, Shares, Survey, read_all, read_parts, survey
from setpoint.train.networks import HIDDEN, LEARNING_RATES


class Session(Asked):
    """What was asked for; :meth:`run` does it and writes nothing."""

    def run(self) -> Finished:
        """Train and certify.

        Raises:
            TableError: The file cannot be used, with the reason.
        """
        self.watch.tell(f"Reading {self.file}, twice: what its columns hold, then the rows.")
        shares = Shares(self.seed)
        seen = by_first(lambda: self._survey(shares))
        if self.group in seen.encoder.names:
            note = f"the group {self.group!r} is learned from as well; --drop leaves it out."
            seen = replace(seen, notes=(*seen.notes, note))
        self._introduce(seen)
        columns = (self.label, seen.classes, seen.encoder)
        with ExitStack() as stack:
            own = own_rows(open_table(self.file), seen.rows)
            reading = read_parts(own, *columns, shares.dealer(own.start), len(own), self.group)
            parts = dict(zip(PARTS, stack.enter_context(reading), strict=True))
            self._check(seen, parts)
            if self.test is not None:
                reading = read_all(own_share(self.test, self.label), *columns, self.group)
                (parts["test"],) = stack.enter_context(reading)
            return self._train(seen, parts)

    def _survey(self, shares: Shares) -> Survey:
        return survey(
            open_table(self.file),
            self.label,
            shares,
            positive=self.positive,
            drop=self.drop,
            keep=self.keep,
        )

    def _train(self, seen: Survey, parts: dict[str, Part]) -> Finished:
        recipe = self._recipe(seen)
        train, validation = parts["train"], parts["validation"]
        self.watch.tell(f"Training {self.model} with {self.method}: {recipe.steps(train):,} steps.")
        trained = train_model(recipe, train, validation, self.watch)
        splits = {n: whole(p, scores_of(trained.model, p)) for n, p in parts.items()}
        baseline = None
        if self.baseline:
            self.watch.tell("Training the same with cross_entropy, to compare.")
            other = replace(recipe, method="cross_entropy")
            theirs = train_model(other, train, validation, self.watch)
            baseline = {n: whole(p, scores_of(theirs.model, p))[0] for n, p in parts.items()}
        manifest = self._manifest(seen, recipe)
        return self._finish(manifest, recipe, trained, splits, baseline)

    def _recipe(self, seen: Survey) -> Recipe:
        return Recipe(
            problem=self.problem,
            method=self.method,
            model=self.model,
            hidden=HIDDEN if self.model == "mlp" else 0,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate or LEARNING_RATES[self.model],
            seed=self.seed,
            group=self.group,
        )

    def _finish(
        self,
        manifest: Manifest,
        recipe: Recipe,
        trained: Trained,
        splits: dict[str, Any],
        baseline: dict[str, Any] | None,
    ) -> Finished:
        """Certify the threshold, on rows that nothing has looked at."""
        scores, labels, column = splits["calibration"]
        groups = groups_of(self.problem, self.group, column)
        certificate = certify(
            scores, labels, self.problem, confidence=self.confidence, groups=groups
        )
        result = result_of(manifest, certificate, trained.history, splits, baseline)
        return Finished(
            manifest, trained.model, certificate, trained.history, splits, baseline, result
        )

    def _manifest(self, seen: Survey, recipe: Recipe) -> Manifest:
        two = seen.classes if isinstance(seen.classes, Classes) else Classes("", "")
        return Manifest(
            goal=str(self.problem),
            label=self.label,
            negative=two.negative,
            positive=two.positive,
            method=self.method,
            model=self.model,
            hidden=recipe.hidden,
            seed=self.seed,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            encoder=seen.encoder,
            group=self.group,
            versions=versions(),
            notes=seen.notes,
        )

    def _introduce(self, seen: Survey) -> None:
        features = f"{plural(len(seen.encoder.columns), 'column')} to learn from"
        self.watch.tell(f"{self.file}: {plural(seen.rows, 'row')}, {features}.")
        for note in seen.notes:
            self.watch.tell(f"  {note}")

    def _check(self, seen: Survey, parts: dict[str, Part]) -> None:
        for name, part in parts.items():
            _, labels, groups = whole(part)
            check_both(self.file, name, labels)
            check_groups(self.file, self.problem, self.group, name, groups)

"""One run of ``setpoint train`` for a goal about several classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from setpoint._checks import plural
from setpoint.axes.class_data import numbered
from setpoint.certificates import certify_shifts, shifts_to_prove
from setpoint.runs.finished import Finished
from setpoint.runs.manifest import Manifest
from setpoint.runs.result import result_of
from setpoint.runs.session import Session
from setpoint.runs.training import Recipe, Trained, check_groups, check_several, groups_of, whole
from setpoint.tables import TableError, open_table
from setpoint.tables.labels import Several
from setpoint.tables.training_file import Part, Shares, Survey, survey


class ClassSession(Session):
    """As :class:`Session`, with one shift for each class.

    The shifts are chosen on the validation part, with room for a proof of the bounds; what they
    keep of the goal is proved, or measured, on the calibration part.
    """

    def _survey(self, shares: Shares) -> Survey:
        source = open_table(self.file)
        how: dict[str, Any] = {"drop": self.drop, "keep": self.keep, "several": True}
        seen = survey(source, self.label, shares, **how)
        try:
            numbered(self.problem, names_of(seen))
        except ValueError as error:  # the goal names a class that the file does not have
            raise TableError(self.file, str(error), column=self.label) from None
        return seen

    def _introduce(self, seen: Survey) -> None:
        super()._introduce(seen)
        self.watch.tell(f"{plural(len(names_of(seen)), 'class')[:-1]}es in {self.label!r}.")

    def _check(self, seen: Survey, parts: dict[str, Part]) -> None:
        for name, part in parts.items():
            _, labels, groups = whole(part)
            check_several(self.file, self.label, name, labels, names_of(seen))
            check_groups(self.file, self.problem, self.group, name, groups)

    def _recipe(self, seen: Survey) -> Recipe:
        names = names_of(seen)
        problem = numbered(self.problem, names)
        return replace(super()._recipe(seen), problem=problem, outputs=len(names))

    def _manifest(self, seen: Survey, recipe: Recipe) -> Manifest:
        return replace(super()._manifest(seen, recipe), classes=names_of(seen))

    def _finish(
        self,
        manifest: Manifest,
        recipe: Recipe,
        trained: Trained,
        splits: dict[str, Any],
        baseline: dict[str, Any] | None,
    ) -> Finished:
        """Choose the shifts, then see what they keep on rows that nothing has looked at."""
        scores, labels, column = splits["validation"]
        given: dict[str, Any] = {"classes": manifest.classes, "confidence": self.confidence}
        groups = self._groups(column)
        shifts, missed = shifts_to_prove(self.problem, scores, labels, groups=groups, **given)
        scores, labels, column = splits["calibration"]
        groups = self._groups(column)
        certificate = certify_shifts(scores, labels, self.problem, shifts, groups=groups, **given)
        if missed:
            self.watch.tell(missed)
            manifest = replace(manifest, notes=(*manifest.notes, missed))
        result = result_of(manifest, certificate, trained.history, splits, baseline)
        return Finished(
            manifest, trained.model, certificate, trained.history, splits, baseline, result
        )

    def _groups(self, column: Any) -> dict[str, Any] | None:
        return groups_of(self.problem, self.group, column)


def names_of(seen: Survey) -> tuple[str, ...]:
    """The classes of a file."""
    assert isinstance(seen.classes, Several)
    return seen.classes.names

"""What ``setpoint train`` was asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from setpoint.problems import Problem
from setpoint.tables import need_column, open_table
from setpoint.train import HIDDEN
from setpoint.train.boosted_trees import LOG_LOSS
from setpoint.train.cross_fitting import FOLDS
from setpoint.train.stacking import STACKED, kinds_of_auto


@dataclass(frozen=True)
class Recipe:
    """What ``setpoint train`` was asked for."""

    file: Path
    label: str
    problem: Problem
    method: str = "implicit"
    model: str = "auto"
    epochs: int | None = None
    batch_size: int = 512
    learning_rate: float | None = None
    seed: int = 0
    group: str | None = None
    test: Path | None = None
    positive: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    confidence: float = 0.95
    baseline: bool = True
    clusters: str | None = None
    """The column that says which rows belong together: they stay in one part."""
    time: str | None = None
    """The column that says when a row was measured: the latest rows certify."""
    accept_drift: bool = False
    decimal: str | None = None
    """The decimal mark, ``point`` or ``comma``, where numbers do not show it."""
    notes: tuple[str, ...] = ()
    """Sentences for the report, on what was found in the file."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What the page calls a positive, the others and the action: positive, negative, action."""
    costs: tuple[float, float] | None = None
    """What a miss and a false alarm cost, for the page."""
    fold: int | None = None
    """Of a model that is cross-fitted, the fold that it does not learn from."""

    @property
    def several(self) -> bool:
        """Whether the goal is about classes."""
        return self.problem.kind == "classes"

    @property
    def models(self) -> tuple[str, ...]:
        """The kinds of model to train."""
        return kinds_of_auto(self.method) if self.model == "auto" else (self.model,)

    @property
    def hidden(self) -> int:
        """Units of the hidden layer; 0 without one."""
        return HIDDEN if self.model in ("mlp", STACKED) else 0

    @property
    def key(self) -> str:
        """The method, and a digest of the settings that decide the numbers."""
        decide = (self.problem, self.model, self.epochs, self.batch_size, self.learning_rate)
        more = (self.clusters, self.time, self.decimal, self.fold)
        related = [name for name in more if name is not None]
        text = "\n".join(map(str, (*decide, self.seed, self.group, *related)))
        return f"{self.method}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def check_columns(self) -> None:
        """TableError for a file that is not there, or a column that it lacks; reads no row."""
        for path in (self.file, self.test):
            if path is not None:
                source = open_table(path, self.decimal)
                need_column(source, self.label, "--label")
                for option, name in (("--group", self.group), ("--clusters", self.clusters)):
                    if name is not None:
                        need_column(source, name, option)

    def of_model(self, model: str) -> Recipe:
        """The same for one kind of model; a network alone is compared with cross-entropy."""
        method = LOG_LOSS if model == "boosted" else self.method
        alone = self.baseline and model not in ("boosted", STACKED)
        return replace(self, model=model, method=method, baseline=alone)

    def trained(self) -> Iterator[Recipe]:
        """Those of every model that may be trained, each with a folder for checkpoints."""
        for model in self.models:
            for method in (self.method, "cross_entropy"):
                for fold in (None, *range(FOLDS)) if self.model == "auto" else (None,):
                    yield replace(self, model=model, method=method, fold=fold)


def groups_of(problem: Problem, group: str | None, column: Any) -> dict[str, Any] | None:
    """The group column by its name, or None if the goal is about no group."""
    return {group: column} if any(problem.slices) and group is not None else None

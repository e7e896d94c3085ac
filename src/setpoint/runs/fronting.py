"""``setpoint front``: models between two wishes, from a file.

Without groups the two are the losses on positives and on negatives: misses against false alarms.
With groups they are the loss on everyone and the squared covariance of score and group, which is
zero for a score that does not know the group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.pareto import Front, pareto_front
from setpoint.problems import Problem
from setpoint.rates import coverage, error, fnr, fpr
from setpoint.runs.model import build_model
from setpoint.solvers import cross_entropy
from setpoint.tables import TableError, need_column, open_table
from setpoint.tables.errors import listed
from setpoint.tables.parts import Part, read_parts
from setpoint.tables.survey import Shares, survey
from setpoint.train import score
from setpoint.train.named import HIDDEN, LEARNING_RATES

VALIDATION = 0.25
"""The share of rows that only measures."""


@dataclass(frozen=True)
class FrontSession:
    """What the user asked for; :meth:`run` trains, and a run that was stopped goes on."""

    file: Path
    out: Path
    label: str
    group: str | None
    positive: str | None
    drop: tuple[str, ...]
    model: str
    points: int
    steps: int
    batch_size: int
    seed: int
    progress: bool

    def run(self) -> Front:
        """Read, train every point, write each as it is done."""
        source, shares = open_table(self.file), Shares(self.seed, VALIDATION, 0.0)
        if self.group is not None:
            need_column(source, self.group, "--group")
        drop = (*self.drop, *(() if self.group is None else (self.group,)))
        seen = survey(source, self.label, shares, positive=self.positive, drop=drop)
        columns = (self.label, seen.classes, seen.encoder)
        reading = read_parts(source, *columns, shares.dealer(), seen.rows, self.group, parts=2)
        with reading as (train, held_out):
            self._check(train, held_out)
            width, hidden = seen.encoder.width, HIDDEN if self.model == "mlp" else 0
            return pareto_front(
                lambda: build_model(self.model, width, hidden, self.seed),
                misses_and_alarms if self.group is None else loss_and_unfairness,
                self._tensors(train),
                points=self.points,
                steps=self.steps,
                batch_size=self.batch_size,
                learning_rate=LEARNING_RATES[self.model],
                seed=self.seed,
                measure=self._measure(held_out),
                folder=self.out,
                progress=self.progress,
            )

    def _tensors(self, part: Part) -> tuple[Tensor, ...]:
        x, y = torch.from_numpy(part.x), torch.from_numpy(part.y)
        if part.groups is None:
            return x, y
        return x, y, torch.from_numpy(part.groups == sorted(set(part.groups))[1])

    def _measure(self, part: Part) -> Callable[[nn.Module], dict[str, float]]:
        """Rates of decisions at a score of 0, on rows that trained nothing."""
        x, y = torch.from_numpy(part.x), part.y

        def measure(model: nn.Module) -> dict[str, float]:
            scores = score(model, x).numpy()
            if part.groups is None:
                rates = {"fnr": fnr, "fpr": fpr}
                return {n: _at_zero(Problem(minimize=r), scores, y) for n, r in rates.items()}
            column = str(self.group)
            a, b = (coverage.on(**{column: str(g)}) for g in sorted(set(part.groups)))
            gap = Problem(minimize=abs(a - b))
            return {
                "error": _at_zero(Problem(minimize=error), scores, y),
                "coverage gap": _at_zero(gap, scores, y, {column: part.groups}),
            }

        return measure

    def _check(self, *parts: Part) -> None:
        for part in parts:
            if not 0 < part.y.sum() < len(part):
                raise TableError(self.file, "too few rows: a part of them has one class only.")
            groups = set() if part.groups is None else set(part.groups.tolist())
            if part.groups is not None and len(groups) != 2:
                problem = (
                    f"a front is between two groups; this column has {listed(sorted(groups))}."
                )
                raise TableError(self.file, problem, column=self.group)


def misses_and_alarms(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Cross-entropy on the positives, and on the negatives."""
    scores, positive = model(x).squeeze(-1), y.to(x.dtype)
    return {
        "misses": cross_entropy(scores, y, positive),
        "false alarms": cross_entropy(scores, y, 1 - positive),
    }


def loss_and_unfairness(model: nn.Module, x: Tensor, y: Tensor, group: Tensor) -> dict[str, Tensor]:
    """Cross-entropy, and the squared covariance of score and group."""
    scores, member = model(x).squeeze(-1), group.to(x.dtype)
    covariance = ((member - member.mean()) * scores).mean()
    return {"loss": cross_entropy(scores, y), "unfairness": covariance**2}


def _at_zero(problem: Problem, scores: Any, labels: Any, groups: Any = None) -> float:
    return float(problem.evaluate(scores, labels, thresholds=0.0, groups=groups))

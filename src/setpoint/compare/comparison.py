"""All trials of a comparison, summed up a method a row. No row hides a failure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.compare.trial import Trial
from setpoint.compare.words import AT_RATE, DIVERGING, MISSED, OK, is_judged
from setpoint.problems import Problem
from setpoint.results import Summary, gain, summarize


@dataclass(frozen=True)
class Row:
    """One method over all seeds.

    Attributes:
        method: Its name.
        value: The goal's metric on the test parts, where there is one.
        gain: How much better than the first method, paired by seed; None for the first itself and
            where no seed has both.
        ms_per_step: Median over the seeds.
        missed: In how many seeds the validation threshold missed a target: broke a bound, or ended
            more than two standard errors from a setpoint.
        judged: In how many it could have; none of an area, which has no target to carry.
        failed: In how many seeds there is no value at all.
        trouble: The first and gravest failure in words, or empty.
    """

    method: str
    value: Summary | None
    gain: Summary | None
    ms_per_step: float
    missed: int
    judged: int
    failed: int
    trouble: str


@dataclass(frozen=True)
class Comparison:
    """What :func:`setpoint.compare` returns; ``print`` it, or read ``rows`` and ``trials``."""

    problem: Problem
    trials: tuple[Trial, ...]
    labels: Mapping[int, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def rows(self) -> list[Row]:
        """One for each method, in the order they were asked for."""
        names = dict.fromkeys(trial.method for trial in self.trials)
        first = self._values(next(iter(names)))
        return [self._row(name, first if place else None) for place, name in enumerate(names)]

    @property
    def best(self) -> str | None:
        """The method with the best mean on validation, which a user may look at; None if none."""
        means = {}
        for row in self.rows:
            known = [t.validation for t in self.trials if t.method == row.method]
            if not row.failed and all(v is not None for v in known):
                means[row.method] = float(np.mean([v for v in known if v is not None]))
        pick = max if self.problem.maximize else min
        return pick(means, key=lambda name: means[name]) if means else None

    def _values(self, method: str) -> dict[int, float]:
        mine = (t for t in self.trials if t.method == method and t.value is not None)
        return {t.seed: t.value for t in mine if t.value is not None}

    def _row(self, name: str, first: dict[int, float] | None) -> Row:
        mine = [t for t in self.trials if t.method == name]
        values = self._values(name)
        better = None
        if first is not None:
            both = [seed for seed in values if seed in first]
            if both:
                pair = [values[s] for s in both], [first[s] for s in both]
                better = gain(*pair, higher_is_better=self.problem.maximize)
        times = [t.ms_per_step for t in mine if np.isfinite(t.ms_per_step)]
        trouble = next((t.status for t in mine if t.value is None), "")
        for worst in (DIVERGING, AT_RATE, ""):
            told = (t.status for t in mine if worst in t.status and t.status != OK)
            trouble = trouble or next(told, "")
        return Row(
            name,
            summarize(list(values.values())) if values else None,
            better,
            float(np.median(times)) if times else float("nan"),
            sum(MISSED in t.status for t in mine),
            len(values) if is_judged(self.problem) else 0,
            sum(t.value is None for t in mine),
            trouble,
        )

    def __str__(self) -> str:
        from setpoint.compare.table import table

        return table(self)

    def plot(self, file: str | Path) -> None:
        """Draw ROC and precision-recall curves around the operating point (needs matplotlib)."""
        from setpoint.compare.plot import plot

        plot(self, Path(file))

    def to_json(self) -> str:
        """All trials as plain numbers; scores stay out."""
        trials = [_plain(trial) for trial in self.trials]
        return json.dumps({"problem": str(self.problem), "trials": trials}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what :meth:`to_json` wrote."""
        try:
            stored = json.loads(text)
            trials = tuple(
                Trial(**{**one, "ms_per_step": _number(one["ms_per_step"])})
                for one in stored["trials"]
            )
            return cls(Problem.parse(stored["problem"]), trials)
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"This is not a stored comparison: {error}.") from None


def _plain(trial: Trial) -> dict[str, Any]:
    record = asdict(replace(trial, scores=None))
    del record["scores"]
    return {k: None if isinstance(v, float) and v != v else v for k, v in record.items()}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)

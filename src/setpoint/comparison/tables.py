"""All trials of a comparison, one row per method, and as a table that hides no failure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from setpoint._checks import plural
from setpoint._files import save_figure
from setpoint.certificates.storage import checked_record, json_object, need
from setpoint.comparison.pictures import draw_comparison
from setpoint.comparison.trials import (
    AT_RATE,
    CANNOT,
    DIVERGING,
    MISSED,
    OK,
    MethodTrial,
    is_judged,
    kind,
)
from setpoint.problems import Problem
from setpoint.results import Summary, gain, summarize

_HEADER = ("method", "test value", "gain", "", "ms/step", "target missed", "")
_WIDEST_LINE = 96


@dataclass(frozen=True)
class MethodRow:
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
    """What :func:`setpoint.compare` returns; ``print`` it, or read ``rows`` and ``trials``.

    Examples:
        >>> from setpoint import compare, fnr_at_fpr
        >>> from setpoint.datasets import letter
        >>> found = compare(fnr_at_fpr(0.01), letter(), ["cross_entropy"], seeds=1, steps=20)
        >>> len(found.rows), len(found.trials)
        (1, 1)
    """

    problem: Problem
    trials: tuple[MethodTrial, ...]
    labels: Mapping[int, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def rows(self) -> list[MethodRow]:
        """One row per method, in the order they were asked for."""
        names = dict.fromkeys(trial.method for trial in self.trials)
        first = self._values(next(iter(names)))
        return [self._row(name, first if place else None) for place, name in enumerate(names)]

    @property
    def best(self) -> str | None:
        """The method with the best mean on validation; None if every one failed in some seed."""
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

    def _row(self, name: str, first: dict[int, float] | None) -> MethodRow:
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
        return MethodRow(
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
        return _text_table(self)

    def plot(self, file: str | Path) -> None:
        """Draw ROC and precision-recall curves around the operating point (needs matplotlib)."""
        figure = draw_comparison(self.problem, self.trials, self.labels)
        save_figure(Path(file), figure, dpi=150)

    def to_json(self) -> str:
        """All trials as plain numbers; scores stay out."""
        trials = [_trial_record(trial) for trial in self.trials]
        return json.dumps({"problem": str(self.problem), "trials": trials}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what :meth:`to_json` wrote."""
        try:
            stored = json_object(text, "stored comparison")
            trials = tuple(map(_trial, stored["trials"]))
            need(bool(trials), "it has no trial", "stored comparison")
            return cls(Problem.parse(stored["problem"]), trials)
        except (KeyError, TypeError) as error:
            raise ValueError(f"This is not a stored comparison: {error!s:.300}.") from None


def _trial_record(trial: MethodTrial) -> dict[str, Any]:
    record = asdict(replace(trial, scores={}))
    del record["scores"]
    return {k: None if isinstance(v, float) and v != v else v for k, v in record.items()}


def _trial(plain: Any) -> MethodTrial:
    timed = plain["ms_per_step"] is not None
    trial = checked_record(MethodTrial, plain if timed else {**plain, "ms_per_step": 0.0}, "trial")
    names = ("value", "carried", "validation", "ms_per_step")
    values = {name: getattr(trial, name) for name in names}
    known: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    need(all(abs(value) < 1e100 for value in known.values()), f"a value of {values}", "trial")
    known = {name: float(value) for name, value in known.items()}
    trial = replace(trial, **known)
    return trial if timed else replace(trial, ms_per_step=float("nan"))


def _text_table(comparison: Comparison) -> str:
    """The problem, one line per method, what failed in full, and how to read it."""
    rows = comparison.rows
    seeds = len({trial.seed for trial in comparison.trials})
    notes: dict[str, int] = {}
    lines = [_HEADER, *(_row_cells(row, seeds, notes) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER) - 1)]
    text = [
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in lines
    ]
    legend = (
        f"Mean ± standard deviation over {plural(seeds, 'split')}; gain over {rows[0].method}, "
        "paired, ± standard error\n(? less than two of them). Values at the threshold that is "
        "exact on the test part. With the\nvalidation threshold there, a bound is missed when it "
        "is broken, a setpoint when the rate is more\nthan two standard errors from its level, "
        "2 sqrt(level (1 - level) / n) for a share of n examples."
    )
    best = comparison.best
    chosen = f"\nBest on validation: {best}." if best else ""
    below = [*(_footnote(number, said) for said, number in notes.items()), ""] if notes else []
    return "\n".join([str(comparison.problem), "", *text, "", *below, legend + chosen])


def _row_cells(row: MethodRow, seeds: int, notes: dict[str, int]) -> tuple[str, ...]:
    value = "none" if row.value is None else _both(row.value.mean, row.value.spread, "")
    better, told = "", ""
    if row.gain is not None:
        better = _both(row.gain.mean, row.gain.standard_error, "+")
        told = verdict(row.gain, level=row.gain.mean == 0)
    speed = "" if row.ms_per_step != row.ms_per_step else f"{row.ms_per_step:.2f}"
    missed = f"{row.missed} of {row.judged}" if row.judged else ""
    trouble = _trouble(row, seeds)
    if trouble:
        trouble += f" [{notes.setdefault(row.trouble, len(notes) + 1)}]"
    return row.method, value, better, told, speed, missed, trouble


def _trouble(row: MethodRow, seeds: int) -> str:
    """What went wrong, in short; what is missed has a column of its own."""
    if row.failed:
        return kind(row.trouble) + (f" in {row.failed} of {seeds}" if row.failed < seeds else "")
    if DIVERGING in row.trouble:
        return DIVERGING
    return "a learning rate failed" if AT_RATE in row.trouble else ""


def _footnote(number: int, said: str) -> str:
    said = said.removeprefix(f"{CANNOT} it: ")  # the cell has said so
    first = f"[{number}] "
    return fill(
        said,
        _WIDEST_LINE,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _both(mean: float, size: float, sign: str) -> str:
    after = "" if size != size else f" ± {size:.4f}"
    return f"{mean:{sign}.4f}{after}"


def verdict(gain: Summary, *, level: bool) -> str:
    """A gain in a word: ``better ?`` if it is less than two standard errors."""
    if level:
        return "level"
    clear = abs(gain.mean) > 2 * gain.standard_error
    return ("better" if gain.mean > 0 else "worse") + ("" if clear else " ?")

"""From trials to the rows of the table: means, spreads, paired gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setpoint.demo.plan import GOALS, MODELS
from setpoint.demo.trials import CROSS_ENTROPY, IMPLICIT, Trial
from setpoint.results import Summary, gain, summarize


@dataclass(frozen=True)
class Row:
    """One goal and one model: both methods in percent, and what Implicit gains in points."""

    goal: str
    model: str
    cross_entropy: Summary
    implicit: Summary
    gain: Summary
    cross_entropy_ms: float
    implicit_ms: float

    @property
    def lost(self) -> bool:
        """Whether cross-entropy is the better one on average."""
        return self.gain.mean < 0

    @property
    def clear(self) -> bool:
        """Whether the gain, or the loss, is more than two standard errors."""
        return abs(self.gain.mean) > 2 * self.gain.standard_error


def to_rows(trials: Sequence[Trial]) -> list[Row]:
    """One row for each goal and model, in the order of the plan."""
    rows = []
    for goal in GOALS:
        for model in MODELS:
            theirs, ours = (
                [
                    t
                    for t in trials
                    if (t.goal, t.model, t.method) == (goal.name, model.name, method)
                ]
                for method in (CROSS_ENTROPY, IMPLICIT)
            )
            values = [[t.percent for t in group] for group in (ours, theirs)]
            rows.append(
                Row(
                    goal.name,
                    model.name,
                    summarize(values[1]),
                    summarize(values[0]),
                    gain(*values, higher_is_better=goal.higher_is_better),
                    summarize([t.ms_per_step for t in theirs]).mean,
                    summarize([t.ms_per_step for t in ours]).mean,
                )
            )
    return rows

"""What the last batches of a criterion reach together: their counts, added up.

One batch of a few hundred examples has a handful of the rarer class, and its rates jump. The rates
of the last batches taken together say how training goes.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from setpoint.axes.everyone import PlainOutcome, true_counts
from setpoint.axes.sample import Sample
from setpoint.problems import Problem
from setpoint.rates import Array, Counts, Tables

LAST = 50
"""How many batches are added up."""
_KEPT = 2**16
"""Scores of a batch that are kept until somebody asks; larger batches are counted at once."""


class RecentBatches:
    """The last batches with the thresholds they were cut at.

    They are not part of a checkpoint: a run that is resumed begins to count anew.

    Args:
        problem: Whose rates are wanted.

    Examples:
        >>> from setpoint import Implicit
        >>> import torch
        >>> criterion = Implicit("maximize recall subject to fpr <= 0.5")
        >>> for last in (0.5, 3.0):
        ...     scores = torch.tensor([2.0, 1.0, 0.0, last], requires_grad=True)
        ...     criterion(scores, torch.tensor([1, 0, 0, 1])).backward()
        >>> criterion.status
        'held; over the last 2 steps: recall 1, fpr 0.5'
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._batches: deque[tuple[Sample, Array] | Tables] = deque(maxlen=LAST)

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, outcome: PlainOutcome) -> None:
        """Remember a batch; counts are taken when they are asked for."""
        sample, found = outcome.counts.batch, outcome.placed.threshold
        small = sample.scores.size <= _KEPT
        self._batches.append((sample, found) if small else true_counts(sample, found))

    def rates(self) -> dict[str, list[float | None]]:
        """The objective and what is bounded, by their texts: one number per output, None for 0/0.

        Of several thresholds the mean.
        """
        counted = [b if isinstance(b, dict) else true_counts(*b) for b in self._batches]
        if not counted:
            return {}
        with np.errstate(all="ignore"):
            tables = {where: _summed([table[where] for table in counted]) for where in counted[0]}
            asked = (self._problem.objective, *(t.expression for t in self._problem.subject_to))
            found = {str(rate): rate.of(tables).mean(-1).tolist() for rate in asked}
        return {name: [None if x != x else x for x in each] for name, each in found.items()}

    def text(self) -> str:
        """The same in a sentence; of several outputs the mean."""
        known = {name: [x for x in each if x is not None] for name, each in self.rates().items()}
        means = [f"{name} {np.mean(each):.3g}" for name, each in known.items() if each]
        return f"over the last {len(self)} steps: {', '.join(means) or 'no rates'}"


def _summed(tables: list[Counts]) -> Counts:
    names = ("tp", "fp", "fn", "tn", "positives", "negatives")
    parts: list[Any] = [sum(getattr(table, name) for table in tables) for name in names]
    return Counts(*parts)

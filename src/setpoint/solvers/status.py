"""What criteria say of their last batches: status in words, numbers for loggers.

Nothing is computed before it is asked for.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from setpoint.axes.axis import Outcome
from setpoint.axes.everyone import PlainOutcome
from setpoint.axes.sample import Sample
from setpoint.problems import Infeasible, Problem
from setpoint.rates import Array, Counts, Tables

_TOLD = 3
"""Outputs whose trouble is told in a status; ``statuses`` has all of them."""
LAST = 50
"""How many batches are added up."""
_KEPT = 2**16
"""Scores of a batch that are kept until somebody asks; larger batches are counted at once."""


@dataclass(eq=False)
class Snapshot:
    """The last batch of a criterion; put into words and numbers only when asked.

    Attributes:
        problem: What was wanted.
        advice: What to do if it could not be held.
        outcome: What holding gave; None for scores that are not finite.
        share: The share of the main loss.
        main: Its gradient, if it had any.
        outputs: What the columns of the scores are called, if they have names.
    """

    problem: Problem
    advice: str
    outcome: Outcome | None
    share: float
    main: Array | None = None
    outputs: tuple[str, ...] | None = None

    @cached_property
    def status(self) -> str:
        """The first trouble, or *held*."""
        if self.outcome is None:
            return "undefined: scores are not finite"
        if self.main is not None and not np.isfinite(self.main).all():
            return "undefined: the main loss has no finite gradient"
        if len(self.statuses) == 1:
            return next(iter(self.statuses.values()))
        told = [f"{name}: {text}" for name, text in self.statuses.items() if text != "held"]
        more = [f"and {len(told) - _TOLD} more"] if len(told) > _TOLD else []
        return "; ".join([*told[:_TOLD], *more]) or "held"

    @cached_property
    def statuses(self) -> dict[str, str]:
        """The status of every output by its name."""
        if self.outcome is None:
            return {"0": self.status}
        with np.errstate(all="ignore"):
            troubles = self.outcome.troubles()
        names = self.outputs or [str(place) for place in range(len(troubles))]
        return {name: trouble or "held" for name, trouble in zip(names, troubles, strict=True)}

    def stats(self) -> dict[str, Any]:
        """Plain numbers."""
        if self.outcome is None:
            return {"status": self.status, "share": self.share}
        with np.errstate(all="ignore"):
            numbers = self.outcome.numbers()
        if self.outputs is not None:
            numbers = {name: by_output(value, self.outputs) for name, value in numbers.items()}
            numbers["statuses"] = self.statuses
        return {"status": self.status, **numbers, "share": self.share}

    def raise_if_not_held(self) -> None:
        """For ``strict=True``: every trouble is an error, but not scores that are all equal yet."""
        if self.status != "held" and not self.status.startswith("tied"):
            raise ValueError(
                f"Cannot hold `{self.problem}` on this batch: {self.status}. {self.advice}"
            )


def by_output(value: Any, outputs: tuple[str, ...] | None) -> Any:
    """A list with an entry for each output as a dict by name; None and numbers stay."""
    if outputs is None:
        return value[0] if isinstance(value, list) and len(value) == 1 else value
    if value is None:
        return None
    return dict(zip(outputs, value if isinstance(value, list) else [value], strict=True))


class RecentBatches:
    """What the last batches reach together: their counts, added up.

    One batch of a few hundred examples has a handful of the rarer class, and its rates jump.

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
        self._batches.append((sample, found) if small else sample.tables_at(found))

    def rates(self) -> dict[str, list[float | None]]:
        """The objective and what is bounded, by their texts: one number per output, None for 0/0.

        Of several thresholds the mean.
        """
        counted = [self._counted(place) for place in range(len(self))]
        if not counted:
            return {}
        with np.errstate(all="ignore"):
            tables = {
                where: _sum_of_tables([table[where] for table in counted]) for where in counted[0]
            }
            asked = (self._problem.objective, *(t.expression for t in self._problem.subject_to))
            found = {str(rate): rate.of(tables).mean(-1).tolist() for rate in asked}
        return {name: [None if x != x else x for x in each] for name, each in found.items()}

    def _counted(self, place: int) -> Tables:
        """The counts of a batch, taken once."""
        batch = self._batches[place]
        if isinstance(batch, tuple):
            self._batches[place] = batch = batch[0].tables_at(batch[1])
        return batch

    def text(self, outputs: tuple[str, ...] | None = None) -> str:
        """The same in a sentence, output by output if there are several (the first three)."""
        found = self.rates()
        count = len(next(iter(found.values()), ()))
        told = [
            _listed({name: each[place] for name, each in found.items()}) for place in range(count)
        ]
        if count > 1:
            names = outputs or [str(place) for place in range(count)]
            told = [f"{name}: {rates}" for name, rates in zip(names, told, strict=True)]
            told[_TOLD:] = [f"and {count - _TOLD} more"] if count > _TOLD else []
        return f"over the last {len(self)} steps: {'; '.join(told) or 'no rates'}"


def _listed(rates: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {x:.3g}" for name, x in rates.items() if x is not None) or "no rates"


def _sum_of_tables(tables: list[Counts]) -> Counts:
    return Counts(*map(sum, zip(*(vars(table).values() for table in tables), strict=True)))


@dataclass(frozen=True)
class LastBatch:
    """The last batch as it was handed in, and its loss."""

    loss: Tensor
    scores: Tensor
    labels: Tensor
    weights: Tensor | None = None
    groups: Any = None

    def stats(self, problem: Problem | None) -> dict[str, Any]:
        """Plain numbers, with the problem's exact threshold on this batch if it has one."""
        found: dict[str, Any] = {"status": "trained", "loss": float(self.loss)}
        if not self.loss.isfinite():
            return {**found, "status": "undefined: scores are not finite"}
        given = {"weights": self.weights, "groups": self.groups}
        try:
            if problem is not None and problem.kind == "classes":
                labels = self.labels.reshape(-1)
                return {**found, "hard_objective": problem.evaluate(self.scores, labels, **given)}
            found["status"] = self._trouble() or "trained"
            several = self.scores.ndim > 1 and self.scores.shape[1] > 1
            if found["status"] != "trained" or problem is None or problem.kind != "everyone":
                return found
            if several:
                return found
            choice = problem.choose(self.scores.reshape(-1), self.labels.reshape(-1), **given)
        except Infeasible:
            return {**found, "status": f"infeasible: no threshold reaches `{problem}`"}
        except ValueError as error:
            return {**found, "status": f"undefined: {error}"}
        thresholds = [x if abs(x) < float("inf") else None for x in choice.thresholds]
        found["threshold"] = thresholds[0] if len(thresholds) == 1 else thresholds
        return {**found, "status": "held", "hard_objective": choice.value}

    def _trouble(self) -> str:
        """Why a batch of two classes teaches nothing, in words; empty if it does."""
        for name, of_class in (("positives", self.labels > 0), ("negatives", self.labels <= 0)):
            if not of_class.any():
                return f"no {name} in the batch"
        equal = bool((self.scores == self.scores.reshape(-1)[0]).all())
        return "flat: all scores are equal" if equal and self.scores.numel() > 1 else ""

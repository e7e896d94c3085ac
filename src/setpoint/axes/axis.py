"""A threshold has an axis: who shares it. Everyone, a group, a class, a query.

An axis reads a batch into a checked sample, chooses thresholds on true counts, and gives soft
counts around them; :func:`setpoint.axes.implicit_function.hold` then solves the implicit function
theorem, for every axis alike. What differs between axes in training is one row of
:data:`DEFAULTS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from setpoint._checks import plural
from setpoint.axes.scan import TOLERANCE
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import Array, Expression, Rate, Target
from setpoint.steps import Sigmoid, Step

BatchT = TypeVar("BatchT")  # the sample that an axis reads a batch into


_NARROW = Sigmoid(width=0.05)
"""The width and its widening are those of benchmarks/points (docs/when_does_it_pay.md)."""


@dataclass(frozen=True)
class Defaults:
    """How :class:`setpoint.Implicit` trains thresholds of an axis, unless told otherwise.

    Attributes:
        end: The share of the main loss that its fade ends with.
        step: The soft step.
        widening: How much wider steps are while the main loss has all of the share.
        main: The loss that shapes features while it fades.
        refused: Options that make no sense on this axis.
    """

    end: float
    step: Step = _NARROW
    widening: float = 5.0
    main: str = "cross_entropy"
    refused: tuple[str, ...] = ()


_FOUND_ON_EVERY_BATCH = ("correct_every", "correction_batches", "follow")

DEFAULTS = {
    "everyone": Defaults(
        end=0.0,
        refused=("classes", "rule"),
    ),
    # few examples of each group are near its threshold: the main loss is needed to the last
    # (docs/groups.md)
    "groups": Defaults(
        end=0.5,
        refused=(*_FOUND_ON_EVERY_BATCH, "flatness", "slope_floor", "classes", "rule"),
    ),
    # a main loss that leans as the goal does keeps 0.3 of the share (docs/classes.md); one that
    # does not lean fades to 0, as for everyone
    "classes": Defaults(
        end=0.3,
        main="adjusted",
        refused=("memory", *_FOUND_ON_EVERY_BATCH, "flatness", "slope_floor"),
    ),
    # a query has tens of documents, not hundreds: a wider band, a longer main loss
    # (benchmarks/ranking)
    "queries": Defaults(
        step=Sigmoid(width=0.2),
        widening=2.0,
        end=0.4,
        main="listwise",
        refused=("memory", *_FOUND_ON_EVERY_BATCH, "classes", "rule"),
    ),
}
"""The defaults of :class:`setpoint.Implicit` by axis, with their evidence."""


@dataclass(eq=False)
class Outcome(ABC):
    """What holding the thresholds of a batch gave.

    Attributes:
        value: The objective, to be minimized, one per output, ``[c]``.
        gradient: Its gradient on the scores, ``[c, n]``; classes and queries are one output.
        sound: Whether value and gradient of an output can be used, ``[c]``.
        threshold: The thresholds that decide, ``[c, m]`` for outputs, ``[q, m]`` for queries, else
            one per group or class; NaN for a group without examples.
        marginal: The scores that they sit on in training, in the same shape; the same object if
            none of them lies between two scores.
    """

    value: Array
    gradient: Array
    sound: Array
    threshold: Array
    marginal: Array

    @abstractmethod
    def trouble(self) -> str:
        """Why the goal is not held on this batch, in words; empty if it is."""

    def troubles(self) -> list[str]:
        """The same for each output: classes, groups and queries are one."""
        return [self.trouble()]

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """The batch in plain numbers, for loggers."""


class Axis(ABC, Generic[BatchT]):
    """Who shares a threshold.

    Args:
        problem: What is wanted.
        classes: What the columns of the scores are called, in their order (the axis of classes).
        flatness: Weight of ``(width * d gap / d threshold)^2`` (ICO, section 3.4; one threshold
            for everyone or per query).
        slope_floor: Smallest ``|width * d gap / d threshold|`` divided by; 0: no floor.
    """

    advice: ClassVar[str] = (
        "Use larger or balanced batches, pool scores over batches with memory=, or drop "
        "strict=True."
    )
    """What to do about a batch on which the goal cannot be held."""
    keys: tuple[Any, ...] = ()
    """What the groups are called, of one threshold per group: values of a column, or tuples."""

    def __init__(
        self,
        problem: Specification,
        *,
        classes: Sequence[Any] | None = None,
        flatness: float = 0.0,
        slope_floor: float = 0.0,
    ) -> None:
        self.problem = problem
        self.sign = -1.0 if problem.maximize else 1.0
        self.classes = classes
        self.flatness, self.slope_floor = flatness, slope_floor

    @abstractmethod
    def read(self, examples: ScoredExamples) -> BatchT:
        """A checked sample of a batch, in numpy."""

    @abstractmethod
    def hold(self, whole: BatchT, own: BatchT, step: Step, widening: float) -> Outcome:
        """Choose thresholds on the true counts of ``whole``, and hold them.

        0/0 is a value on the way: callers silence the warnings of numpy.

        Args:
            whole: The examples that thresholds and slopes come from.
            own: The examples whose scores get a gradient; the same without a memory.
            step: The soft step.
            widening: A factor of its width.
        """


def undefined(expression: Expression) -> str:
    """The trouble of a rate that the examples leave without a value."""
    return f"undefined: {expression} is 0/0 in the batch"


def not_met(target: Target, gap: float, reached: str, word: str = "infeasible") -> str:
    """The trouble of a target that is missed by ``gap``."""
    return f"{word} (gap {gap:.2g}): {target} is not met, it is {reached}"


def too_coarse(rate: Rate, size: float, aim: float) -> str:
    """The trouble of a rate of so few examples that one is more than ``aim``; else nothing.

    A batch of 32 negatives cannot hold 1 % of them.
    """
    if not rate.is_share or not 0 < aim * size < 1 - TOLERANCE:
        return ""
    one = f"one of {plural(float(f'{size:.4g}'), 'example')} is a rate of {1 / size:.2g}"
    return f"too coarse: {one}, more than {aim:.4g}"


def plain_numbers(values: Array) -> Any:
    """Plain floats, None for what is no finite number (the threshold that accepts everybody).

    A list for several thresholds or several outputs, nested for both.
    """
    flat = [x if abs(x) < float("inf") else None for x in values.reshape(-1).tolist()]
    if len(flat) == 1:
        return flat[0]
    if values.ndim != 2 or 1 in values.shape:
        return flat
    rows, columns = values.shape
    return [flat[i * columns : (i + 1) * columns] for i in range(rows)]

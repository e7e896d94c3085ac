"""How a main and a side loss become one gradient: the ways that the paper's tables compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

from setpoint import Barrier

Rule = Callable[[Tensor, Tensor, float], float]
"""Fills ``.grad`` from the main loss, the side loss and the share of training that is done.

Returns the weight of the main loss relative to the side loss (infinite without a side loss).
"""


def main_only(main: Tensor, side: Tensor, done: float) -> float:
    """Forget the side loss."""
    main.backward()
    return float("inf")


def named(method: str, parameters: Iterable[Tensor]) -> Rule:
    """The rule that a method's name starts with."""
    makers = {"lexicographic": lexicographic, "printed": printed}
    return makers[method.partition(",")[0]](parameters)


def weighted(weight: float) -> Rule:
    """The linear combination ``main + weight * side``."""

    def fill(main: Tensor, side: Tensor, done: float) -> float:
        (main + weight * side).backward()
        return 1 / weight if weight else float("inf")

    return fill


def scheduled(last: float) -> Rule:
    """A linear combination whose weight of the side loss grows in a line from 0 to ``last``."""

    def fill(main: Tensor, side: Tensor, done: float) -> float:
        return weighted(last * done)(main, side, done)

    return fill


def lexicographic(parameters: Iterable[Tensor], **settings: Any) -> Rule:
    """Ours: the side loss only where it does not hurt the main loss, nothing to tune."""
    barrier = Barrier(parameters, **settings)

    def fill(main: Tensor, side: Tensor, done: float) -> float:
        return float(barrier.backward(side, after=main)["multiplier"][0])

    return fill


def printed(parameters: Iterable[Tensor]) -> Rule:
    """Algorithm 1 as it stands."""
    return lexicographic(parameters, rule="printed")

"""Multipliers in plain numbers and words."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setpoint.problems import Problem

TOO_LARGE = 1e3
"""A target that costs this much and is still broken is out of the model's reach."""
BLOCKS, BLOCK = 5, 100
BROKEN, STILL = 0.01, 0.8
"""So is one that was broken by this much in each of the last blocks of steps, and in the last one
by this share of what it was in the first."""


def described(problem: Problem, multipliers: Tensor, gaps: Tensor | None) -> dict[str, Any]:
    """Multipliers and gaps by the names of their targets; lists for several thresholds."""
    names = [str(target) for target in problem.subject_to]
    found = {"multipliers": _by_name(names, multipliers)}
    if gaps is not None:
        found["gaps"] = _by_name(names, gaps)
    return found


def diverging(problem: Problem, multipliers: Tensor, gaps: Tensor | None, log: Tensor) -> str:
    """Which target is not reached although its price has risen beyond reason, or for long."""
    if gaps is None:
        return ""
    runaway = (multipliers.abs() > TOO_LARGE) & (gaps * multipliers > 0)
    lasting = _broken_for_long(len(problem.subject_to), log)
    for place, (target, price) in enumerate(zip(problem.subject_to, multipliers, strict=True)):
        begin = f"diverging (multiplier {float(price.abs().max()):.2g}): {target}"
        if runaway[place].any():
            return (
                f"{begin} is not reached at any price; loosen it, lower dual_rate, or train a "
                "larger model"
            )
        if lasting is not None and lasting[place] > 0:
            return (
                f"{begin} has been broken by {float(lasting[place]):.2g} for "
                f"{BLOCKS * BLOCK} steps; loosen it, train a larger model, or raise dual_rate"
            )
    return ""


def _broken_for_long(targets: int, log: Tensor) -> Tensor | None:
    """By how much each target was broken lately if always to the same side and no less at last.

    A mean over a hundred steps is little noise; one that is on its way to the target shrinks.
    """
    if not targets or len(log) < BLOCKS * BLOCK:
        return None
    prices, gaps = log[-BLOCKS * BLOCK :].reshape(BLOCKS, BLOCK, 2, targets, -1).unbind(2)
    means = gaps.mean(1)
    one_side = (means.sign() == means[0].sign()).all(0) & (means[-1] * prices[-1, -1] > 0)
    size = means.abs()
    lasting = one_side & (size > BROKEN).all(0) & (size[-1] > STILL * size[0])
    return (size[-1] * lasting).amax(-1)


def history_of(problem: Problem, steps: list[int], rows: Tensor) -> list[dict[str, Any]]:
    """One plain dict a step, from rows of multipliers and then gaps."""
    count = len(problem.subject_to)
    history = []
    for step, row in zip(steps, rows, strict=True):
        prices, gaps = row.reshape(2, count, -1) if count else (row, row)
        history.append({"step": step, **described(problem, prices, gaps)})
    return history


def _by_name(names: list[str], values: Tensor) -> dict[str, Any]:
    listed = (value.reshape(-1).tolist() for value in values)
    return {
        name: each[0] if len(each) == 1 else each for name, each in zip(names, listed, strict=False)
    }

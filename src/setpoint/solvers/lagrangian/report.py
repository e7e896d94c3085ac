"""Multipliers in plain numbers and words."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setpoint.problems import Problem

TOO_LARGE = 1e3
"""A target that costs this much and is still broken is out of the model's reach."""


def described(problem: Problem, multipliers: Tensor, gaps: Tensor | None) -> dict[str, Any]:
    """Multipliers and gaps by the names of their targets; lists for several thresholds."""
    names = [str(target) for target in problem.subject_to]
    found = {"multipliers": _by_name(names, multipliers)}
    if gaps is not None:
        found["gaps"] = _by_name(names, gaps)
    return found


def diverging(problem: Problem, multipliers: Tensor, gaps: Tensor | None) -> str:
    """Which multiplier has left all bounds while its target is still broken, if any."""
    if gaps is None:
        return ""
    for target, price, gap in zip(problem.subject_to, multipliers, gaps, strict=True):
        runaway = (price.abs() > TOO_LARGE) & (gap * price > 0)
        if runaway.any():
            largest = float(price.abs().max())
            return (
                f"diverging (multiplier {largest:.2g}): {target} is not reached at any price; "
                "loosen it, lower dual_rate, or train a larger model"
            )
    return ""


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

"""From the parts of a program to its answer: check, solve, prove, differentiate."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from setpoint.layers.linear_program.backward import solution, value
from setpoint.layers.linear_program.checks import check_program
from setpoint.layers.linear_program.choose import solve
from setpoint.layers.linear_program.info import ProgramInfo
from setpoint.layers.linear_program.published import published
from setpoint.layers.linear_program.sketch import Sketch
from setpoint.layers.linear_program.surrogates import Name, Surrogate
from setpoint.layers.linear_program.verdict import settle


def answer(
    parts: tuple[Any, Any, Any, Any, Any, bool],
    *,
    solver: str,
    value_only: bool,
    surrogate: tuple[Name, float, int] | None,
    sketch: int | None,
    unroll: bool,
    strict: bool,
    generator: torch.Generator | None,
) -> tuple[Tensor, ProgramInfo]:
    """What ``linear_program`` returns; its arguments are explained there."""
    program, dtype = check_program(*parts)
    still = program.detach()
    rows = None if sketch is None else Sketch(sketch, generator)
    by_cost = None
    if surrogate is not None:
        if value_only:
            raise ValueError(
                "cost_gradient goes with solutions: the value of a program has a true gradient by "
                "its costs. Leave out cost_gradient or value_only."
            )
        by_cost = Surrogate(*surrogate, generator, partial(solve, solver=solver))
    rays: tuple[tuple[Tensor, ...], ...] = ((),) * program.members
    if unroll:
        if by_cost is not None or program.is_sparse:
            raise ValueError("unroll=True goes with dense matrices and without cost_gradient.")
        result, found = published(program, rows)
        result = (program.c * result).sum(1) if value_only else result
    else:
        with torch.no_grad():
            found, rays = settle(still, solve(still, solver, rows), strict=strict)
        result = value(program, found) if value_only else solution(program, found, by_cost)
    shaped = result.reshape((*program.batch, *result.shape[1:])).to(dtype)
    return shaped, ProgramInfo(still, found, rays)

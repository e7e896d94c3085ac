"""Proofs that a program has no solution, each found by a program that always has one.

A Farkas ray: weights ``v >= 0`` and ``w`` under which the constraints add up to a contradiction.
A recession ray: a direction that stays feasible for ever and lowers the cost. Both cones are cut at
1, so that HiGHS finds the ray or proves that there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import diags_array, hstack, issparse

from setpoint.layers.linear_program.program import Member

CLEAR = 1e-9  # of its own terms: a contradiction smaller than this is rounding
DUST = 1e-11  # of the largest entry of a ray


def farkas(one: Member) -> tuple[Any, Any] | None:
    """``(v, w)`` with ``A'v + E'w = 0`` (``>= 0`` if ``z >= 0``) and ``b'v + h'w < 0``, or None."""
    A, left = _unit_rows(one.A)
    E, right = _unit_rows(one.E)
    cost = np.concatenate([left * one.b, right * one.h])
    if not len(cost):
        return None
    rows = _beside(A, E)
    zeros = np.zeros(len(one.c))
    bounds = [(0, 1)] * len(one.b) + [(-1, 1)] * len(one.h)
    if one.nonnegative:
        answer = linprog(cost, -rows, zeros, bounds=bounds, method="highs")
    else:
        answer = linprog(cost, A_eq=rows, b_eq=zeros, bounds=bounds, method="highs")
    if answer.status != 0 or answer.fun >= -CLEAR * (np.abs(cost) @ np.abs(answer.x)):
        return None
    v, w = np.split(_clean(answer.x), [len(one.b)])
    return left * v, right * w


def recession(one: Member) -> Any | None:
    """``d`` with ``A d <= 0``, ``E d = 0``, (``d >= 0`` if ``z >= 0``) and ``c'd < 0``, or None."""
    A, _ = _unit_rows(one.A)
    E, _ = _unit_rows(one.E)
    m, p = len(one.b), len(one.h)
    answer = linprog(
        one.c,
        A if m else None,
        np.zeros(m) if m else None,
        E if p else None,
        np.zeros(p) if p else None,
        bounds=(0 if one.nonnegative else -1, 1),
        method="highs",
    )
    if answer.status != 0 or answer.fun >= -CLEAR * (np.abs(one.c) @ np.abs(answer.x)):
        return None
    return _clean(answer.x)


def _clean(ray: Any) -> Any:
    """Without the dust that rounding leaves: a ray names its rows."""
    return np.where(np.abs(ray) > DUST * np.abs(ray).max(), ray, 0.0)


def _unit_rows(matrix: Any) -> tuple[Any, Any]:
    """The matrix with rows of largest entry 1, and what each row was multiplied by."""
    if not matrix.shape[0]:
        return matrix, np.ones(0)
    size = abs(matrix).max(axis=1)
    size = np.asarray(size.todense() if issparse(size) else size).ravel()
    by = 1 / np.where(size > 0, size, 1)
    return (diags_array(by) @ matrix if issparse(matrix) else by[:, None] * matrix), by


def _beside(A: Any, E: Any) -> Any:
    """``[A' E']``."""
    if issparse(A) or issparse(E):
        return hstack([A.T, E.T]).tocsr()
    return np.concatenate([A, E]).T

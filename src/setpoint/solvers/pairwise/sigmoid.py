"""Sums of sigmoids over all pairs, to machine precision and without the pairs.

The sigmoid has no running sums, but it is smooth: cut the line of scores into cells one temperature
wide. Between two cells it is a polynomial of degree 13 in both scores, to 1e-15 (its nearest pole
is pi away, so interpolation at Chebyshev points gains a factor of 12 a point). So every cell is
summed up by 14 numbers, cells talk to cells, and forty cells away the sigmoid is 0 or 1. The work
is a sort and a constant for each example.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

POINTS = 14
FAR = 40
FEW_PAIRS = 2**17
"""Up to here all pairs at once are faster."""
CELLS = 32
"""Cells taken at once: with their neighbours some megabytes."""


def sigmoid_sums(x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """``sum_j w_j sigmoid(y_j - x_i)`` and ``sum_j w_j sigmoid'(y_j - x_i)`` for every ``x`` [n].

    Args:
        x: Where the sums are wanted, in units of the temperature, ``[n]``.
        y: Sources, ``[k]``.
        weights: What they count for, ``[k]``.
    """
    if torch.compiler.is_compiling() or len(x) * len(y) <= FEW_PAIRS:
        value = torch.sigmoid(y - x[:, None])
        return value @ weights, (value * torch.sigmoid(x[:, None] - y)) @ weights
    cells, place = torch.unique(torch.cat([x, y]).floor(), return_inverse=True)
    at_x, at_y = place[: len(x)], place[len(x) :]
    moments = x.new_zeros(len(cells), POINTS)
    moments.index_add_(0, at_y, weights[:, None] * _basis(y - cells[at_y]))
    potentials = _between(cells, moments)
    basis = _basis(x - cells[at_x])
    value, slope = ((basis * potential[at_x]).sum(-1) for potential in potentials)
    return value, slope


def _between(cells: Tensor, moments: Tensor) -> tuple[Tensor, Tensor]:
    """What all cells sum up to at the points of each, ``[cells, points]``, and its slope."""
    nodes = _nodes(cells)
    apart = (nodes - nodes[:, None])[:, None]  # of source q above target p
    above = moments.sum(-1).flip(0).cumsum(0).flip(0)
    above = torch.cat([above, above.new_zeros(1)])
    low = torch.searchsorted(cells, cells - FAR).tolist()
    high = torch.searchsorted(cells, cells + FAR, right=True).tolist()
    values, slopes = [], []
    for start in range(0, len(cells), CELLS):
        stop = min(start + CELLS, len(cells))
        near = slice(low[start], high[stop - 1])
        distance = (cells[near] - cells[start:stop, None])[:, None, :, None] + apart
        step = torch.sigmoid(distance)
        value = torch.einsum("apbq,bq->ap", step, moments[near]) + above[near.stop]
        values.append(value)
        slopes.append(torch.einsum("apbq,bq->ap", step * torch.sigmoid(-distance), moments[near]))
    return torch.cat(values), torch.cat(slopes)


def _nodes(like: Tensor) -> Tensor:
    """Chebyshev points of a cell, measured from its lower end."""
    angles = (torch.arange(POINTS, dtype=like.dtype, device=like.device) + 0.5) * math.pi / POINTS
    return 0.5 + 0.5 * torch.cos(angles)


def _basis(inside: Tensor) -> Tensor:
    """The polynomials that are one at one point of a cell and zero at the others, ``[n, points]``.

    By the discrete orthogonality of Chebyshev polynomials: ``(1 + 2 sum T_r(node) T_r(t)) / P``.
    """
    degrees = torch.arange(1, POINTS, dtype=inside.dtype, device=inside.device)
    angle = torch.acos((2 * inside - 1).clamp(-1, 1))
    at_nodes = torch.acos(2 * _nodes(inside) - 1)
    here, there = (torch.cos(a[:, None] * degrees) for a in (angle, at_nodes))
    return (1 + 2 * here @ there.T) / POINTS

"""Stand-ins for the gradient of a solution by its costs, which in truth is zero or not defined.

A vertex stays where it is while the costs move a little, then jumps. Training the costs needs the
slope of something smoother, and there are three well known ones; which one is a choice, so it is
the caller's:

* ``blackbox`` (Pogancic et al. 2020): the difference quotient towards costs that were moved along
  the incoming gradient. One more program.
* ``perturbed`` (Berthet et al. 2020): the slope of the mean solution under normal noise on the
  costs, estimated on antithetic samples. As many programs as samples.
* ``smoothed``: the slope of the solution when ``strength/2 |z|^2`` is added to the costs, a
  quadratic program: ``-P / strength`` with ``P`` the projection on what its active rows leave free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import positive, whole
from setpoint.layers.linear_program.errors import ProgramError
from setpoint.layers.linear_program.program import Program, Solution
from setpoint.layers.linear_program.quadratic import free_part

Name = Literal["blackbox", "perturbed", "smoothed"]
Solver = Callable[[Program], Solution]


@dataclass(frozen=True)
class Surrogate:
    """A stand-in by name, with its one number.

    Attributes:
        name: One of the three.
        strength: How far the costs are moved (blackbox: times the incoming gradient; perturbed: the
            noise's deviation), or the weight of the added square (smoothed).
        samples: How many noisy programs, for ``perturbed``.
        generator: Where the noise comes from.
        solver: Solves programs with other costs.
    """

    name: Name
    strength: float
    samples: int
    generator: torch.Generator | None
    solver: Solver

    def __post_init__(self) -> None:
        if self.name not in _WAYS:
            known = ", ".join(repr(name) for name in _WAYS)
            raise ValueError(f"cost_gradient must be one of {known}, or None; got {self.name!r}.")
        positive(self.strength, "strength")
        whole(self.samples, "samples", least=1)

    def __call__(self, program: Program, found: Solution, gradient: Tensor) -> Tensor:
        """The gradient by the costs for a gradient by the solutions, ``[batch, n]``."""
        return _WAYS[self.name](self, program, found, gradient) * found.optimal[:, None]

    def solve(self, program: Program, c: Tensor, among: Tensor) -> Tensor:
        """The solutions with other costs; only members of ``among`` must have one."""
        other = self.solver(program.with_cost(c))
        if (among & ~other.optimal).any():
            raise ProgramError(
                f'cost_gradient="{self.name}" moves the costs, and with these the program has no '
                "solution: it is unbounded. Bound the variables, or lower the strength, which is "
                f"{self.strength:g}."
            )
        return other.z


def _blackbox(way: Surrogate, program: Program, found: Solution, g: Tensor) -> Tensor:
    moved = way.solve(program, program.c + way.strength * g, found.optimal)
    return (moved - found.z) / way.strength


def _perturbed(way: Surrogate, program: Program, found: Solution, g: Tensor) -> Tensor:
    members, n = program.c.shape
    shape = ((way.samples + 1) // 2, members, n)
    half = torch.randn(shape, generator=way.generator, dtype=g.dtype, device=g.device)
    noise = torch.cat([half, -half])
    every = torch.arange(members, device=g.device).repeat(len(noise))
    costs = (program.c + way.strength * noise).reshape(-1, n)
    z = way.solve(program.pick(every), costs, found.optimal[every]).reshape(noise.shape)
    change = ((z - found.z) * g).sum(-1, keepdim=True)
    return (change * noise).mean(0) / way.strength


def _smoothed(way: Surrogate, program: Program, found: Solution, g: Tensor) -> Tensor:
    return -free_part(program, way.strength, g, found.optimal) / way.strength


_WAYS = {"blackbox": _blackbox, "perturbed": _perturbed, "smoothed": _smoothed}

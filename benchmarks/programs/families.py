"""Random linear programs of known kinds, with what is known about each by construction.

Every solvable one is built around a point and multipliers, so it has a solution; the infeasible and
unbounded ones are built around their ray.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

Array = np.ndarray


@dataclass(frozen=True)
class Drawn:
    """One program, the status it must have, and the units it was put into, if any."""

    c: Array
    A: Array
    b: Array
    E: Array
    h: Array
    nonnegative: bool = False
    status: str = "optimal"
    units: tuple[Array, Array, Array] | None = None

    def well_scaled(self) -> Drawn:
        """The same program before rows, equalities and columns were put into other units."""
        if self.units is None:
            return self
        r, q, s = self.units
        A, E = self.A / r[:, None] / s, self.E / q[:, None] / s
        return replace(self, c=self.c / s, A=A, b=self.b / r, E=E, h=self.h / q, units=None)


def generic(rng: Generator, m: int, n: int) -> Drawn:
    """Normal rows, half of them with a multiplier, slack everywhere, now and then equalities."""
    A, z = rng.normal(size=(m, n)), rng.normal(size=n)
    E = rng.normal(size=(int(rng.integers(0, max(1, n // 4) + 1)), n))
    v = rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.5)
    c = -A.T @ v - E.T @ rng.normal(size=len(E))
    return Drawn(c, A, A @ z + rng.uniform(0.1, 1, m), E, E @ z)


def degenerate(rng: Generator, m: int, n: int) -> Drawn:
    """Many more rows through the solution than it needs."""
    A, z = rng.normal(size=(m, n)), rng.normal(size=n)
    tight = rng.choice(m, min(m, n + max(2, n // 3)), replace=False)
    slack, v = rng.uniform(0.1, 1, m), np.zeros(m)
    slack[tight] = 0
    v[tight] = rng.uniform(0, 1, len(tight)) * (rng.uniform(size=len(tight)) < 0.8)
    return Drawn(-A.T @ v, A, A @ z + slack, np.zeros((0, n)), np.zeros(0))


def redundant(rng: Generator, m: int, n: int) -> Drawn:
    """A third of the rows are multiples of others, and one equality is the sum of two others."""
    one = generic(rng, m, n)
    A, b, E, h = one.A.copy(), one.b.copy(), one.E, one.h
    copies = m // 3
    if copies:
        by = rng.uniform(0.5, 2, copies)
        A[-copies:], b[-copies:] = by[:, None] * A[:copies], by * b[:copies]
    if len(h) >= 2:
        E, h = np.concatenate([E, E[:1] + E[1:2]]), np.concatenate([h, h[:1] + h[1:2]])
    v = rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.5)
    return Drawn(-A.T @ v - E.T @ rng.normal(size=len(E)), A, b, E, h)


def badly_scaled(rng: Generator, m: int, n: int) -> Drawn:
    """Rows and columns in units from 1e-4 to 1e4."""
    one = generic(rng, m, n)
    r, q, s = (10 ** rng.uniform(-4, 4, k) for k in (m, len(one.h), n))
    A, E = r[:, None] * one.A * s, q[:, None] * one.E * s
    return Drawn(one.c * s, A, r * one.b, E, q * one.h, units=(r, q, s))


def packing(rng: Generator, m: int, n: int) -> Drawn:
    """Nonnegative shares of what is there."""
    A, b = rng.uniform(size=(m, n)), rng.uniform(0.5, 1.5, m) * n / 4
    return Drawn(-rng.uniform(size=n), A, b, np.zeros((0, n)), np.zeros(0), nonnegative=True)


def transport(rng: Generator, m: int, n: int) -> Drawn:
    """From k places to k others: nonnegative flows, one of the 2 k equalities is too many."""
    k = max(2, round(n**0.5))
    place = np.arange(k * k)
    E = np.zeros((2 * k, k * k))
    E[place // k, place] = E[k + place % k, place] = 1
    h = np.concatenate([rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))])
    none = np.zeros((0, k * k))
    return Drawn(rng.uniform(size=k * k), none, np.zeros(0), E, h, nonnegative=True)


def infeasible(rng: Generator, m: int, n: int) -> Drawn:
    """The sum of some rows says 0 <= -1."""
    m = max(m, 2)
    one = generic(rng, m, n)
    k = int(rng.integers(2, min(m, n + 1, 6) + 1))
    v = rng.uniform(0.5, 2, k)
    A, b = one.A.copy(), one.b.copy()
    A[k - 1] = -v[:-1] @ A[: k - 1] / v[-1]
    b[k - 1] = (-1 - v[:-1] @ b[: k - 1]) / v[-1]
    return Drawn(one.c, A, b, one.E[:0], one.h[:0], status="infeasible")


def unbounded(rng: Generator, m: int, n: int) -> Drawn:
    """No row stops a direction along which the cost falls."""
    one = generic(rng, m, n)
    d = rng.normal(size=n)
    d /= np.linalg.norm(d)
    A, E = one.A, one.E[: max(0, min(len(one.h), n - 1))]
    A = A - np.outer(np.maximum(A @ d, 0) * rng.uniform(1, 2, m), d)
    E = E - np.outer(E @ d, d)
    z = rng.normal(size=n)
    c = one.c - (one.c @ d + rng.uniform(0.5, 1)) * d
    return Drawn(c, A, A @ z + rng.uniform(0.1, 1, m), E, E @ z, status="unbounded")


FAMILIES: dict[str, Callable[[Generator, int, int], Drawn]] = {
    family.__name__: family
    for family in (
        generic,
        degenerate,
        redundant,
        badly_scaled,
        packing,
        transport,
        infeasible,
        unbounded,
    )
}

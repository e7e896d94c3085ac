"""A batch of linear programs of one shape: ``min c'z``, ``A z <= b``, ``E z = h``, ``z >= 0``.

Rows, columns, costs and right sides are scaled to near 1 before solving, and the solution back:
solvers compare with fixed tolerances, and a row of entries near 1e-6 would be ignored. All factors
are powers of two, so that scaling itself rounds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.programs.matrices import MatrixBatch, sparse_batch

RUIZ_ROUNDS = 4  # each halves the distance of the exponents from 0


@dataclass(frozen=True)
class ProgramBatch:
    """Checked programs in float64 with one batch dimension; what is missing has zero rows.

    Attributes:
        c: Costs, ``[batch, n]``.
        A: Rows of the inequalities, ``[batch, m, n]``.
        b: Their right sides, ``[batch, m]``.
        E: Rows of the equalities, ``[batch, p, n]``.
        h: Their right sides, ``[batch, p]``.
        nonnegative: Whether ``z >= 0`` holds too.
        batch: The leading shape that was given.
    """

    c: Tensor
    A: MatrixBatch
    b: Tensor
    E: MatrixBatch
    h: Tensor
    nonnegative: bool
    batch: tuple[int, ...]

    @property
    def members(self) -> int:
        """The number of programs."""
        return int(self.c.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether one of the matrices is sparse."""
        return self.A.is_sparse or self.E.is_sparse

    def detach(self) -> ProgramBatch:
        """The same programs outside the graph."""
        return replace(
            self,
            c=self.c.detach(),
            A=self.A.detach(),
            b=self.b.detach(),
            E=self.E.detach(),
            h=self.h.detach(),
        )

    def pick(self, members: Tensor) -> ProgramBatch:
        """Some members of the batch, as a flat batch of their own."""
        return replace(
            self,
            c=self.c[members],
            A=self.A.pick(members),
            b=self.b[members],
            E=self.E.pick(members),
            h=self.h[members],
            batch=(int(members.numel()),),
        )

    def with_cost(self, c: Tensor) -> ProgramBatch:
        """The same constraints with other costs."""
        return replace(self, c=c)

    def member(self, i: int) -> NumpyProgram:
        """One program in numpy, for scipy."""
        parts = (self.c, self.b, self.h)
        c, b, h = (x[i].detach().cpu().numpy() for x in parts)
        return NumpyProgram(c, self.A.member(i), b, self.E.member(i), h, self.nonnegative)


@dataclass(frozen=True)
class NumpyProgram:
    """One program in numpy; the matrices may be sparse arrays of scipy."""

    c: np.ndarray[Any, Any]
    A: Any
    b: np.ndarray[Any, Any]
    E: Any
    h: np.ndarray[Any, Any]
    nonnegative: bool


@dataclass(frozen=True)
class PrimalDual:
    """Points and multipliers, with ``c + A' v + E' w - s = 0`` and ``v, s >= 0`` at a solution.

    Attributes:
        z: Points, ``[batch, n]``.
        v: Multipliers of the inequalities, ``[batch, m]``.
        w: Multipliers of the equalities, ``[batch, p]``.
        s: Multipliers of ``z >= 0``, ``[batch, n]``.
    """

    z: Tensor
    v: Tensor
    w: Tensor
    s: Tensor

    @classmethod
    def zeros(cls, program: ProgramBatch) -> PrimalDual:
        """All zeros, in the shapes of the programs."""
        return cls(*(torch.zeros_like(x) for x in (program.c, program.b, program.h, program.c)))

    def pick(self, members: Tensor) -> PrimalDual:
        """Some members of the batch."""
        return PrimalDual(self.z[members], self.v[members], self.w[members], self.s[members])

    def put(self, members: Tensor, other: PrimalDual) -> None:
        """Overwrite some members in place."""
        for name in ("z", "v", "w", "s"):
            getattr(self, name)[members] = getattr(other, name)


@dataclass(frozen=True)
class SolutionBatch(PrimalDual):
    """Solutions with their multipliers; zeros for members without a solution.

    Attributes:
        status: Per member ``optimal``, ``infeasible``, ``unbounded`` or ``unsolved``.
        solver: Per member the name of the solver.
        iterations: Per member the number of steps it took.
    """

    status: tuple[str, ...]
    solver: tuple[str, ...]
    iterations: tuple[int, ...]

    @property
    def optimal(self) -> Tensor:
        """Which members are solved, ``[batch]``."""
        solved = [word == "optimal" for word in self.status]
        return torch.tensor(solved, dtype=torch.bool, device=self.z.device)


def check_program(
    c: Any, A: Any, b: Any, E: Any, h: Any, nonnegative: bool
) -> tuple[ProgramBatch, torch.dtype]:
    """The checked programs in float64, and the dtype in which to return their solutions.

    Takes tensors, arrays or lists of any float dtype and leading shape, or ``None`` for what is
    missing. Raises if shapes, layouts or devices do not fit together, or an entry is not finite.
    """
    given = {"c": c, "A": A, "b": b, "E": E, "h": h}
    tensors = {name: _tensor(value, name) for name, value in given.items() if value is not None}
    if "c" not in tensors:
        raise TypeError("c is missing: the costs of the variables, a tensor [..., n].")
    costs = tensors["c"]
    if costs.layout != torch.strided:
        raise TypeError("c must be dense; call c.to_dense() first.")
    for x in tensors.values():
        if x.device != costs.device:
            devices = ", ".join(f"{name} on {t.device}" for name, t in tensors.items())
            raise ValueError(f"All parts of a program must be on one device; got {devices}.")
    if costs.dim() == 0 or costs.shape[-1] == 0:
        raise ValueError(
            f"A program needs at least one variable: c must be [..., n] with n >= 1; "
            f"got the shape {tuple(costs.shape)}."
        )
    n = int(costs.shape[-1])
    rows, right = _constraints(tensors, "A", "b", "inequalities A z <= b", n, costs)
    equal, level = _constraints(tensors, "E", "h", "equalities E z = h", n, costs)
    shapes = {name: t.shape[:-2] if name in "AE" else t.shape[:-1] for name, t in tensors.items()}
    batch = _batch_shape(shapes)
    for name, values in (("c", costs), ("b", right), ("h", level)):
        _check_entries(name, values)
    for name, matrix in (("A", rows), ("E", equal)):
        _check_entries(name, matrix.values, sparse=matrix.is_sparse)
    dtype = costs.dtype
    for x in tensors.values():
        dtype = torch.promote_types(dtype, x.dtype)
    program = ProgramBatch(
        _flat_vector(costs, batch),
        _flat_matrix(rows, shapes.get("A", ()), batch),
        _flat_vector(right, batch),
        _flat_matrix(equal, shapes.get("E", ()), batch),
        _flat_vector(level, batch),
        bool(nonnegative),
        batch,
    )
    return program, dtype


def _tensor(value: Any, name: str) -> Tensor:
    tensor = value if isinstance(value, Tensor) else torch.as_tensor(value)
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"{name} must hold real numbers; got {tensor.dtype}.")
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def _constraints(
    tensors: dict[str, Tensor], matrix: str, vector: str, what: str, n: int, like: Tensor
) -> tuple[MatrixBatch, Tensor]:
    """Matrix and right side of one kind of constraint; with zero rows if both are missing."""
    if (matrix in tensors) != (vector in tensors):
        have, lack = (matrix, vector) if matrix in tensors else (vector, matrix)
        raise ValueError(f"The {what} need both {matrix} and {vector}; {have} came without {lack}.")
    if matrix not in tensors:
        return MatrixBatch(like.new_zeros(1, 0, n), (0, n)), like.new_zeros(0)
    left, right = tensors[matrix], tensors[vector]
    if left.dim() < 2 or left.shape[-1] != n:
        raise ValueError(
            f"{matrix} must be [..., rows, {n}], a column for each of the {n} costs; "
            f"got the shape {tuple(left.shape)}."
        )
    if right.layout != torch.strided:
        raise TypeError(f"{vector} must be dense; call {vector}.to_dense() first.")
    if right.dim() == 0 or right.shape[-1] != left.shape[-2]:
        raise ValueError(
            f"{vector} must be [..., {left.shape[-2]}], one value for each row of {matrix}; "
            f"got the shape {tuple(right.shape)}."
        )
    if left.layout == torch.strided:
        return MatrixBatch(left, (int(left.shape[-2]), n)), right
    if left.layout not in (torch.sparse_coo, torch.sparse_csr) or left.dense_dim():
        raise TypeError(f"{matrix} must be dense, sparse COO or CSR; got {_layout_of(left)}.")
    return sparse_batch(left), right


def _layout_of(tensor: Tensor) -> str:
    dense = tensor.dense_dim()
    return f"{tensor.layout}" + (f" with {dense} dense dimensions" if dense else "")


def _batch_shape(shapes: dict[str, torch.Size]) -> tuple[int, ...]:
    try:
        return tuple(torch.broadcast_shapes(*shapes.values()))  # type: ignore[no-untyped-call]
    except RuntimeError:
        text = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        raise ValueError(f"The leading (batch) shapes do not fit together: {text}.") from None


def _flat_vector(vector: Tensor, batch: tuple[int, ...]) -> Tensor:
    wide = vector.to(torch.float64).expand(*batch, vector.shape[-1])
    return wide.reshape(math.prod(batch), vector.shape[-1])


def _flat_matrix(matrix: MatrixBatch, lead: Sequence[int], batch: tuple[int, ...]) -> MatrixBatch:
    """The matrix with values for each member of the batch, along one batch dimension."""
    tail = (matrix.values.shape[-1],) if matrix.is_sparse else matrix.shape
    values = matrix.values.to(torch.float64).reshape(*lead, *tail).expand(*batch, *tail)
    return replace(matrix, values=values.reshape(math.prod(batch), *tail))


def _check_entries(name: str, values: Tensor, *, sparse: bool = False) -> None:
    wrong = ~torch.isfinite(values.detach())
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        where = "" if sparse else f" at {list(place)}"
        value = float(values[place])
        hint = " Drop a row that nothing bounds." if name == "b" and value > 0 else ""
        raise ValueError(f"{name} must be finite; got {value}{where}.{hint}")


@dataclass(frozen=True)
class Scales:
    """The factors of the rows of ``A`` and ``E``, the columns, the costs and the right sides."""

    rows: Tensor
    equal: Tensor
    columns: Tensor
    cost: Tensor
    right: Tensor

    def unscale(self, found: SolutionBatch) -> SolutionBatch:
        """The solution of the program before it was scaled."""
        return replace(
            found,
            z=found.z * self.columns / self.right,
            v=found.v * self.rows / self.cost,
            w=found.w * self.equal / self.cost,
            s=found.s / self.columns / self.cost,
        )


def equilibrate(program: ProgramBatch) -> tuple[ProgramBatch, Scales]:
    """The program with largest entries near 1 in every row and column, and the factors."""
    A, E = program.A, program.E
    rows, equal = torch.ones_like(program.b), torch.ones_like(program.h)
    columns = torch.ones_like(program.c)
    for _ in range(RUIZ_ROUNDS):
        by_row, by_equal = A.largest(1), E.largest(1)
        by_column = torch.maximum(A.largest(0), E.largest(0))
        factors = [_inverse(x.sqrt()) for x in (by_row, by_equal, by_column)]
        A, E = A.scale(factors[0], factors[2]), E.scale(factors[1], factors[2])
        rows, equal, columns = rows * factors[0], equal * factors[1], columns * factors[2]
    last = _inverse(A.largest(1)), _inverse(E.largest(1))  # rows last: residuals are compared
    ones = torch.ones_like(columns)
    A, E = A.scale(last[0], ones), E.scale(last[1], ones)
    rows, equal = rows * last[0], equal * last[1]
    c, b, h = program.c * columns, program.b * rows, program.h * equal
    cost = _inverse(_largest_entry(c))
    right = _inverse(torch.maximum(_largest_entry(b), _largest_entry(h)))
    scaled = replace(program, c=c * cost, A=A, b=b * right, E=E, h=h * right)
    return scaled, Scales(rows, equal, columns, cost, right)


def _inverse(size: Tensor) -> Tensor:
    """One over the nearest power of two; 1 for what is zero."""
    return torch.where(size > 0, torch.exp2(-size.log2().round()), 1.0)


def _largest_entry(x: Tensor) -> Tensor:
    return x.abs().amax(1, keepdim=True) if x.shape[1] else x.new_zeros(x.shape[0], 1)

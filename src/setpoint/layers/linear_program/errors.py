"""What can be wrong with a program that is well formed: it has no solution."""

from __future__ import annotations

from torch import Tensor


class ProgramError(ValueError):
    """A linear program without a solution.

    Attributes:
        member: Which member of the batch, in the batch's own shape; ``()`` for a single program.
        ray: The proof, see the two kinds below; empty if there is none.
    """

    def __init__(
        self, message: str, member: tuple[int, ...] = (), ray: tuple[Tensor, ...] = ()
    ) -> None:
        super().__init__(message)
        self.member = member
        self.ray = ray


class InfeasibleProgram(ProgramError):
    """No ``z`` obeys all constraints.

    ``ray`` is ``(v, w)`` (Farkas): with ``v >= 0`` the sum ``v'(A z) + w'(E z)`` of the constraints
    is at least 0 for every admitted ``z`` (equal to 0 if ``z`` is free), while the right sides add
    up to ``v'b + w'h < 0``.
    """


class UnboundedProgram(ProgramError):
    """The objective falls for ever.

    ``ray`` is ``(d,)``: from any feasible point one may walk along ``d`` (``A d <= 0`` and
    ``E d = 0``, with ``d >= 0`` if ``z >= 0``), and every step lowers the cost, ``c'd < 0``.
    """

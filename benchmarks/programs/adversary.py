"""AP-Perf's game as a linear program, solved through our layer.

A predictor picks a set, an adversary a distribution Q over label sets, paid by the F score and tied
to the data by the scores f: ``min over Q of max over sets of E[F1] - f'q`` with q the marginals of
Q (Fathony and Kolter 2020). Q is kept as ``q_il``: the probability that i is in Q's set and the set
has l members. The best answer of k members takes the k largest ``D_ik = sum_l 2 q_il / (k + l)``,
and a sum of the k largest is a small linear program: ``k a_k + sum_i m_ik, m_ik >= D_ik - a_k``.
By Danskin's theorem the gradient in f is ``-q``, so the layer is asked for the value only.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from setpoint.programs import linear_program


@cache
def constraints(n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A, b, E, h over q [n, n], m [n, n], a [n], r [n], t: everything but the costs."""
    k = np.arange(1, n + 1)
    one, eye = np.ones((n, 1)), sp.eye_array(n)
    gains = sp.csr_array(2.0 / (k[:, None] + k[None, :]))  # what a member is worth, by both sizes
    none = {"q": sp.csr_array((n, n * n)), "one": sp.csr_array((n, n)), "t": sp.csr_array((n, 1))}
    over_members = sp.kron(one.T, eye)  # [n, n*n]: sums over i for each size
    rows = [
        # q_il <= r_l, the probability of size l
        [sp.eye_array(n * n), sp.csr_array((n * n, n * n)), sp.csr_array((n * n, n)),
         -sp.kron(one, eye), sp.csr_array((n * n, 1))],
        # D_ik - a_k <= m_ik
        [sp.kron(eye, gains), -sp.eye_array(n * n), -sp.kron(one, eye),
         sp.csr_array((n * n, n)), sp.csr_array((n * n, 1))],
        # k a_k + sum_i m_ik <= t
        [none["q"], over_members, sp.diags_array(k.astype(float)), none["one"], -one],
        # the empty set wins where Q is empty: 1 - sum_l r_l <= t
        [None, None, sp.csr_array((1, n)), -one.T, -np.ones((1, 1))],
        # and that is a probability
        [None, None, sp.csr_array((1, n)), one.T, sp.csr_array((1, 1))],
    ]  # fmt: skip
    A = sp.block_array(rows, format="coo")
    b = torch.zeros(A.shape[0], dtype=torch.float64)
    b[-2:] = torch.tensor([-1.0, 1.0])
    # sum_i q_il = l r_l
    E = sp.hstack(
        [over_members, none["q"], none["one"], sp.diags_array(-k.astype(float)), none["t"]]
    )
    return _sparse(A), b, _sparse(E.tocoo()), torch.zeros(n, dtype=torch.float64)


def _sparse(matrix: sp.coo_array) -> Tensor:
    where = torch.as_tensor(np.stack([matrix.row, matrix.col]), dtype=torch.int64)
    values = torch.as_tensor(matrix.data, dtype=torch.float64)
    return torch.sparse_coo_tensor(where, values, matrix.shape, check_invariants=False).coalesce()


def game(scores: Tensor) -> Tensor:
    """The value of the game; its gradient is minus the adversary's marginals."""
    n = len(scores)
    A, b, E, h = constraints(n)
    by_size = scores.double()[:, None].expand(n, n).reshape(-1)  # f_i costs -q_il for every l
    rest = torch.zeros(n * n + 2 * n, dtype=torch.float64)
    c = torch.cat([-by_size, rest, torch.ones(1, dtype=torch.float64)])
    value, _ = linear_program(c, A, b, E, h, True, value_only=True)
    return value


def game_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """AP-Perf's loss, exactly: minus the game's value tied to the labels."""
    return -(game(scores) + (scores.double() * labels).sum())

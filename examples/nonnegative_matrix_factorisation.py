"""Nonnegative matrix factorisation by linear programs: a few rows explain all the others.

Documents are mixtures of topics, and for each topic some document is about nothing else. A program
finds those pure documents (Bittorf et al., *Factoring nonnegative matrices with linear programs*,
2012). Then the topics are improved by gradient: how well a document is explained is the value of a
program whose constraints contain the topics, and the layer differentiates it. All documents know
the topics better than the pure ones do, whose noise is in the first answer.

Run it: python examples/nonnegative_matrix_factorisation.py
"""

import torch
from torch import Tensor

from setpoint.programs import linear_program

DOCUMENTS, WORDS, TOPICS = 20, 10, 3


def corpus(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Word frequencies of documents, and the true topics; documents 0, 1 and 2 are pure."""
    rng = torch.Generator().manual_seed(seed)
    topics = torch.rand(TOPICS, WORDS, generator=rng, dtype=torch.float64) ** 3
    topics /= topics.sum(1, keepdim=True)
    shares = torch.rand(DOCUMENTS, TOPICS, generator=rng, dtype=torch.float64)
    shares /= shares.sum(1, keepdim=True)
    shares[:TOPICS] = torch.eye(TOPICS)
    noise = 0.01 * torch.randn(DOCUMENTS, WORDS, generator=rng, dtype=torch.float64)
    return (shares @ topics + noise).clamp(min=0), topics


def pure_documents(x: Tensor) -> Tensor:
    """``min |X - C X|`` where ``C >= 0`` has a trace of TOPICS and no entry above its diagonal's.

    Variables: C row by row, then what is missing and what is too much in each word of X.
    """
    n, m = x.shape
    eye = torch.eye(n, dtype=x.dtype)
    tie_breaker = 1e-4 * torch.arange(n, dtype=x.dtype)
    c = torch.cat([torch.diag(tie_breaker).reshape(-1), torch.ones(2 * n * m, dtype=x.dtype)])
    at_most_one = torch.eye(n * n, dtype=x.dtype)[:: n + 1]  # a row for each diagonal entry
    below_diagonal = torch.eye(n * n, dtype=x.dtype) - at_most_one.repeat(n, 1)
    rows = torch.cat([below_diagonal, at_most_one])
    A = torch.cat([rows, torch.zeros(len(rows), 2 * n * m, dtype=x.dtype)], 1).to_sparse()
    b = torch.cat([torch.zeros(n * n), torch.ones(n)]).to(x.dtype)
    words = torch.eye(n * m, dtype=x.dtype)
    explained = torch.cat([torch.kron(eye, x.T.contiguous()), words, -words], 1)
    trace = torch.cat([eye.reshape(-1), torch.zeros(2 * n * m, dtype=x.dtype)])
    E = torch.cat([explained, trace[None]]).to_sparse()
    h = torch.cat([x.reshape(-1), torch.tensor([float(TOPICS)], dtype=x.dtype)])
    z, _ = linear_program(c, A, b, E, h, nonnegative=True)
    return z[: n * n].reshape(n, n).diagonal().topk(TOPICS).indices.sort().values


def misfit(topics: Tensor, x: Tensor) -> Tensor:
    """For each document, ``min |x - w H|`` over shares ``w >= 0``: a batch of programs.

    The topics H stand in the constraints ``H' w + missing - surplus = x``.
    """
    words = torch.eye(WORDS, dtype=x.dtype)
    c = torch.cat([torch.zeros(TOPICS), torch.ones(2 * WORDS)]).to(x.dtype)
    E = torch.cat([topics.T, words, -words], 1)
    values, _ = linear_program(c, None, None, E, x, nonnegative=True, value_only=True)
    return values


def main() -> None:
    x, truth = corpus()
    pure = pure_documents(x)
    print(f"pure documents: {pure.tolist()}")
    topics = x[pure].clone().requires_grad_()
    optimizer = torch.optim.Adam([topics], lr=1e-3)
    report(topics, truth, x)
    for _ in range(40):
        optimizer.zero_grad()
        misfit(topics, x).mean().backward()
        optimizer.step()
        with torch.no_grad():
            topics.clamp_(min=0)
    report(topics, truth, x)


def report(topics: Tensor, truth: Tensor, x: Tensor) -> None:
    off = (topics.detach() - truth).abs().mean()
    print(f"topics off by {off:.4f}, misfit of a document {misfit(topics.detach(), x).mean():.4f}")


if __name__ == "__main__":
    main()

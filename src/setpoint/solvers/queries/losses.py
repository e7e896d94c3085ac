"""A main loss that ranks within queries: it knows no offset between them, and costs one pass.

Pointwise losses ask every score for a probability, and so for an offset between queries that no
ranking needs. Here every relevant document competes with the documents that are not relevant (the
softmax cross-entropy of one against them), and never with another relevant one: ListNet's softmax
over all documents (Cao et al. 2007) would want all relevant scores to be equal.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import torch
from torch import Tensor

from setpoint.solvers.mix import Loss, main_loss, score_gradient
from setpoint.solvers.queries.reading import QuerySample, per_query

LISTWISE = "listwise"


def listwise_gradient(sample: QuerySample) -> Tensor:
    """``d loss / d score``, ``[n]``, of the sum over queries with relevant and other documents.

    The loss of a query is the mean over its relevant documents of ``log(1 + sum_j exp(s_j - s_i))``
    over the others ``j``. A weight is a number of copies.
    """
    queries, ids, (relevant, others) = sample.queries, sample.ids, sample.rows[:2]
    positives, negatives = sample.totals[:, :2].T
    judged = (positives > 0) & (negatives > 0)
    rivals = torch.where(others > 0, sample.scores, -torch.inf)
    highest = torch.as_tensor(
        queries.extreme("amax", rivals if queries.xp is torch else rivals.numpy())
    )
    highest = torch.where(negatives > 0, highest, 0.0)
    odds = torch.exp(rivals - highest[ids]) * others
    against = per_query(queries, odds)  # sum_j exp(s_j - highest): at least one of them is 1
    against = torch.where(negatives > 0, against, 1.0)
    # the share of a relevant document that its rivals take: sum_j / (exp(s_i) + sum_j)
    lost = torch.sigmoid((against.log() + highest)[ids] - sample.scores)
    lost *= relevant * torch.where(judged, 1 / positives, 0.0)[ids]
    taken = per_query(queries, lost) / against
    gradient: Tensor = odds * taken[ids] - lost
    return gradient


def main_gradient(main: str | Loss, scores: Tensor, given: dict[str, Any]) -> Tensor:
    """The gradient of a loss by name or of the user's own, told the queries if it asks, ``[n]``."""
    loss = main_loss(main)
    if "queries" in inspect.signature(getattr(loss, "forward", loss)).parameters:
        loss = partial(loss, queries=given["queries"])
    return score_gradient(loss, scores, given["labels"], given["weights"]).reshape(-1)

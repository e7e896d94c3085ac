"""A main loss that ranks within queries: it knows no offset between them, and costs one softmax.

Pointwise losses ask every score for a probability, and so for an offset between queries that no
ranking needs. The softmax cross-entropy of a query (ListNet, Cao et al. 2007, with the relevant
documents equally likely to be first) asks only for the order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.solvers.queries.reading import QuerySample, per_query


def listwise_gradient(sample: QuerySample) -> Tensor:
    """``d loss / d score``, ``[n]``, of the sum over queries with relevant and other documents.

    The loss of a query is ``-sum_i p_i log softmax(scores)_i`` with ``p_i`` the same for all
    relevant documents. A weight is a number of copies.
    """
    ids, (relevant, others) = sample.ids, sample.rows[:2]
    totals = sample.totals[:, :2]
    weights = relevant + others
    absent = torch.where(weights > 0, sample.scores, -torch.inf)
    highest = torch.as_tensor(
        sample.queries.extreme("amax", absent if sample.queries.xp is torch else absent.numpy())
    )
    odds = torch.exp(absent - highest[ids]) * weights
    sums = per_query(sample.queries, odds)
    both = (totals.amin(-1) > 0)[ids]
    positives = totals[:, 0][ids]
    gradient = odds / sums[ids] - relevant / torch.where(both, positives, 1.0)
    return torch.where(both, gradient, 0.0)

"""What rankers are trained with today, written for ragged queries in plain torch.

Every loss takes scores ``[n]``, grades ``[n]`` (0, 1, 2) and queries ``[n]``, rising. Pairwise and
listwise losses may use the grades; ours sees only whether a document is relevant.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus


def cross_entropy(scores: Tensor, grades: Tensor, queries: Tensor) -> Tensor:
    """Pointwise: is the document relevant?"""
    return binary_cross_entropy_with_logits(scores, (grades > 0).to(scores.dtype))


def pairwise(scores: Tensor, grades: Tensor, queries: Tensor) -> Tensor:
    """RankNet (Burges et al. 2005): the logistic loss of every pair of different grades."""
    better, worse, _ = _pairs(grades, queries)
    return softplus(scores[worse] - scores[better]).mean()


def lambdarank(scores: Tensor, grades: Tensor, queries: Tensor) -> Tensor:
    """LambdaRank (Burges 2010): a pair counts by how much swapping it changes NDCG."""
    better, worse, ids = _pairs(grades, queries)
    with torch.no_grad():
        rank = _ranks(scores, ids)
        discount = 1 / torch.log2(rank + 2.0)
        gains = 2.0**grades - 1
        count = int(ids[-1]) + 1
        ideal = gains / torch.log2(_ranks(grades.double(), ids) + 2.0)
        best = torch.zeros(count, dtype=ideal.dtype).index_add(0, ids, ideal)[ids[better]]
        change = (gains[better] - gains[worse]) * (discount[better] - discount[worse]).abs() / best
    losses = change.to(scores.dtype) * softplus(scores[worse] - scores[better])
    return losses.sum() / count


def listnet(scores: Tensor, grades: Tensor, queries: Tensor) -> Tensor:
    """ListNet (Cao et al. 2007): who is first, by the softmax of the grades."""
    _, ids = torch.unique_consecutive(queries, return_inverse=True)
    count = int(ids[-1]) + 1
    target = torch.exp(grades.to(scores.dtype))
    target = target / torch.zeros(count).index_add(0, ids, target)[ids]
    highest = torch.full((count,), -torch.inf).scatter_reduce(0, ids, scores.detach(), "amax")
    moved = scores - highest[ids]
    total = torch.zeros(count).index_add(0, ids, moved.exp()).log()
    return -(target * (moved - total[ids])).sum() / count


def _pairs(grades: Tensor, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the better and of the worse document of every pair, and the queries from 0."""
    _, ids, lengths = torch.unique_consecutive(queries, return_inverse=True, return_counts=True)
    starts = torch.cumsum(lengths, 0) - lengths
    sizes = lengths[ids]  # every document is paired with all of its query
    first = torch.repeat_interleave(torch.arange(len(ids)), sizes)
    within = torch.arange(len(first)) - torch.repeat_interleave(
        torch.cumsum(sizes, 0) - sizes, sizes
    )
    second = starts[ids[first]] + within
    kept = grades[first] > grades[second]
    return first[kept], second[kept], ids


def _ranks(scores: Tensor, ids: Tensor) -> Tensor:
    """The place of every document in its query, 0 the highest."""
    order = torch.argsort(scores, descending=True, stable=True)
    order = order[torch.argsort(ids[order], stable=True)]
    starts = torch.searchsorted(ids, ids)
    rank = torch.empty_like(ids)
    rank[order] = torch.arange(len(ids)) - starts
    return rank


BASELINES = {
    "cross-entropy": cross_entropy,
    "pairwise": pairwise,
    "LambdaRank": lambdarank,
    "ListNet": listnet,
}

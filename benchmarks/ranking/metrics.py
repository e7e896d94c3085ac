"""Precision, recall and NDCG of the first k, means over all queries as LETOR's tool takes them."""

from pathlib import Path

import numpy as np

KS = (1, 5, 10)
RESULTS = Path(__file__).parents[1] / "results" / "ranking.jsonl"


def metrics(scores: np.ndarray, grades: np.ndarray, queries: np.ndarray) -> dict[str, float]:
    """``{"P@1": ..., "R@1": ..., "N@1": ...}``; a query without relevant documents counts 0."""
    found = per_query(scores, grades, queries)
    return {name: float(values.mean()) for name, values in found.items()}


def per_query(scores: np.ndarray, grades: np.ndarray, queries: np.ndarray) -> dict[str, np.ndarray]:
    """The same for every query, in rising order of ``queries``."""
    names, ids = np.unique(queries, return_inverse=True)
    place, best = (_places(x, ids) for x in (scores, grades))
    gains, discounts = 2.0**grades - 1, 1 / np.log2(place + 2.0)
    ideal = gains / np.log2(best + 2.0)
    relevant = np.bincount(ids, grades > 0)
    found = {}
    for k in KS:
        hits = np.bincount(ids, (grades > 0) & (place < k))
        found[f"P@{k}"] = hits / k
        found[f"R@{k}"] = hits / np.maximum(relevant, 1)
        dcg = np.bincount(ids, gains * discounts * (place < k), len(names))
        most = np.bincount(ids, ideal * (best < k), len(names))
        found[f"N@{k}"] = dcg / np.where(most > 0, most, 1.0)
    return found


def _places(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The place of every document in its query, 0 the highest; equal scores in row order."""
    order = np.lexsort((-values.astype(np.float64), ids))
    starts = np.searchsorted(ids[order], ids[order])
    place = np.empty(len(ids), dtype=np.int64)
    place[order] = np.arange(len(ids)) - starts
    return place

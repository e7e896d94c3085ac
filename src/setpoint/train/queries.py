"""Batches of whole queries: a ranking cannot be learnt from half of its documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import whole
from setpoint.problems.queries import Grouped, query_column
from setpoint.train.samplers import Batch, batches


class WholeQueries:
    """Pass after pass over the queries in a new order, an incomplete last batch left out.

    Args:
        queries: The query of each example, numbers or strings in any order.
        count: Queries in a batch.

    Example:
        >>> sampler = WholeQueries(["a", "a", "b", "c", "c", "c"], 2)
        >>> [len(rows) for rows, _ in sampler.draw(torch.zeros(6), steps=2, seed=0)]
        [5, 4]
    """

    def __init__(self, queries: Any, count: int) -> None:
        length = len(queries)
        column = query_column("query", queries, np.empty(length, dtype=bool))
        self._grouped = Grouped.by(column)
        self.count = min(whole(count, "count", least=1), max(1, len(self._grouped)))
        self.examples = length

    @property
    def size(self) -> int:
        """Examples in a batch, on average."""
        return max(1, -(-self.examples * self.count // max(1, len(self._grouped))))

    def draw(self, labels: Tensor, *, steps: int, seed: int) -> Iterator[Batch]:
        """So many batches; a batch keeps the documents of a query together."""
        if len(labels) != self.examples:
            raise ValueError(
                f"There are {self.examples} examples with a query, and {len(labels)} labels."
            )
        starts, order = self._grouped.starts, self._grouped.order
        for chosen in batches(len(self._grouped), self.count, steps=steps, seed=seed):
            first = starts[chosen.numpy()]
            lengths = starts[chosen.numpy() + 1] - first
            ends = np.cumsum(lengths)
            places = np.arange(ends[-1]) + np.repeat(first - (ends - lengths), lengths)
            yield Batch(torch.as_tensor(places if order is None else order[places]), None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._grouped)} queries, {self.count})"

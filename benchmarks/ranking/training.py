"""One run: whole queries in a batch, averaged weights, the best pass by validation precision."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from time import process_time

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.ranking.data import Documents, Fold
from benchmarks.ranking.metrics import KS, metrics
from setpoint.train import Averaged

BATCH = 64  # queries
Loss = Callable[[Tensor, Documents], Tensor]


def network(kind: str, columns: int) -> nn.Module:
    """A linear scorer, or one hidden layer of 64."""
    if kind == "linear":
        return nn.Linear(columns, 1)
    return nn.Sequential(nn.Linear(columns, 64), nn.ReLU(), nn.Linear(64, 1))


def steps_of(fold: Fold, epochs: int) -> int:
    """How many batches a run trains on."""
    return epochs * (len(torch.unique(fold.train.queries)) // BATCH)


def train(
    fold: Fold, loss: Loss, kind: str, *, learning_rate: float, epochs: int, seed: int
) -> dict[str, object]:
    """For each k the pass with the best validation precision, and what it has on test data."""
    started = process_time()
    torch.manual_seed(seed)
    model = network(kind, fold.train.x.shape[1])
    average, adam = Averaged(model), torch.optim.Adam(model.parameters(), lr=learning_rate)
    best: dict[int, tuple[float, int, dict[str, Tensor]]] = {}
    for epoch in range(epochs):
        for batch in _batches(fold.train, seed * 1000 + epoch):
            value = loss(model(batch.x).squeeze(-1), batch)
            adam.zero_grad()
            value.backward()
            adam.step()
            average.update()
        seen = measure(average.module, fold.validation)
        for k in KS:
            if k not in best or seen[f"P@{k}"] > best[k][0]:
                best[k] = (seen[f"P@{k}"], epoch, deepcopy(average.module.state_dict()))
    row: dict[str, object] = {}
    for k, (value, epoch, weights) in best.items():
        model.load_state_dict(weights)
        row[str(k)] = {
            "validation": value,
            "epoch": epoch,
            "chosen": measure(model, fold.validation),
            "test": measure(model, fold.test),
        }
    return {**row, "seconds": process_time() - started}


@torch.no_grad()
def measure(model: nn.Module, documents: Documents) -> dict[str, float]:
    """All metrics of a scorer."""
    scores = model(documents.x).squeeze(-1).numpy()
    return metrics(scores, documents.grades.numpy(), documents.queries.numpy())


def _batches(documents: Documents, seed: int) -> Iterator[Documents]:
    """Batches of whole queries in a new order, an incomplete last one left out."""
    queries = documents.queries.numpy()
    starts = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
    ends = np.r_[starts[1:], len(queries)]
    order = np.random.default_rng(seed).permutation(len(starts))
    for first in range(0, len(order) - BATCH + 1, BATCH):
        chosen = np.sort(order[first : first + BATCH])
        spans = zip(starts[chosen], ends[chosen], strict=True)
        rows = torch.as_tensor(np.concatenate([np.arange(a, b) for a, b in spans]))
        yield Documents(*(column[rows] for column in documents))

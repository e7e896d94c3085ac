"""Data for tests: plain functions of a seed, shared by all rooms.

Scores are float64 normals whose positives (or own class) lie ``gap`` higher; with ``ties`` they are
rounded to eighths, which are exact in binary: many are equal, and stay so under sums.
"""

import numpy as np
import torch


def tied(scores, ties=True):
    """The scores, or those in eighths."""
    return (8 * scores).round() / 8 if ties else scores


def draw(n=90, seed=0, *, gap=1.0, share=0.3, ties=False, features=0, dtype=torch.float64):
    """Scores ``[n]``, or features ``[n, features]``, and labels; a ``share`` of them is 1."""
    rng = torch.Generator().manual_seed(seed)
    labels = (torch.rand(n, generator=rng) < share).long()
    shape = (n, features) if features else (n,)
    drawn = torch.randn(shape, generator=rng, dtype=dtype)
    scores = drawn + gap * (labels[:, None] if features else labels)
    return tied(scores, ties), labels


def draw_array(n=90, seed=0, *, gap=1.0, share=0.3, features=0):
    """As :func:`draw`, in arrays; of features, ``gap`` may have one entry each."""
    random = np.random.default_rng(seed)
    labels = (random.random(n) < share).astype(int)
    drawn = random.normal(size=(n, features) if features else n)
    return drawn + gap * (labels[:, None] if features else labels), labels


def draw_groups(n=240, groups=2, seed=0, *, ties=False):
    """Scores, labels and the group of each as an array; later groups have more positives."""
    random = np.random.default_rng(seed)
    members = random.integers(0, groups, n)
    labels = (random.random(n) < 0.35 + 0.1 * members).astype(int)
    scores = random.normal(size=n) + labels + 0.5 * members
    return torch.tensor(tied(scores, ties)), torch.tensor(labels), members


def draw_classes(n=90, classes=4, seed=0, ties=False):
    """Scores ``[n, K]`` in which the true class is 1.2 higher, and labels ``[n]``; all classes."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    scores = rng.normal(size=(n, classes))
    scores[np.arange(n), labels] += 1.2
    return torch.from_numpy(tied(scores, ties)), torch.from_numpy(labels)


def draw_queries(lengths=(12, 30, 7, 21), seed=0, *, ties=False):
    """Scores, labels and the query of each document; every query has both labels."""
    rng = torch.Generator().manual_seed(seed)
    queries = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    labels = (torch.rand(len(queries), generator=rng) < 0.35).long()
    first = torch.searchsorted(queries, torch.arange(len(lengths)))
    labels[first], labels[first + 1] = 1, 0
    scores = torch.randn(len(queries), generator=rng, dtype=torch.float64) + labels
    return tied(scores, ties), labels, queries


SOME = torch.tensor([0.3, -1.0, 2.0, 0.5, 0.5, -0.2])
MIXED = torch.tensor([1, 0, 1, 0, 0, 1])
FEW = torch.tensor([1, 0, 1, 0, 0, 0])
APART = torch.tensor([-5.0, -4, -3, 3, 4, 5])
HARD_BATCHES = {
    "no positives": (SOME, torch.zeros(6)),
    "no negatives": (SOME, torch.ones(6)),
    "one example": (SOME[:1], torch.ones(1)),
    "one of each": (SOME[:2], torch.tensor([1, 0])),
    "constant scores": (torch.full((6,), 0.7), FEW),
    "zero scores": (torch.zeros(6), FEW),
    "ties": (torch.tensor([1.0, 1, 1, 2, 2, 2]), MIXED),
    "nearly all tied": (torch.tensor([1.0] * 5 + [2.0]), MIXED),
    "separated": (APART, torch.tensor([0, 0, 0, 1, 1, 1])),
    "wrong": (APART, torch.tensor([1, 1, 1, 0, 0, 0])),
    "huge": (SOME * 1e30, MIXED),
    "tiny": (SOME * 1e-30, MIXED),
    "an outlier": (torch.tensor([1e20, 0.1, 0.2, 0.3, 0.4, 0.5]), torch.tensor([0, 1] * 3)),
    "half precision": (SOME.bfloat16(), MIXED),
    "booleans": (SOME, MIXED.bool()),
    "a column": (SOME[:, None], MIXED),
    "empty": (torch.empty(0), torch.empty(0)),
}
"""Batches of scores and labels that nobody planned: every criterion gives them a finite loss."""


def loss_and_gradient(criterion, scores, labels, **more):
    """The loss of a batch and its gradient on the scores."""
    leaf = scores.detach().clone().requires_grad_()
    loss = criterion(leaf, labels, **more)
    loss.backward()
    return loss.detach(), leaf.grad

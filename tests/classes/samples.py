"""Scores of several classes for the tests."""

import numpy as np
import torch


def draw(n=90, classes=4, seed=0, ties=False):
    """Scores ``[n, K]`` in which the true class is 1.2 higher, and labels ``[n]``; all classes."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    scores = rng.normal(size=(n, classes))
    scores[np.arange(n), labels] += 1.2
    scores = (8 * scores).round() / 8 if ties else scores  # exact in binary: ties stay ties
    return torch.from_numpy(scores), torch.from_numpy(labels)


def loss_and_gradient(criterion, scores, labels, **keywords):
    leaf = scores.detach().clone().requires_grad_()
    loss = criterion(leaf, labels, **keywords)
    loss.backward()
    return loss.detach(), leaf.grad

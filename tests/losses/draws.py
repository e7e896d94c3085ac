"""The losses with their options, and batches to try them on."""

from functools import partial

import torch

from setpoint import balanced_error, error, f_score, losses
from setpoint.rates import jaccard

PARTITION = [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.5]]
BINARY = {
    "auc": partial(losses.auc_loss),
    "auc, margin 0.3": partial(losses.auc_loss, margin=0.3),
    "auc, ramp": partial(losses.auc_loss, surrogate="ramp"),
    "auc, narrow ramp": partial(losses.auc_loss, surrogate="ramp", margin=0.2),
    "partial auc from 0": partial(losses.partial_auc_loss, fpr=(0, 0.27), margin=1.5),
    "partial auc inside": partial(losses.partial_auc_loss, fpr=(0.13, 0.6)),
    "partial auc, less than one negative": partial(losses.partial_auc_loss, fpr=(0, 0.01)),
    "partial auc, whole": partial(losses.partial_auc_loss, fpr=(0, 1)),
    "f1": partial(losses.f_score_loss, threshold=0.0),
    "f2, no lift": partial(losses.f_score_loss, beta=2, margin=0.5, threshold=0.0, lift=False),
    "f1 at 0.4": partial(losses.f_score_loss, threshold=0.4),
    "f1 at its best": partial(losses.f_score_loss),
    "f0.5 at its best": partial(losses.f_score_loss, threshold="best", beta=0.5, margin=2),
    "jaccard": partial(losses.jaccard_loss, threshold=0.0),
    "jaccard at its best": partial(losses.jaccard_loss),
    "precision at recall 0.8": partial(losses.precision_at_recall_loss, recall=0.8),
    "precision at recall 1": partial(losses.precision_at_recall_loss, recall=1.0, margin=0.4),
    "fpr at recall 0.6": partial(losses.precision_at_recall_loss, recall=0.6, objective="fpr"),
    "structural f1": partial(losses.structural_loss, metric=f_score(1)),
    "structural jaccard": partial(losses.structural_loss, metric=jaccard, margin=0.5),
    "structural error": partial(losses.structural_loss, metric=error, threshold=-0.3),
    "structural balanced error": partial(losses.structural_loss, metric=balanced_error),
}
CLASSES = {
    "mu": partial(losses.multiclass_auc_loss),
    "mu, costs": partial(losses.multiclass_auc_loss, partition=PARTITION, margin=2),
    "mu, ramp": partial(losses.multiclass_auc_loss, surrogate="ramp"),
    "one vs all": partial(losses.multiclass_auc_loss, kind="one_vs_all"),
}
LOSSES = {**BINARY, **CLASSES}


def draw(name, n=24, seed=0, *, ties=False, shift=0.0):
    """Scores, labels and weights for a loss; with ties, scores are multiples of a half."""
    rng = torch.Generator().manual_seed(seed)
    classes = name in CLASSES
    labels = (
        torch.randint(0, 3, (n,), generator=rng)
        if classes
        else (torch.rand(n, generator=rng) < 0.4).long()
    )
    labels[:3] = torch.tensor([0, 1, 2 if classes else 1])  # every class is there
    size = (n, 3) if classes else (n,)
    scores = torch.randn(size, generator=rng, dtype=torch.float64) + shift
    scores = scores + (torch.nn.functional.one_hot(labels, 3) if classes else labels)
    weights = torch.rand(n, generator=rng, dtype=torch.float64) + 0.1
    if ties:
        scores, weights = (2 * scores).round() / 2, (3 * weights).round()
    return scores, labels, weights


def value_and_gradient(loss, scores, labels, **keywords):
    leaf = scores.detach().clone().requires_grad_()
    value = loss(leaf, labels, **keywords)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient

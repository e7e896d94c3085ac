"""What undoes a sampler's choice: rates count by it, the main loss takes the batch as drawn."""

import pytest
import torch

from setpoint import Implicit, Stratified, fit, fnr_at_fpr
from setpoint.solvers import cross_entropy

GOAL = fnr_at_fpr(0.2)


def draw(n=60):
    random = torch.Generator().manual_seed(0)
    labels = (torch.rand(n, generator=random) < 0.4).long()
    scores = torch.randn(n, generator=random, dtype=torch.float64) + labels
    resampling = torch.where(labels > 0, 0.25, 1.5).double()
    return scores.requires_grad_(), labels, resampling


def gradient(criterion, scores, labels, **given):
    (found,) = torch.autograd.grad(criterion(scores, labels, **given), scores)
    return found


def test_rates_and_thresholds_count_by_it():
    scores, labels, resampling = draw()
    one, other = Implicit(GOAL, share=0.0), Implicit(GOAL, share=0.0)
    undone = gradient(one, scores, labels, resampling=resampling)
    assert torch.equal(undone, gradient(other, scores, labels, weights=resampling))
    assert torch.equal(one.thresholds, other.thresholds)
    plain = gradient(Implicit(GOAL, share=0.0), scores, labels)
    assert not torch.allclose(undone, plain)


def test_the_main_loss_does_not():
    scores, labels, resampling = draw()
    (drawn,) = torch.autograd.grad(cross_entropy(scores, labels), scores)
    found = gradient(Implicit(GOAL, share=1.0), scores, labels, resampling=resampling)
    assert torch.allclose(found, drawn)
    weights = torch.linspace(0.5, 2, len(labels)).double()
    (weighted,) = torch.autograd.grad(cross_entropy(scores, labels, weights=weights), scores)
    both = {"weights": weights, "resampling": resampling}
    assert torch.allclose(gradient(Implicit(GOAL, share=1.0), scores, labels, **both), weighted)


@pytest.mark.parametrize("shape", [(60,), (60, 1), (60, 2)], ids=str)
def test_both_weights_multiply_in_any_shape(shape):
    scores, labels, resampling = draw()
    weights = torch.linspace(0.5, 2, 120).double()[:: 120 // torch.Size(shape).numel()]
    weights, two = weights.reshape(shape), scores.detach()[:, None].repeat(1, 2).requires_grad_()
    answers = labels[:, None].expand(-1, 2)
    both = {"weights": weights, "resampling": resampling}
    found = gradient(Implicit(GOAL, share=0.0), two, answers, **both)
    product = weights.reshape(60, -1) * resampling[:, None]
    whole = gradient(Implicit(GOAL, share=0.0), two, answers, weights=product.expand(60, 2))
    assert torch.equal(found, whole)


def test_the_loop_keeps_both_apart_where_the_criterion_takes_them():
    seen = []

    class Watched(Implicit):
        def forward(self, scores, labels, *, weights=None, groups=None, resampling=None):
            seen.append((weights, resampling))
            return super().forward(scores, labels, weights=weights, resampling=resampling)

    x = torch.randn(400, 3)
    y = (torch.arange(400) % 20 == 0).long()
    own = torch.linspace(1, 2, 400)
    options = {"steps": 2, "batch_size": 50, "learning_rate": 0.01, "seed": 0, "weights": own}
    fit(torch.nn.Linear(3, 1), Watched(GOAL), x, y, sampler=Stratified(50), **options)
    weights, resampling = seen[0]
    assert sorted(resampling.unique().tolist()) == pytest.approx([0.125, 0.95 * 50 / 30])
    assert weights.min() >= 1


def test_a_batch_holds_a_fifth_of_the_rarer_class_or_its_own_share():
    for share, count in ((0.02, 20), (0.1, 20), (0.3, 30)):
        labels = (torch.arange(1000) < 1000 * share).long()
        rows, weights = next(Stratified(100).draw(labels, steps=1, seed=0))
        assert int(labels[rows].sum()) == count
        assert float((weights * labels[rows]).sum()) == pytest.approx(100 * share, rel=1e-5)

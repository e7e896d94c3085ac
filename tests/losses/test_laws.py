"""Laws of the metric losses. Float64; algebra to 1e-12, finite differences to 1e-6."""

import pytest
import torch
from losses.draws import BINARY, CLASSES, LOSSES, draw, value_and_gradient
from strategies import FACTOR
from torch.testing import assert_close

every_loss = pytest.mark.parametrize("name", LOSSES)
every_binary_loss = pytest.mark.parametrize("name", BINARY)
with_and_without_ties = pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
EXACT = {"rtol": 1e-12, "atol": 1e-13}
CONVEX = [
    *("auc", "auc, margin 0.3", "partial auc from 0", "partial auc, less than one negative"),
    *("fpr at recall 0.6", "structural f1", "structural jaccard", "structural balanced error"),
    *("mu", "mu, costs", "one vs all"),
]


@pytest.mark.parametrize("name", ["auc", "auc, ramp", "partial auc inside"])
def test_a_shift_costs_no_digits(name):
    """Halves are exact around 2^50; sums of so large scores would not be."""
    scores, labels, weights = draw(name, ties=True)
    value, gradient = value_and_gradient(LOSSES[name], scores, labels, weights=weights)
    again, same = value_and_gradient(LOSSES[name], scores + 2.0**50, labels, weights=weights)
    assert_close(again, value, rtol=0, atol=0)
    assert_close(same, gradient, rtol=0, atol=0)


@pytest.mark.parametrize("name", CONVEX)
@with_and_without_ties
def test_convex_losses_lie_above_their_tangents(name, ties):
    """At ties there is no gradient, and any one that supports the loss will do: ours does."""
    scores, labels, weights = draw(name, ties=ties)
    value, gradient = value_and_gradient(LOSSES[name], scores, labels, weights=weights)
    rng = torch.Generator().manual_seed(1)
    for size in (0.01, 0.5, 3.0):
        for _ in range(10):
            step = size * torch.randn(scores.shape, generator=rng, dtype=torch.float64)
            there = LOSSES[name](scores + step, labels, weights=weights)
            assert there >= value + (gradient * step).sum() - 1e-12


@every_loss
def test_scores_and_margins_have_the_same_unit(name):
    scores, labels, _ = draw(name)
    if BINARY.get(name) and "threshold" in BINARY[name].keywords and "best" not in name:
        pytest.skip("its threshold has the unit of the scores, too")
    loss = LOSSES[name]
    margin = loss.keywords.get("margin", 1.0)
    value, gradient = value_and_gradient(loss, scores, labels)
    again, scaled = value_and_gradient(
        lambda s, y: loss.func(s, y, **{**loss.keywords, "margin": 8 * margin}), 8 * scores, labels
    )
    assert_close(again, value, **EXACT)
    assert_close(8 * scaled, gradient, **EXACT)


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_low_precision_scores_are_counted_in_double_precision(name, dtype):
    scores, labels, weights = draw(name, n=200)
    low = scores.to(dtype)
    value, gradient = value_and_gradient(LOSSES[name], low, labels, weights=weights)
    exact, exact_gradient = value_and_gradient(LOSSES[name], low.double(), labels, weights=weights)
    assert value.dtype == torch.float32
    assert gradient.dtype == dtype
    assert_close(value, exact.float(), rtol=1e-6, atol=0)
    assert_close(gradient, exact_gradient.to(dtype), rtol=0.01, atol=1e-6)


@every_loss
def test_without_gradients_the_value_is_the_same(name):
    scores, labels, weights = draw(name)
    value, _ = value_and_gradient(LOSSES[name], scores, labels, weights=weights)
    with torch.no_grad():
        bare = LOSSES[name](scores.requires_grad_(), labels, weights=weights)
    assert not bare.requires_grad
    assert_close(bare, value, rtol=0, atol=0)


def test_losses_compile_without_a_break():
    """Two of them, as compiling takes seconds; with SETPOINT_EXAMPLES=2 one of each kind."""
    names = ["partial auc inside", "precision at recall 0.8"]
    if FACTOR > 1:
        names += ["auc, ramp", "f1", "jaccard at its best", "mu, costs"]
    parts = {name: draw(name) for name in names}

    def total(*scores):
        batches = zip(parts, scores, parts.values(), strict=True)
        return sum(LOSSES[name](s, y, weights=w) for name, s, (_, y, w) in batches)

    results = []
    torch._dynamo.reset()
    for run in (total, torch.compile(total, fullgraph=True, backend="aot_eager")):
        leaves = [scores.clone().requires_grad_() for scores, *_ in parts.values()]
        loss = run(*leaves)
        loss.backward()
        results.append((loss.detach(), [leaf.grad for leaf in leaves]))
    assert_close(results[1], results[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLASSES)
def test_what_classes_share_does_not_matter_to_pairs_of_them(name):
    """AUC_mu compares differences of scores, if each row of costs says the same of all classes."""
    if name not in ("mu", "mu, ramp"):
        pytest.skip("its costs or its scores are not differences")
    scores, labels, weights = draw(name)
    value, gradient = value_and_gradient(LOSSES[name], scores, labels, weights=weights)
    again, _ = value_and_gradient(LOSSES[name], scores + 5 * scores[:, :1], labels, weights=weights)
    assert_close(again, value, **EXACT)
    assert gradient.sum(1).abs().max() < 1e-14

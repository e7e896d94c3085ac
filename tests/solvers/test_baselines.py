"""Cross-entropy, weighted and focal: the textbook's numbers, and the exact threshold after them."""

import pytest
import torch
from samples import draw
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from setpoint import CrossEntropy, fnr_at_fpr, recall_at_precision, roc_auc
from setpoint.solvers import focal


def test_plain_weighted_and_focal_are_the_textbooks():
    s, y = draw(60)
    pos = 3.0
    torch.testing.assert_close(CrossEntropy()(s, y), bce(s, y.double()))
    each = bce(s, y.double(), reduction="none") * torch.where(y > 0, pos, 1.0)
    shares = torch.where(y > 0, pos, 1.0).double()
    torch.testing.assert_close(CrossEntropy(positives=pos)(s, y), each.sum() / shares.sum())
    torch.testing.assert_close(CrossEntropy(gamma=2)(s, y), focal(s, y))


def test_balanced_classes_weigh_the_same():
    s, y = draw(60)
    each = bce(s, y.double(), reduction="none")
    expected = (each[y == 1].mean() + each[y == 0].mean()) / 2
    torch.testing.assert_close(CrossEntropy(positives="balanced")(s, y), expected)
    weights = torch.rand(60, dtype=torch.float64)
    copies = torch.cat([torch.arange(60), torch.arange(20)])
    double = torch.ones(60, dtype=torch.float64)
    double[:20] = 2
    found = CrossEntropy(positives="balanced")(s, y, weights=double)
    torch.testing.assert_close(found, CrossEntropy(positives="balanced")(s[copies], y[copies]))
    assert CrossEntropy(positives="balanced")(s[:, None], y, weights=weights).isfinite()


def test_several_outputs_are_balanced_each_by_itself():
    s, y = draw(80)
    wide, labels = s.reshape(40, 2), y.reshape(40, 2)
    parts = [CrossEntropy(positives="balanced")(wide[:, i], labels[:, i]) for i in (0, 1)]
    found = CrossEntropy(positives="balanced")(wide, labels)
    torch.testing.assert_close(found, torch.stack(parts).mean())


def test_the_exact_threshold_follows():
    s, y = draw(60)
    problem = fnr_at_fpr(0.1)
    criterion = CrossEntropy(problem)
    assert criterion.status == "not started"
    criterion(s, y)
    assert criterion.stats()["hard_objective"] == problem.evaluate(s, y)
    assert criterion.stats()["threshold"] == problem.choose(s, y).thresholds[0]
    assert criterion.status == "held"
    area = CrossEntropy(roc_auc((0, 0.5), points=3))
    area(s, y)
    assert len(area.stats()["threshold"]) == 3


@pytest.mark.parametrize("positives", [1.0, "balanced", 4.0])
@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1], [1, 0, 1]])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e30])
def test_batches_nobody_planned(labels, scale, positives):
    leaf = (scale * torch.tensor([1.0, 1.0, -2.0])).requires_grad_()
    criterion = CrossEntropy(fnr_at_fpr(0.5), positives=positives)
    loss = criterion(leaf, torch.tensor(labels))
    loss.backward()
    assert loss.isfinite()
    assert leaf.grad.isfinite().all()
    assert isinstance(criterion.status, str)
    assert CrossEntropy()(torch.empty(0), torch.empty(0)) == 0


def test_an_unreachable_goal_is_a_status():
    criterion = CrossEntropy(recall_at_precision(0.9))
    criterion(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 0]))
    assert criterion.status.startswith("infeasible")


def test_it_compiles_without_a_graph_break():
    s, y = draw(60)
    torch._dynamo.reset()
    criterion = CrossEntropy(positives="balanced", gamma=2)
    run = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(run(s, y), CrossEntropy(positives="balanced", gamma=2)(s, y))


def test_bad_input_is_refused():
    s, y = draw(60)
    with pytest.raises(TypeError, match="takes a Problem"):
        CrossEntropy(3.0)
    with pytest.raises(ValueError, match="'balanced' or a number"):
        CrossEntropy(positives="auto")
    with pytest.raises(ValueError, match="Labels must be 0 or 1; got 2"):
        CrossEntropy()(s, y + 1)
    with pytest.raises(ValueError, match="labels must have the shape"):
        CrossEntropy()(s, y[:5])
    with pytest.raises(ValueError, match="finite"):
        CrossEntropy()(s * torch.nan, y)


@pytest.mark.parametrize("options", [{}, {"gamma": 2.0}, {"positives": "balanced"}], ids=str)
def test_a_mean_of_large_losses_is_finite(options):
    """Their sum is beyond float32."""
    scores = torch.full((60,), 8.5e37, dtype=torch.float32, requires_grad=True)
    loss = CrossEntropy(**options)(scores, torch.arange(60) % 2)
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()

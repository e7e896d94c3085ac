"""Areas over the other axis: true positive rates of a ROC curve, precision of a PR curve."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import setpoint as sp


def draw(n=300, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.3).astype(int)
    scores = rng.normal(size=n) + 1.5 * labels
    return (scores.round(1) if ties else scores), labels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("low", [0.0, 0.5, 0.83])
def test_over_true_positives_it_is_the_roc_curve_with_both_classes_swapped(low, ties):
    scores, labels = draw(ties=ties)
    expected = roc_auc_score(1 - labels, -scores, max_fpr=1 - low)
    assert sp.roc_auc(tpr=(low, 1)).evaluate(scores, labels) == pytest.approx(expected, rel=1e-12)
    mirrored = sp.roc_auc(fpr=(0, 1 - low)).evaluate(-scores, 1 - labels)
    assert mirrored == pytest.approx(expected, rel=1e-12)


def test_a_slice_has_the_same_two_axes():
    scores, labels = draw()
    here = np.arange(300) % 2
    sliced = sp.Problem(maximize=sp.tnr.on(group=1), subject_to=sp.tpr.on(group=1).over(0.8, 1))
    expected = sp.roc_auc(tpr=(0.8, 1)).evaluate(scores[here == 1], labels[here == 1])
    found = sliced.evaluate(scores, labels, groups=here)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_over_precision_it_is_the_mean_of_the_best_recall_at_each_level(seed, ties):
    scores, labels = draw(120, seed, ties)
    levels = np.linspace(0.6, 1, 4001)[:-1] + 0.4 / 8000  # mid-points of 4,000 bins
    accepted = [scores > t for t in [-np.inf, *np.unique(scores)]]
    points = [(labels[a].mean(), labels[a].sum() / labels.sum()) for a in accepted if a.any()]
    best = [max([r for p, r in points if p >= level], default=0.0) for level in levels]
    found = sp.pr_auc(precision=(0.6, 1)).evaluate(scores, labels)
    # the curve jumps at 120 places at most, by 1 in all: half a bin of 1/4000 each way
    assert found == pytest.approx(np.mean(best), abs=1 / 4000)


def test_a_level_that_nothing_reaches_counts_as_nothing_found():
    scores, labels = [3.0, 2.0, 1.0], [0, 1, 0]  # the best precision is 1/2
    assert sp.pr_auc(precision=(0.5, 1)).evaluate(scores, labels) == 0
    assert sp.pr_auc(precision=(0.3, 0.7)).evaluate(scores, labels) == pytest.approx(0.5)
    with pytest.raises(sp.Infeasible, match="the nearest gives"):
        sp.pr_auc(precision=(0.5, 1), points=2).choose(scores, labels)


def test_thresholds_reach_their_floors():
    scores, labels = draw()
    problem = sp.pr_auc(precision=(0.5, 0.9), points=4)
    found = problem.choose(scores, labels)
    for threshold, level in zip(found.thresholds, (0.55, 0.65, 0.75, 0.85), strict=True):
        alone = sp.recall_at_precision(level).choose(scores, labels)
        assert threshold == alone.thresholds[0]
        assert labels[scores > threshold].mean() >= level - 1e-12


@pytest.mark.parametrize(
    "problem",
    [sp.roc_auc(tpr=(0.8, 1), points=3), sp.pr_auc(precision=(0.6, 0.9), points=3)],
    ids=str,
)
def test_they_read_back_and_train(problem):
    assert sp.Problem.parse(str(problem)) == problem
    scores, labels = (torch.as_tensor(x) for x in draw())
    for criterion in (sp.Implicit(problem), sp.Lagrangian(problem)):
        leaf = scores.clone().requires_grad_()
        criterion(leaf, labels).backward()
        assert leaf.grad.isfinite().all()
        assert leaf.grad.abs().sum() > 0
    assert criterion.status
    held = sp.Implicit(problem)
    held(scores.clone().requires_grad_(), labels)
    assert held.status == "held"


def test_in_training_several_floors_are_as_many_problems():
    scores, labels = (torch.as_tensor(x) for x in draw())
    gradients = []
    for problem in (
        sp.recall_at_precision(0.65),
        sp.recall_at_precision(0.75),
        sp.pr_auc(precision=(0.6, 0.8), points=2),
    ):
        leaf = scores.clone().requires_grad_()
        sp.Implicit(problem, share=0.0)(leaf, labels).backward()
        gradients.append(leaf.grad)
    expected = (gradients[0] + gradients[1]) / 2
    torch.testing.assert_close(gradients[2], expected, rtol=1e-12, atol=1e-15)


def test_what_cannot_be_reached_in_a_batch_is_said():
    criterion = sp.Implicit(sp.pr_auc(precision=(0.9, 1), points=2))
    criterion(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 0]))
    assert criterion.status.startswith("infeasible (gap 0.47)")


def test_other_shares_of_right_decisions_can_be_swept_and_wrong_ones_cannot():
    assert sp.npv.over(0.5, 1).floors
    assert not sp.recall.over(0.5, 1).floors
    with pytest.raises(ValueError, match="error is neither"):
        sp.error.over(0, 0.5)
    with pytest.raises(TypeError, match="give fpr= or tpr=, not both"):
        sp.roc_auc(fpr=(0, 1), tpr=(0, 1))
    with pytest.raises(TypeError, match="give recall= or precision=, not both"):
        sp.pr_auc((0, 1), precision=(0, 1))
    assert sp.precision.over(0.5, 1).setpoints(1) == ((sp.precision >= 0.75),)

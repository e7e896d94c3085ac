import numpy as np
import pytest
from sklearn import metrics

from setpoint import fnr_at_fpr
from setpoint.results import mean_curve, roc_curve, tpr_at
from setpoint.results.curves import histogram


def sample(seed: int, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = (random.random(300) < 0.2).astype(int)
    scores = random.normal(size=300) + labels
    return (scores.round(1) if ties else scores), labels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_points_are_those_of_scikit_learn(seed, ties):
    scores, labels = sample(seed, ties)
    fpr, tpr, _ = metrics.roc_curve(labels, scores, drop_intermediate=False)
    curve = roc_curve(scores, labels)
    np.testing.assert_allclose(curve.fpr, fpr, rtol=0, atol=1e-15)
    np.testing.assert_allclose(curve.tpr, tpr, rtol=0, atol=1e-15)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_curve_passes_through_what_the_problem_reports(seed, ties):
    scores, labels = sample(seed, ties)
    curve = roc_curve(scores, labels)
    for level in (0.0, 0.01, 0.05, 0.29, 1.0):
        miss = fnr_at_fpr(level).evaluate(scores, labels)
        assert tpr_at(curve, level) == pytest.approx(1 - miss, abs=1e-12)


def test_levels_compare_as_counts():
    labels = np.repeat([0, 1], [100, 1])
    scores = np.append(np.arange(100.0), 89.5)  # 10 negatives above the positive
    tenth = 1 - 0.9
    assert tenth < 10 / 100  # what floats make of it
    assert tpr_at(roc_curve(scores, labels), [0.09, tenth]).tolist() == [0.0, 1.0]


def test_the_mean_is_taken_at_each_level():
    good, bad = roc_curve([3, 2, 1, 0], [1, 1, 0, 0]), roc_curve([3, 2, 1, 0], [0, 1, 0, 1])
    mean = mean_curve([good, bad], [0.0, 0.5, 1.0])
    assert mean.fpr.tolist() == [0.0, 0.5, 1.0]
    assert mean.tpr.tolist() == [0.5, 0.75, 1.0]
    with pytest.raises(ValueError, match="at least one curve"):
        mean_curve([], 0.1)


@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_one_class_has_no_curve(labels):
    with pytest.raises(ValueError, match="both classes; got"):
        roc_curve([0.1, 0.2], labels)


def test_bad_scores_and_labels_are_named():
    with pytest.raises(ValueError, match="got nan in row 1"):
        roc_curve([0.1, np.nan], [0, 1])
    with pytest.raises(ValueError, match="got 2 in row 0"):
        roc_curve([0.1, 0.2], [2, 1])


def test_a_histogram_is_not_stretched_by_one_score_far_away():
    """The middle 99 % and as much again on either side; what is beyond is in the last bins."""
    scores = np.append(np.linspace(10, 20, 999), [1e6])
    edges = histogram(scores, np.arange(1000) % 2 == 0).edges
    assert edges[0] == 10
    assert 20 < edges[-1] < 31
    edges = histogram(-scores, np.arange(1000) % 2 == 0).edges
    assert edges[-1] == -10
    assert -31 < edges[0] < -20

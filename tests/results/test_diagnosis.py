"""What limits a model at its operating point."""

import numpy as np
import pytest
from samples import draw_array

import setpoint as sp
from setpoint.rates import lift
from setpoint.results import diagnose
from setpoint.results.diagnosis import _FEWEST, STEP, _limit

GOAL = sp.fnr_at_fpr(0.01)


def sample(seed, n=4000, shift=2.0, share=0.2):
    return draw_array(n, seed, gap=shift, share=share)


def test_a_model_that_is_no_better_on_its_training_data_is_too_weak():
    found = diagnose(*sample(0), GOAL, train=sample(1))
    assert found.limit == "capacity"
    assert "Implicit" in found.advice[0]


def test_a_model_that_knows_its_training_data_lacks_data():
    found = diagnose(*sample(0), GOAL, train=sample(1, shift=6.0))
    assert found.limit == "data"
    assert found.train < found.value
    assert "More examples" in found.advice[0]


def test_few_examples_are_noise_and_the_rarer_class_is_named():
    goal = sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.3)
    found = diagnose(*sample(0, n=20, share=0.4), goal)
    assert found.limit == "noise"
    scarce = "positives" if found.positives <= found.negatives else "negatives"
    assert f"Too few {scarce}" in found.advice[0]


def test_without_training_scores_capacity_and_data_are_not_told_apart():
    found = diagnose(*sample(0), GOAL)
    assert (found.limit, found.train) == ("unknown", None)
    assert "train=" in found.advice[0]


def test_the_noise_is_the_standard_error_over_fresh_samples():
    fresh = [GOAL.evaluate(*sample(seed)) for seed in range(200)]
    found = diagnose(*sample(0), GOAL, draws=200)
    assert found.noise == pytest.approx(np.std(fresh), rel=0.35)
    assert diagnose(*sample(0, n=64_000), GOAL).noise < found.noise / 2.5


def test_effective_examples_are_those_of_the_kernel_at_the_threshold():
    scores, labels = sample(0)
    threshold = GOAL.choose(scores, labels).thresholds[0]
    kernel = np.cosh((scores - threshold) / STEP.width_of(scores.std()) / 2) ** -2.0
    expected = [kernel[labels == c].sum() ** 2 / (kernel[labels == c] ** 2).sum() for c in (1, 0)]
    found = diagnose(scores, labels, GOAL)
    assert [found.positives, found.negatives] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "problem", [sp.roc_auc(fpr=(0, 0.05)), sp.Problem(maximize=sp.f_score(1))], ids=str
)
def test_areas_and_goals_without_bounds(problem):
    found = diagnose(*sample(0), problem, train=sample(1))
    assert found.limit == "capacity"
    assert 0 < found.noise < 0.1
    assert problem.evaluate(*sample(0)) == found.value


def test_shifting_and_scaling_scores_changes_nothing():
    scores, labels = sample(0)
    one, other = (diagnose(s, labels, GOAL) for s in (scores, 8 * scores - 16))
    assert one == other


def test_several_thresholds_count_by_the_scarcest():
    scores, labels = sample(0)
    area = sp.roc_auc(fpr=(0, 0.05))
    points = [
        diagnose(scores, labels, sp.fnr_at_fpr(0.005 * (i + 0.5))).negatives for i in range(10)
    ]
    assert diagnose(scores, labels, area).negatives == pytest.approx(min(points), rel=0.2)


def test_constant_scores_are_told():
    labels = np.arange(50) < 10
    found = diagnose(
        np.zeros(50), labels, sp.Problem(maximize=sp.f_score(1)), train=(labels, labels)
    )
    assert found.limit == "data"
    assert np.isfinite(found.noise)
    assert found.advice[0].startswith("All scores are the same")


@pytest.mark.parametrize("positives", [2, 5])
def test_a_handful_of_positives_is_noise_though_all_are_missed(positives):
    """The bootstrap has no spread where all draws miss all of them."""
    r = np.random.default_rng(0)
    labels = np.arange(2000) < positives
    scores = r.normal(size=2000) - 5 * labels
    found = diagnose(scores, labels, GOAL, train=(scores, labels))
    assert (found.value, found.noise) == (1, 0)
    assert found.limit == "noise"
    assert found.advice[0].startswith("Too few positives")


def test_few_examples_are_said_before_anything_else():
    scores, labels = sample(0, n=700, share=0.2)
    found = diagnose(scores, labels, GOAL, train=sample(1))
    assert 3 < min(found.positives, found.negatives) < 10
    assert found.limit == "capacity"
    assert found.advice[0].startswith("Too few negatives")
    assert found.advice[1].startswith("Try Implicit")


def test_an_outlier_does_not_widen_the_band():
    scores, labels = sample(0)
    scores[0] = 1e6
    found, clean = (diagnose(s, labels, GOAL) for s in (scores, sample(0)[0]))
    assert found.negatives == pytest.approx(clean.negatives, rel=0.1)


def test_rows_of_weight_zero_do_not_widen_the_band():
    scores, labels = sample(0)
    weights = np.where(np.arange(4000) < 1000, 0.0, 1.0)
    far = np.where(weights == 0, -50.0, scores)
    found = diagnose(far, labels, GOAL, weights=weights)
    alone = diagnose(scores[1000:], labels[1000:], GOAL)
    assert found.negatives == pytest.approx(alone.negatives, rel=1e-9)


def test_thresholds_of_groups_rest_on_the_rows_of_each():
    scores, labels = sample(0)
    groups = np.where(np.arange(4000) < 400, "few", "many")
    gap = abs(sp.coverage.on(g="few") - sp.coverage.on(g="many")) <= 0.1
    shared = sp.Problem(minimize=sp.error, subject_to=gap)
    apart = sp.Problem(minimize=sp.error, subject_to=gap, thresholds="per group")
    found = diagnose(scores, labels, apart, groups={"g": groups})
    one = diagnose(scores, labels, shared, groups={"g": groups})
    assert 0 < found.negatives < 0.3 * one.negatives


@pytest.mark.parametrize("goal", [sp.Problem(maximize=sp.macro(sp.recall)), sp.fnr])
def test_what_it_cannot_diagnose_is_refused(goal):
    with pytest.raises(
        (TypeError, ValueError), match=r"diagnose (takes a Problem|decides between two)"
    ):
        diagnose(*sample(0), goal)


@pytest.mark.parametrize("draws", [0, 1, -1])
def test_a_bootstrap_needs_two_draws(draws):
    with pytest.raises(ValueError, match="draws must be a whole number of at least 2"):
        diagnose(*sample(0), GOAL, draws=draws)


def test_where_nothing_is_missed_there_is_nothing_to_train_for():
    labels = np.arange(400) % 4 == 0
    scores = labels + 0.01 * np.random.default_rng(0).normal(size=400)
    for train in (None, (scores, labels)):
        found = diagnose(scores, labels, GOAL, train=train)
        assert found.limit == "nothing"
        assert found.advice[0].startswith("Nothing is left to gain")


def test_a_goal_that_ends_above_one_is_measured_from_its_own_best():
    """Lift: a fifth is positive, so 5 is the best there is, and 1 is what chance gives."""
    goal = sp.Problem(maximize=lift, subject_to=sp.coverage.at(0.1))
    weak, known = sample(0, shift=0.7), sample(1, shift=4.0)
    assert diagnose(*weak, goal, train=sample(1, shift=0.7)).limit == "capacity"
    assert diagnose(*weak, goal, train=known).limit == "data"


def test_goals_that_the_training_data_do_not_reach_are_told_from_those_of_new_data():
    scores, labels = sample(0, shift=8.0)
    with pytest.raises(sp.Infeasible, match="On the training data: No threshold"):
        diagnose(scores, labels, sp.recall_at_precision(0.99), train=(-scores, labels))
    with pytest.raises(TypeError, match="diagnose takes a Problem"):
        diagnose(scores, labels, sp.fnr)


def test_tensors_and_the_words():
    import torch

    scores, labels = sample(0)
    found = diagnose(torch.tensor(scores), torch.tensor(labels), GOAL)
    assert found == diagnose(scores, labels, GOAL)
    assert "limited by unknown" in str(found)
    assert str(GOAL) in str(found)


@pytest.mark.parametrize(
    "train", [[1, 2], ([1.0],), np.zeros((2, 2))], ids=["list", "one", "array"]
)
def test_training_data_come_as_a_pair(train):
    with pytest.raises(TypeError, match=r"pair \(scores, labels\)"):
        diagnose(*sample(0), GOAL, train=train)


def test_weights_count_as_copies():
    y = np.arange(600) < 120
    s = np.random.default_rng(5).normal(size=600) + y
    copies = np.random.default_rng(6).integers(1, 4, 600)
    rows = np.repeat(np.arange(600), copies)
    whole = diagnose(s[rows], y[rows], GOAL, train=(s[rows], y[rows]))
    weighted = diagnose(s, y, GOAL, train=(s, y), weights=copies, train_weights=copies)
    assert weighted.value == pytest.approx(whole.value)
    assert weighted.train == pytest.approx(whole.train)
    # copies of an example are not independent examples: the noise is that of 600
    assert weighted.noise > 1.2 * whole.noise
    assert weighted.positives < whole.positives


def test_few_examples_are_noise_unless_much_more_is_left_than_it():
    assert _limit(0.4, 0.1, 0.2, _FEWEST - 1) == "noise"
    assert _limit(0.4, 0.1, 0.05, _FEWEST - 1) != "noise"

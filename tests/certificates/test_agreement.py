"""Matthews' correlation and Cohen's kappa: chosen, trained, and proved through their cells."""

import numpy as np
import pytest
import torch
from certificates.simulate import SHIFT, most, sample
from scipy.special import ndtr
from sklearn import metrics

from setpoint import Implicit, Problem, certify, evaluate
from setpoint.certificates.regions import value_range
from setpoint.certificates.sample import NEGATIVES, POSITIVES, PRIOR, Subset
from setpoint.rates import Counts, fpr, kappa, mcc, recall, sensitivity, specificity, tnr

KINDS = (POSITIVES, NEGATIVES, PRIOR)
BOTH = pytest.mark.parametrize(
    ("rate", "judge"),
    [(mcc, metrics.matthews_corrcoef), (kappa, metrics.cohen_kappa_score)],
    ids=["mcc", "kappa"],
)


def table(a, b, p):
    return {(): Counts(p * a, (1 - p) * b, p * (1 - a), (1 - p) * (1 - b), p, 1 - p)}


@BOTH
def test_the_best_threshold_is_the_best_by_brute_force(rate, judge):
    scores, labels = sample(0, 200)
    found = max(judge(labels, scores > t) for t in np.append(scores, -np.inf))
    assert evaluate(scores, labels, f"maximize {rate}") == pytest.approx(found, rel=1e-12)
    chosen = Problem(maximize=rate).choose(scores, labels)
    assert judge(labels, scores > chosen.thresholds[0]) == pytest.approx(found, rel=1e-12)
    held = Problem(maximize=rate, subject_to=fpr <= 0.02).evaluate(scores, labels)
    cuts = [t for t in scores if (scores[~labels] > t).mean() <= 0.02]
    assert held == pytest.approx(max(judge(labels, scores > t) for t in cuts), rel=1e-12)


@BOTH
def test_nobody_and_everybody_agree_with_nothing(rate, judge):
    scores, labels = sample(0, 50)
    for end in (-np.inf, np.inf):
        assert evaluate(scores, labels, f"maximize {rate}", thresholds=end) == 0
        assert rate.of(table(float(end < 0), float(end < 0), 0.3)) == 0


@BOTH
def test_gradients_are_finite_differences(rate, judge):
    random = np.random.default_rng(0)
    for _ in range(20):
        tp, fp, fn, tn = random.uniform(1, 9, 4)
        counts = {(): Counts(tp, fp, fn, tn, tp + fn, fp + tn)}
        slope = rate.gradient(counts)
        for i, name in enumerate(("tp", "fp")):
            step = 1e-6
            ends = []
            for sign in (1, -1):
                moved = {"tp": tp, "fp": fp} | {name: (tp, fp)[i] + sign * step}
                ends.append(
                    rate.of({(): Counts(moved["tp"], moved["fp"], fn, tn, tp + fn, fp + tn)})
                )
            expected = (ends[0] - ends[1]) / 2 / step
            assert slope[(), i] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@BOTH
def test_the_range_over_a_box_is_that_of_a_fine_grid(rate, judge):
    """The ends are attained, so no grid point lies beyond them and some come near."""
    random = np.random.default_rng(0)
    for _ in range(50):
        ends = np.sort(random.uniform(0.001, 0.999, (3, 2)), axis=1)
        box = {Subset((), k): tuple(e) for k, e in zip(KINDS, ends, strict=True)}
        grid = np.meshgrid(*(np.linspace(*end, 41) for end in ends), indexing="ij")
        values = rate.of(table(*grid))
        low, high = value_range(rate, box, None)
        assert low <= values.min() + 1e-12 <= low + 0.02
        assert high >= values.max() - 1e-12 >= high - 0.02


@BOTH
def test_promises_are_kept_where_they_can_just_be_made(rate, judge):
    cuts = np.linspace(-1, 4, 2001)
    best = rate.of(table(ndtr(SHIFT - cuts), ndtr(-cuts), 0.2)).max()
    broken, made, draws = 0, 0, 150
    for seed in range(draws):
        found = certify(*sample(seed, 800), rate >= best - 0.04)
        made += found.certified
        if found.certified:
            at = found.threshold
            broken += rate.of(table(ndtr(SHIFT - at), ndtr(-at), 0.2)) < best - 0.04
    assert broken / draws <= most(0.05, draws)
    assert certify(*sample(0, 4000), rate >= best - 0.1).certified


def test_sentences_groups_and_classes():
    for text in ("mcc >= 0.5", 'kappa on group="a" >= 0.5'):
        problem = Problem.parse(f"maximize recall subject to {text}")
        assert str(problem).endswith(text)
        assert Problem.parse(str(problem)) == problem
    assert str(Problem.parse("maximize Matthews correlation")) == "maximize mcc"
    assert str(Problem.parse("maximize cohen kappa")) == "maximize kappa"
    scores = np.eye(3)[[0, 1, 2, 2, 1, 0]]
    labels = np.array([0, 1, 2, 2, 1, 1])
    found = Problem.parse('maximize mcc of "0"').evaluate(
        scores, labels, thresholds=np.zeros(3), classes=["0", "1", "2"]
    )
    assert found == pytest.approx(metrics.matthews_corrcoef(labels == 0, scores.argmax(1) == 0))
    assert (sensitivity, specificity) == (recall, tnr)


def test_a_declared_prior_and_an_interval():
    scores, labels = sample(1, 6000)
    strict, exact = (certify(scores, labels, mcc >= 0.5, prevalence=p) for p in ((0.1, 0.3), 0.2))
    assert strict.certified
    assert exact.certified
    assert strict.claims[0].proved <= exact.claims[0].proved


@BOTH
def test_training_raises_it(rate, judge):
    torch.manual_seed(0)
    x = torch.randn(2000, 5)
    y = (x[:, 0] + 0.5 * torch.randn(2000) > 1).double()
    model = torch.nn.Linear(5, 1)
    before = evaluate(model(x.float()).detach(), y, f"maximize {rate}")
    criterion = Implicit(Problem(maximize=rate), steps=60)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        criterion(model(x.float()), y).backward()
        optimizer.step()
    assert evaluate(model(x.float()).detach(), y, f"maximize {rate}") > before + 0.2

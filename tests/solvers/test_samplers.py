import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint import Problem, coverage, error, fpr, precision, recall
from setpoint.solvers import cross_entropy
from setpoint.train import Shuffled, Stratified, batches, fit


def labels(positives: int, negatives: int) -> torch.Tensor:
    y = torch.cat([torch.ones(positives), torch.zeros(negatives)]).long()
    return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]


@pytest.mark.parametrize(("positives", "negatives"), [(10, 4990), (4990, 10), (300, 4700)])
def test_every_batch_has_enough_of_both_classes(positives, negatives):
    y = labels(positives, negatives)
    counts = set()
    for rows, _ in Stratified(256, least=20).draw(y, steps=40, seed=3):
        counts.add((len(rows), int(y[rows].sum())))
    assert len(counts) == 1, "all batches hold the same number"
    size, found = counts.pop()
    assert size == 256
    assert found == {10: 51, 4990: 205, 300: 51}[positives]  # 300 of 5,000 would be 15 of 256


def test_a_class_that_is_frequent_enough_keeps_its_natural_share():
    y = labels(300, 700)
    rows, weights = next(Stratified(100, least=20).draw(y, steps=1, seed=0))
    assert int(y[rows].sum()) == 30
    assert_close(weights, torch.ones(100))


def test_a_small_batch_holds_at_least_the_least_up_to_half():
    y = labels(10, 990)
    for size, expected in ((60, 20), (30, 15), (500, 100)):
        rows, _ = next(Stratified(size, least=20).draw(y, steps=1, seed=0))
        assert int(y[rows].sum()) == expected


def test_the_common_class_is_never_thinned_out():
    y = labels(5, 995)
    rows = torch.cat([b.rows for b in Stratified(100).draw(y, steps=13, seed=0)])
    assert set(torch.nonzero(y == 0)[:, 0].tolist()) <= set(rows.tolist())


def test_data_that_fit_into_a_batch_are_taken_whole():
    for rows, weights in Stratified(64).draw(labels(2, 30), steps=3, seed=0):
        assert sorted(rows.tolist()) == list(range(32))
        assert weights is None


def test_one_class_only_is_shuffled():
    drawn = [b.rows.tolist() for b in Stratified(4).draw(torch.zeros(12), steps=3, seed=7)]
    assert drawn == [rows.tolist() for rows in batches(12, 4, steps=3, seed=7)]


@pytest.mark.parametrize("sampler", [Shuffled(32), Stratified(32)])
def test_the_seed_decides(sampler):
    y = labels(20, 300)

    def draw(seed):
        return [b.rows.tolist() for b in sampler.draw(y, steps=5, seed=seed)]

    assert draw(1) == draw(1) != draw(2)


RATES = [precision, coverage, error]


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_uncorrected_batches_are_biased_and_corrected_ones_are_not(rate):
    # 1 % positives, resampled to 20 %. At a fixed threshold each batch counts ~60 true positives
    # and ~8 false ones, so precision has a deviation of about 0.1 a batch and 0.006 over 300; the
    # bound is three times that and more. Uncorrected, precision is about 0.9 instead of 0.25.
    random = torch.Generator().manual_seed(1)
    y = labels(200, 19800)
    scores = torch.randn(len(y), generator=random) + 2.3 * y
    problem, threshold = Problem(minimize=rate), 2.0
    truth = problem.evaluate(scores, y, thresholds=threshold)
    drawn = list(Stratified(512).draw(y, steps=300, seed=2))

    def mean(corrected):
        values = [
            problem.evaluate(
                scores[rows], y[rows], thresholds=threshold, weights=weights if corrected else None
            )
            for rows, weights in drawn
        ]
        return sum(values) / len(values)

    assert mean(corrected=True) == pytest.approx(truth, abs=0.02)
    assert abs(mean(corrected=False) - truth) > 0.05


def test_rates_of_one_class_need_no_correction():
    y = labels(200, 19800)
    scores = torch.randn(len(y), generator=torch.Generator().manual_seed(1)) + y
    rows, weights = next(Stratified(512).draw(y, steps=1, seed=2))
    for rate in (fpr, recall):
        problem = Problem(minimize=rate)
        plain = problem.evaluate(scores[rows], y[rows], thresholds=1.0)
        assert problem.evaluate(
            scores[rows], y[rows], thresholds=1.0, weights=weights
        ) == pytest.approx(plain, rel=1e-6)


def test_fit_hands_the_weights_to_the_criterion():
    y = labels(10, 990)
    x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    given = torch.rand(1000, generator=torch.Generator().manual_seed(1))
    seen = []

    def criterion(scores, labels, *, weights):
        seen.append((labels.clone(), weights.clone()))
        return cross_entropy(scores, labels, weights)

    budget = {"steps": 3, "batch_size": 1, "learning_rate": 0.1, "seed": 4}
    fit(nn.Linear(2, 1), criterion, x, y, sampler=Stratified(100), weights=given, **budget)
    drawn = list(Stratified(100).draw(y, steps=3, seed=4))
    for (labels_seen, weights), batch in zip(seen, drawn, strict=True):
        assert_close(weights, batch.weights * given[batch.rows])
        assert int(labels_seen.sum()) == 20

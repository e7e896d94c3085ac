"""Every rate of the catalogue against scikit-learn, and against formulas written out by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics

from setpoint import rates
from setpoint.rates import CATALOGUE, Counts, Rate

SEEDS = range(5)


def draw(seed, n=60):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3 == 0).astype(int)
    decisions = rng.random(n) < 0.3 + 0.4 * labels
    return labels, decisions.astype(int), rng.integers(0, 4, n).astype(float)


def table(labels, decisions, weights=None):
    tn, fp, fn, tp = metrics.confusion_matrix(labels, decisions, sample_weight=weights).ravel()
    return {(): Counts(float(tp), float(fp), float(fn), float(tn), float(tp + fn), float(fp + tn))}


BY_SKLEARN = {
    "recall": metrics.recall_score,
    "tpr": metrics.recall_score,
    "fnr": lambda *a, **k: 1 - metrics.recall_score(*a, **k),
    "tnr": lambda *a, **k: metrics.recall_score(*a, pos_label=0, **k),
    "fpr": lambda *a, **k: 1 - metrics.recall_score(*a, pos_label=0, **k),
    "precision": metrics.precision_score,
    "npv": lambda *a, **k: metrics.precision_score(*a, pos_label=0, **k),
    "error": metrics.zero_one_loss,
    "accuracy": metrics.accuracy_score,
    "jaccard": metrics.jaccard_score,
    "balanced_error": lambda *a, **k: 1 - metrics.balanced_accuracy_score(*a, **k),
    "mcc": metrics.matthews_corrcoef,
    "kappa": lambda y, d, sample_weight: metrics.cohen_kappa_score(
        y, d, sample_weight=sample_weight
    ),
    "coverage": lambda y, d, sample_weight: np.average(d, weights=sample_weight),
    "alerts": lambda y, d, sample_weight: d @ sample_weight,
    "prevalence": lambda y, d, sample_weight: np.average(y, weights=sample_weight),
    "lift": lambda y, d, sample_weight: (
        metrics.precision_score(y, d, sample_weight=sample_weight)
        / np.average(y, weights=sample_weight)
    ),
}


def test_the_reference_covers_the_catalogue():
    assert set(BY_SKLEARN) == set(CATALOGUE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BY_SKLEARN)
def test_a_rate_is_what_scikit_learn_says(name, seed):
    labels, decisions, weights = draw(seed)
    for w in (np.ones_like(weights), weights):
        found = CATALOGUE[name].of(table(labels, decisions, w))
        assert_allclose(found, BY_SKLEARN[name](labels, decisions, sample_weight=w), rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("beta", [0.1, 0.5, 1, 2, 7.5])
def test_f_score_is_what_scikit_learn_says(beta, seed):
    labels, decisions, weights = draw(seed)
    found = rates.f_score(beta).of(table(labels, decisions, weights))
    expected = metrics.fbeta_score(labels, decisions, beta=beta, sample_weight=weights)
    assert_allclose(found, expected, rtol=1e-12)


def test_f_score_one_is_the_default_and_is_f1():
    labels, decisions, _ = draw(0)
    found = rates.f_score().of(table(labels, decisions))
    assert_allclose(found, metrics.f1_score(labels, decisions), rtol=1e-12)


def test_recall_and_tpr_are_one_rate_under_two_names():
    assert rates.recall == rates.tpr
    assert (str(rates.recall), str(rates.tpr)) == ("recall", "tpr")


def test_rates_of_the_same_class_add_up_to_one():
    counts = table(*draw(3)[:2])
    for a, b in [("tpr", "fnr"), ("fpr", "tnr"), ("error", "accuracy")]:
        assert_allclose(CATALOGUE[a].of(counts) + CATALOGUE[b].of(counts), 1, rtol=1e-15)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_zero_denominator_gives_nan(name):
    nothing = {(): Counts(*[0.0] * 6)}
    found = CATALOGUE[name].of(nothing)
    assert found == 0 if name == "alerts" else np.isnan(found)


SHARES = [name for name in CATALOGUE if name not in ("alerts", "lift", "mcc", "kappa")]


@pytest.mark.parametrize("name", CATALOGUE)
def test_shares_know_that_they_are_shares(name):
    assert CATALOGUE[name].is_share == (name in SHARES)


@pytest.mark.parametrize("name", SHARES)
def test_shares_lie_between_zero_and_one(name):
    for seed in SEEDS:
        assert 0 <= CATALOGUE[name].of(table(*draw(seed)[:2])) <= 1


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_rate_written_out_knows_its_name(name):
    rate = CATALOGUE[name]
    if isinstance(rate, Rate):
        again = Rate(rate.numerator, rate.denominator)
        assert again == rate
        assert str(again) == {"tpr": "recall"}.get(name, name)


def test_names_do_not_depend_on_what_was_called_before():
    beta = 0.123  # no other test asks for it
    top = (1 + beta**2) * rates.TP
    bottom = top + beta**2 * rates.FN + rates.FP
    before = str(Rate(top, bottom))
    assert rates.f_score(beta) == Rate(top, bottom)
    assert str(rates.f_score(beta)) == "f_score(0.123)"
    assert str(Rate(top, bottom)) == before


@pytest.mark.parametrize("beta", [0, -1, 1e200, float("nan"), "2", None, True])
def test_f_score_refuses_what_is_no_beta(beta):
    with pytest.raises((ValueError, TypeError), match="beta"):
        rates.f_score(beta)


def test_rates_work_on_floats_numpy_and_torch():
    import torch

    numbers = [3.0, 1.0, 2.0, 4.0, 5.0, 5.0]
    plain = {(): Counts(*numbers)}
    arrays = {(): Counts(*(np.full((2, 3), x) for x in numbers))}
    tensors = {(): Counts(*(torch.full((2, 3), x, dtype=torch.float64) for x in numbers))}
    for expression in [
        *CATALOGUE.values(),
        rates.maximum(rates.fpr, 0.3),
        abs(rates.fpr - rates.fnr),
    ]:
        expected = expression.of(plain)
        assert_allclose(np.broadcast_to(expression.of(arrays), (2, 3)), expected, rtol=1e-15)
        assert_allclose(np.broadcast_to(expression.of(tensors), (2, 3)), expected, rtol=1e-15)

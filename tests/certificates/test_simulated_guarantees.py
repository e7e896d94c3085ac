"""Promises are broken as rarely as promised. Each bound: 0.05 + 3 standard errors of the draws."""

import numpy as np
import pytest
from certificates.simulate import SHIFT, edge, halves, most, sample, true_rates
from scipy.special import ndtr

import setpoint as sp
from setpoint.certificates import certify

DRAWS = 300
LIMIT = most(0.05, DRAWS)


def _id(value):
    """Functions have no names worth reading, and their addresses differ between processes."""
    return "" if callable(value) and not hasattr(value, "level") else str(value)


def broken(goal, wrong, *, tied=False, n=600, prevalence=0.3, draws=DRAWS, **options):
    """How often a promise is made, and how often it is made and broken."""
    made = bad = 0
    for seed in range(draws):
        scores, labels = sample(seed, n, prevalence)
        found = certify(halves(scores) if tied else scores, labels, goal, **options)
        if found:
            made += 1
            cut = edge(found.threshold) if tied else found.threshold
            bad += bool(wrong(true_rates(cut, prevalence)))
    return made / draws, bad / draws


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("goal", "wrong"),
    [
        (sp.fpr <= 0.05, lambda r: r["fpr"] > 0.05),
        (sp.tnr >= 0.9, lambda r: r["fpr"] > 0.1),
        (sp.recall >= 0.9, lambda r: r["recall"] < 0.9),
        (sp.fnr <= 0.05, lambda r: r["recall"] < 0.95),
        (sp.coverage <= 0.1, lambda r: r["coverage"] > 0.1),
        (sp.precision >= 0.85, lambda r: r["precision"] < 0.85),
    ],
    ids=_id,
)
def test_bounds_on_one_share(goal, wrong, tied):
    made, bad = broken(goal, wrong, tied=tied)
    assert made > 0.9
    assert bad <= LIMIT
    if not tied:
        assert bad > 0  # nor is more kept back than needed


def test_npv():
    prevalence = 0.3

    def wrong(r):
        missed = prevalence * (1 - r["recall"])
        return missed > 0.05 * (missed + (1 - prevalence) * (1 - r["fpr"]))

    made, bad = broken(sp.npv >= 0.95, wrong)
    assert made > 0.9
    assert 0 < bad <= LIMIT


def test_precision_where_it_is_everywhere_a_little_too_low():
    """The hardest case: every promise is broken, so hardly any may be made."""
    made = 0
    for seed in range(600):
        random = np.random.default_rng(seed)
        scores = random.normal(size=800)
        made += bool(certify(scores, random.random(800) < 0.8, sp.precision >= 0.8 + 1e-9))
    assert 0 < made / 600 <= most(0.05, 600)


def test_precision_that_falls_and_rises_again():
    """Blocks of scores whose precision lies in turn just above and just below the level."""
    blocks = np.arange(200)
    target = np.where((blocks // 10) % 2 == 0, 0.81, 0.79) * (blocks + 1)
    share = np.clip(np.diff(target, prepend=0), 0, 1)
    true = np.cumsum(share) / (blocks + 1)
    bad = 0
    for seed in range(400):
        random = np.random.default_rng(seed)
        block = random.integers(0, 200, 900)
        found = certify(-block, random.random(900) < share[block], sp.precision >= 0.8)
        if found:
            bad += true[int(min(-found.threshold, 200)) - 1] < 0.8
    assert bad / 400 <= most(0.05, 400)


@pytest.mark.parametrize(
    ("goal", "wrong"),
    [
        (sp.f_score(1) >= 0.80, lambda r: r["f1"] < 0.80),  # 0.862 is the most there is
        (
            sp.error <= 0.12,  # 0.083 is the least
            lambda r: 0.3 * (1 - r["recall"]) + 0.7 * r["fpr"] > 0.12,
        ),
        ([sp.fpr <= 0.15, sp.recall >= 0.8], lambda r: r["fpr"] > 0.15 or r["recall"] < 0.8),
        ([sp.fpr <= 0.1, sp.precision >= 0.8], lambda r: r["fpr"] > 0.1 or r["precision"] < 0.8),
        (sp.recall - sp.fpr >= 0.7, lambda r: r["recall"] - r["fpr"] < 0.7),
    ],
    ids=_id,
)
def test_other_bounds_and_several(goal, wrong):
    made, bad = broken(goal, wrong, n=1500, draws=150)
    assert made > 0.5
    assert bad <= most(0.05, 150)


def test_bounds_that_leave_one_threshold_are_seldom_promised_and_more_seldom_broken():
    level = float(ndtr(SHIFT - 1.2815515655446004))  # the recall at fpr = 0.1
    goal = [sp.fpr <= 0.1, sp.recall >= level - 1e-9]
    made, _ = broken(goal, lambda r: True, n=400, prevalence=0.5)
    assert made <= LIMIT


def test_precision_at_another_prevalence():
    def wrong(r):
        return 0.05 * r["recall"] < 0.6 * (0.05 * r["recall"] + 0.95 * r["fpr"])

    made, bad = broken(sp.precision >= 0.6, wrong, n=3000, draws=150, prevalence=0.3)
    assert made == 1  # uncorrected: much too low a threshold,
    assert bad > 0.9  # since with fewer positives more alerts are false
    options = {"prevalence": 0.05}
    found = [certify(*sample(s, 3000, 0.3), sp.precision >= 0.6, **options) for s in range(150)]
    kept = [c.threshold for c in found if c]
    assert len(kept) > 30
    assert np.mean([wrong(true_rates(t)) for t in kept]) * len(kept) / 150 <= most(0.05, 150)


def test_choosing_among_models_needs_the_correction():
    bad = {1: 0, 10: 0}
    for seed in range(150):
        random = np.random.default_rng(seed)
        labels = random.random(600) < 0.3
        base = random.normal(size=600)
        models = [base + random.normal(size=600) + 3 * labels for _ in range(10)]
        for count in bad:
            found = [certify(s, labels, sp.fpr <= 0.05, candidates=count) for s in models]
            best = max(found, key=lambda c: c.objective[0].value)
            bad[count] += ndtr(-best.threshold / np.sqrt(2)) > 0.05
    assert bad[1] / 150 > 0.1
    assert bad[10] / 150 <= most(0.05, 150)


def test_the_mean_is_kept_and_every_other_threshold_exceeds_it():
    rates = []
    for seed in range(600):
        found = certify(*sample(seed, 300), sp.fpr <= 0.05, guarantee="mean")
        rates.append(ndtr(-found.threshold))
    error_of_mean = np.std(rates) / np.sqrt(600)
    assert np.mean(rates) == pytest.approx(0.05, abs=3 * error_of_mean + 1 / 240)
    assert np.mean(rates) <= 0.05 + 3 * error_of_mean
    assert 0.3 < np.mean(np.array(rates) > 0.05) < 0.6


def test_every_group_keeps_its_promise_with_one_threshold_each():
    bad = 0
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        groups = np.where(random.random(1000) < 0.3, "small", "large")
        labels = random.random(1000) < 0.2
        scores = random.normal(size=1000) * np.where(groups == "small", 2, 1) + 3 * labels
        t = certify(scores, labels, sp.fpr <= 0.05, groups=groups).thresholds
        bad += max(ndtr(-t["small"] / 2), ndtr(-t["large"])) > 0.05
    assert bad / DRAWS <= LIMIT


@pytest.mark.parametrize("gap", [0.05, 0.2])
def test_gaps_between_groups(gap):
    """The true gap at the threshold is 0.07 to 0.09: one level is always false, one always true."""
    goal = [sp.fpr <= 0.1, abs(sp.tpr.on(group="a") - sp.tpr.on(group="b")) <= gap]
    made = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        groups = np.where(random.random(2000) < 0.5, "a", "b")
        labels = random.random(2000) < 0.4
        scores = random.normal(size=2000) + np.where(groups == "a", 2.5, 2.2) * labels
        made += bool(certify(scores, labels, goal, groups=groups))
    assert made / 200 <= most(0.05, 200) if gap == 0.05 else made / 200 > 0.9


@pytest.mark.parametrize(
    ("goal", "rate"),
    [
        (sp.fpr <= 0.05, "recall"),
        (sp.recall >= 0.9, "fpr"),
        (sp.precision >= 0.85, "recall"),
        ("maximize precision subject to recall >= 0.8", "precision"),
        ("maximize f_score(1) subject to fpr <= 0.1", "f1"),
    ],
    ids=_id,
)
def test_intervals_hold_the_true_rate(goal, rate):
    missed = 0
    for seed in range(DRAWS):
        scores, labels = sample(seed, 600, 0.3)
        found = certify(scores, labels, goal)
        if found:
            true = true_rates(found.threshold, 0.3)[rate]
            missed += not found.objective[0].low <= true <= found.objective[0].high
    assert missed / DRAWS <= LIMIT


@pytest.mark.parametrize("beside", [(), (sp.fpr <= 0.4,)], ids=["alone", "capped"])
def test_many_thresholds_may_be_tried_for_an_objective(beside):
    """Accepting few is fair; the least error is unfair by a hair, and hardly ever promised."""
    fair = abs(sp.coverage.on(group="a") - sp.coverage.on(group="b")) <= 0.1 - 1e-9
    problem = sp.Problem(minimize=sp.error, subject_to=[*beside, fair])
    bad, few, draws = 0, 0, 120
    for seed in range(draws):
        random = np.random.default_rng(seed)
        groups = np.where(random.random(600) < 0.5, "a", "b")
        middle = np.where(groups == "a", 0.4, 0.3)  # who scores 1; a tenth of everyone scores 2
        lot = random.random(600)
        scores = np.where(lot < 0.1, 2.0, np.where(lot < 0.1 + middle, 1.0, 0.0))
        labels = random.random(600) < np.where(scores > 0, 0.8, 0.1)
        found = certify(scores, labels, problem, groups=groups)
        few += bool(found) and found.threshold >= 1.0
        bad += bool(found) and found.threshold < 1.0
    assert bad / draws <= most(0.05, draws)
    assert few / draws > 0.5

"""The exact test of two shares: right for every pair of shares, and sharper than the region."""

import itertools

import numpy as np
import pytest
from scipy import stats

from setpoint.certificates import certify
from setpoint.certificates.regions import CountEvidence, upper_bound
from setpoint.certificates.sample import NEGATIVES, POSITIVES, Subset
from setpoint.certificates.unconditional import TwoShares
from setpoint.rates import balanced_error, precision, recall

DELTA = 0.05
FUNCTIONS = {
    "gap": (lambda a, b: a + b - 1, 1.0),
    "balanced": (lambda a, b: (a + b) / 2, 1.0),
    "uneven": (lambda a, b: 0.9 * a + 0.1 * b, 1.0),
    "product": (lambda a, b: 1 - (1 - a) * (1 - b), 1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("sizes", [(9, 14), (25, 6)])
def test_the_bound_is_wrong_with_probability_delta_at_most_for_all_shares(name, sizes):
    """All outcomes and 31 x 31 pairs of shares, exactly: no sampling."""
    function, highest = FUNCTIONS[name]
    counts = [range(n + 1) for n in sizes]
    bounds = np.array(
        [
            TwoShares(function, pair, sizes).upper_bound(DELTA, highest)
            for pair in itertools.product(*counts)
        ]
    ).reshape(sizes[0] + 1, -1)
    shares = np.linspace(0.01, 0.99, 31)
    laws = [stats.binom.pmf(np.arange(n + 1)[None], n, shares[:, None]) for n in sizes]
    worst = 0.0
    for i, j in itertools.product(range(31), repeat=2):
        wrong = bounds < function(shares[i], shares[j]) - 1e-9
        worst = max(worst, float(laws[0][i] @ wrong @ laws[1][j]))
    assert worst <= DELTA
    assert worst > 0.4 * DELTA  # and not by being useless


def test_the_bound_rises_with_both_counts():
    function = FUNCTIONS["balanced"][0]
    found = [
        [TwoShares(function, (x, y), (30, 20)).upper_bound(DELTA, 1.0) for y in range(0, 20, 4)]
        for x in range(0, 30, 5)
    ]
    assert (np.diff(found, axis=0) >= -1e-3).all()
    assert (np.diff(found, axis=1) >= -1e-3).all()


@pytest.mark.parametrize(
    ("expression", "prevalence", "level"),
    [
        (balanced_error, None, 0.12),
        (recall.on(g="a") - recall.on(g="b"), None, 0.05),
        (-precision, 0.05, -0.35),
    ],
    ids=["balanced error", "gap", "precision at a prevalence"],
)
def test_it_proves_more_than_the_region(expression, prevalence, level):
    """The bounds of 60 outcomes around true shares of 0.1 and 0.9: lower on average, and proved."""
    random, gains, proved = np.random.default_rng(0), [], np.zeros(2)
    sides = [Subset((("g", name),), POSITIVES) for name in "ab"]
    sides = sides if " on " in str(expression) else [Subset((), NEGATIVES), Subset((), POSITIVES)]
    shares = (0.9, 0.9) if " on " in str(expression) else (0.05, 0.9)
    for _ in range(60):
        counts = random.binomial(700, shares).tolist()
        known = {s: CountEvidence(k, k, 700, 1) for s, k in zip(sides, counts, strict=True)}
        plain, sharp = (
            upper_bound(expression, known, DELTA, prevalence, sharp=s) for s in (False, True)
        )
        gains.append(plain - sharp)
        proved += plain <= level, sharp <= level
    assert np.mean(gains) > 0
    assert np.min(gains) > -1e-3  # never worse, within what the pieces of the curve cost
    assert proved[1] >= proved[0]


def test_a_balanced_error_is_certified_where_the_region_did_not():
    random = np.random.default_rng(1)
    labels = random.random(2400) < 0.2
    scores = random.normal(size=2400) + 2.5 * labels
    made = certify(scores, labels, balanced_error <= 0.145, thresholds=1.25)
    assert made.certified
    known = {
        Subset((), NEGATIVES): (scores[~labels] > 1.25),
        Subset((), POSITIVES): (scores[labels] > 1.25),
    }
    counts = {s: CountEvidence(int(a.sum()), int(a.sum()), len(a), 1) for s, a in known.items()}
    assert upper_bound(balanced_error, counts, 0.05, None) > made.claims[0].proved

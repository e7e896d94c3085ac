"""The laws of the algebra, for expressions that hypothesis makes up."""

import math
from fractions import Fraction
from itertools import pairwise

import exact
import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import TAME, examples, expressions, rates, tables

import setpoint as sp
from setpoint.rates import CATALOGUE, ONE, Combination, Counts, divide, larger

some = expressions(tame=True)


def close(a, b):
    """Equal up to rounding; NaN equals NaN."""
    a, b = float(a), float(b)
    return (
        (math.isnan(a) and math.isnan(b))
        or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        or a == b
    )


def exactly(expression, counts):
    return float(exact.value(expression, {w: (t.tp, t.fp, t.fn, t.tn) for w, t in counts.items()}))


@examples(400)
@given(some, tables())
def test_the_value_is_that_of_exact_arithmetic(e, counts):
    expected = exactly(e, counts)
    assume(abs(expected) < 1e6 or expected != expected)  # near a pole floats know nothing
    assert close(e.of(counts), expected)


def test_what_cancels_in_a_quotient_is_zero():
    """2/3 - 1/2 - 1/6 is -8e-17 in floats: the quotient is infinite, with the sign of the top."""
    counts = {(): Counts(2.0, 1.0, 1.0, 0.0, 3.0, 1.0)}
    below = sp.precision - 0.5 * sp.fpr - 0.5 * sp.fnr
    assert below.of(counts) != 0
    for top in (sp.tpr, -sp.tpr, sp.tpr - 1):
        assert (top / below).of(counts) == exactly(top / below, counts)
        arrays = {(): Counts(*(np.array([c]) for c in vars(counts[()]).values()))}
        with np.errstate(divide="ignore"):
            assert (top / below).of(arrays)[0] == exactly(top / below, counts)
    assert math.isnan((below / below).of(counts))


@examples(300)
@given(some, some, st.sampled_from(TAME), tables())
def test_arithmetic_on_expressions_is_arithmetic_on_values(a, b, x, counts):
    one, two = a.of(counts), b.of(counts)
    assume(abs(one) < 1e6 and abs(two) < 1e6)  # neither near a pole nor 0/0
    assume(all(not v or abs(v) > 1e-12 for v in (one, two)))  # a quotient of rounding errors
    for expression, value in [
        (a + b, one + two),
        (a - b, one - two),
        (-a, -one),
        (x * a, x * one),
        (a * x, x * one),
        (a / x, one / x),
        (x + a, x + one),
        (x - a, x - one),
        (abs(a), abs(one)),
        (sp.maximum(a, b), max(one, two)),
        (sp.minimum(a, b), min(one, two)),
        (a / b, divide(one, two)),
        (x / a, divide(x, one)),
        (sum([a, b]), one + two),
    ]:
        assert close(expression.of(counts), value) or abs(value) > 1e6 or value != value, expression


NOTHING = {(): Counts(*[0.0] * 6)}


@pytest.mark.parametrize(
    "e",
    [
        sp.fpr + 1,
        2 * sp.fpr,
        abs(sp.fpr),
        sp.maximum(sp.fpr, 2),
        sp.minimum(3, sp.fpr),
        sp.fpr / 2,
        1 / sp.fpr,
        sp.fpr / sp.fnr,
        sp.fpr - sp.fnr,
    ],
    ids=str,
)
def test_zero_over_zero_stays_nan_whatever_is_done_to_it(e):
    assert math.isnan(e.of(NOTHING))


def test_something_over_zero_is_infinite():
    counts = {(): Counts(1.0, 0.0, 0.0, 2.0, 1.0, 2.0)}
    assert (sp.recall / sp.fpr).of(counts) == math.inf
    assert (-sp.recall / sp.fpr).of(counts) == -math.inf


@examples(300)
@given(expressions(tame=True, sliced=False), tables())
def test_a_slice_reads_the_table_of_the_slice(e, counts):
    where = (("group", "a"),)
    assert close(e.on(group="a").of(counts), e.of({(): counts[where]}))


@examples(200)
@given(some, some)
def test_sums_do_not_depend_on_how_they_are_written(a, b):
    assert a + a == 2 * a
    assert a - a == 0 * a == Combination((), 0.0)
    assert 2 * (a + b) / 2 == a + b
    assert sum([a, b]) == 0 + a + b
    assert hash(a + a) == hash(2 * a)


@examples(200)
@given(expressions())
def test_equal_expressions_have_equal_hashes(e):
    same = e * 2 / 2 if all(abs(r) < 1e200 for r in coefficients(e)) else e
    assert same == e
    assert hash(same) == hash(e)
    assert len({e, same}) == 1


def coefficients(e):
    own = [w for w, _ in e.terms] + [e.constant] if isinstance(e, Combination) else []
    return [*own, *(c for child in e.children for c in coefficients(child))]


# ---- direction -----------------------------------------------------------------------------------
def accepting_more(rng, n):
    """Counts as the threshold falls past n examples of random class and group, one at a time."""
    labels, groups = rng.integers(0, 2, n), rng.integers(0, 2, n)
    steps = []
    for k in range(n + 1):
        taken = np.arange(n) < k
        masks = {(): labels >= 0, (("group", "a"),): groups == 0, (("group", "b"),): groups == 1}
        steps.append({where: _table(labels, taken, inside) for where, inside in masks.items()})
    return steps


def _table(labels, taken, inside):
    tp, fp, fn, tn = (
        float(np.sum(inside & (labels == y) & (taken == t)))
        for y, t in [(1, 1), (0, 1), (1, 0), (0, 0)]
    )
    return Counts(tp, fp, fn, tn, tp + fn, fp + tn)


RUNS = [accepting_more(np.random.default_rng(seed), 8) for seed in range(6)]


def moves(expression):
    """Which ways the value goes as more is accepted, over some runs."""
    signs = set()
    for run in RUNS:
        values = [expression.of(counts) for counts in run]
        signs |= {
            np.sign(b - a) for a, b in pairwise(values) if abs(b - a) > 1e-9 * expression.scale
        }
    return signs


@examples(500)
@given(some)
def test_direction_agrees_with_brute_force(e):
    if e.direction is not None:
        assert moves(e) <= {float(e.direction)}, (e, e.direction)


@pytest.mark.parametrize("name", CATALOGUE)
def test_direction_is_known_for_the_catalogue_where_there_is_one(name):
    found, direction = moves(CATALOGUE[name]), CATALOGUE[name].direction
    assert found == {1.0, -1.0} if direction is None else found == {float(direction)} - {0.0}


@pytest.mark.parametrize(
    ("expression", "direction"),
    [
        (sp.Rate(sp.FP, -1 * (sp.FP + sp.TN)), -1),
        (sp.Rate(sp.FP, sp.TP + sp.FN - sp.FP - sp.TN), None),
        (sp.Rate(sp.TP - sp.FP, ONE), None),
        (sp.Rate(sp.TP + sp.FN, ONE), 0),
        (sp.Rate(2 * sp.TP + sp.FN, sp.TP + sp.FN), 1),
        (-sp.fpr, -1),
        (sp.fpr + sp.tpr, 1),
        (sp.fpr - sp.fnr, 1),
        (sp.fpr + sp.fnr, None),
        (sp.maximum(sp.fpr, sp.tpr, 0.5), 1),
        (sp.minimum(sp.fpr, sp.fnr), None),
        (abs(sp.fpr), None),
        (1e-300 * sp.fpr, 1),
        (sp.precision, None),
        (0 * sp.fpr, 0),
    ],
    ids=str,
)
def test_direction_of_what_is_easily_got_wrong(expression, direction):
    assert expression.direction == direction


# ---- gradient ------------------------------------------------------------------------------------
STEP = Fraction(1, 10**7)


def differences(expression, counts):
    """Central differences in exact arithmetic, but not at kinks, where both sides differ."""
    tables = {w: tuple(map(Fraction, (t.tp, t.fp, t.fn, t.tn))) for w, t in counts.items()}
    here, found = soft_value(expression, tables, tables), {}
    for where in {rate.where for rate in expression.rates()}:
        for i in range(4):
            ends = []
            for sign in (1, -1):
                moved = list(tables[where])
                moved[i] += sign * STEP
                ends.append(soft_value(expression, {**tables, where: tuple(moved)}, tables))
            right, left = (ends[0] - here) / STEP, (here - ends[1]) / STEP
            if abs(right - left) <= 1e-3 * (1 + abs(right)):
                found[where, i] = float(right + left) / 2
    return found


def soft_value(expression, moved, tables):
    """The value when outcomes move but whole classes are still counted as before.

    What TP and FN have in common is the class of positives: ``2 TP + FN`` is ``positives + TP``.
    """
    match expression:
        case sp.Rate(numerator, denominator, where):
            return exact.ratio(
                *(_soft_count(c, moved[where], tables[where]) for c in (numerator, denominator))
            )
        case Combination(terms, constant):
            parts = (exact.decimal(w) * soft_value(e, moved, tables) for w, e in terms)
            return exact.decimal(constant) + sum(parts)
    values = [soft_value(child, moved, tables) for child in expression.children]
    if len(values) == 2 and not hasattr(expression, "kind"):
        return exact.ratio(*values)
    return {"abs": lambda v: abs(v[0]), "max": max, "min": min}[expression.kind](values)


def _soft_count(count, moved, table):
    tp, fp, fn, tn, one = map(exact.decimal, count.weights)
    total = one
    for yes, no, i, j in ((tp, fn, 0, 2), (fp, tn, 1, 3)):
        both = min(yes, no, key=abs) if yes * no > 0 else Fraction(0)
        total += both * (table[i] + table[j]) + (yes - both) * moved[i] + (no - both) * moved[j]
    return total


@examples(250)
@given(some, tables(whole=False))
def test_the_gradient_is_that_of_central_differences(e, counts):
    expected = differences(e, counts)
    assume(all(abs(v) < 1e6 for v in expected.values()))
    found = e.gradient(counts)
    assert set(found) <= {(rate.where, i) for rate in e.rates() for i in range(4)}
    size = max([1.0, abs(e.of(counts)), *map(abs, expected.values())])
    for key, slope in expected.items():
        assert math.isclose(found.get(key, 0.0), slope, rel_tol=1e-6, abs_tol=1e-6 * size), (e, key)


@examples(100)
@given(some, tables(whole=False))
def test_the_gradient_is_the_same_on_arrays_and_tensors(e, counts):
    plain = e.gradient(counts)
    for make in (np.array, double):
        arrays = {
            w: Counts(*(make([getattr(t, f)]) for f in t.__dataclass_fields__))
            for w, t in counts.items()
        }
        with np.errstate(all="ignore"):
            other = e.gradient(arrays)
        assert other.keys() == plain.keys()
        for key, slope in plain.items():
            assert close(np.ravel(other[key])[0], slope)


def test_the_gradient_leaves_out_what_stays():
    counts = {(): Counts(3.0, 2.0, 1.0, 4.0, 4.0, 6.0)}
    assert set(sp.fpr.gradient(counts)) == {((), 1)}
    assert sp.fpr.gradient(counts)[(), 1] == 1 / 6
    assert set(sp.recall.gradient(counts)) == {((), 0)}


def test_equal_parts_of_a_fold_share_its_gradient():
    counts = {(): Counts(2.0, 2.0, 2.0, 2.0, 4.0, 4.0)}
    for fold in (sp.maximum(sp.fpr, sp.fnr), sp.minimum(sp.fpr, sp.fnr)):
        assert fold.gradient(counts) == {((), 1): 0.125, ((), 2): 0.125}
    assert set(abs(sp.fpr - 0.5).gradient(counts).values()) == {0.0}
    assert sp.maximum(sp.fpr, 0.25).gradient(counts)[(), 1] == 0.25
    assert sp.minimum(sp.fpr, 0.25).gradient(counts)[(), 1] == 0.0


def test_what_outcomes_share_is_taken_from_the_exact_class_total():
    soft = Counts(3.0, 2.0, 9.0, 4.0, 4.0, 6.0)  # tp + fn is not the number of positives
    for count, expected in [
        (2 * sp.TP + sp.FN, 7.0),
        (-2 * sp.TP - sp.FN, -7.0),
        (sp.TP + sp.FN, 4.0),
        (sp.TP - sp.FN, -6.0),
    ]:
        assert count.of(soft) == expected


# ---- single operations ---------------------------------------------------------------------------
def double(x):
    return torch.tensor(x, dtype=torch.float64)


@pytest.mark.parametrize("make", [float, np.array, double], ids=["float", "numpy", "torch"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1e-20, 1.0),
        (1.0, 1e-20),
        (0.0, math.inf),
        (-math.inf, 1.0),
        (1e308, 1e308),
        (2.0, math.nan),
        (math.nan, 2.0),
    ],
)
def test_the_larger_of_two_is_exact(make, a, b):
    expected = math.nan if a != a or b != b else max(a, b)
    for found in (larger(make(a), make(b)), larger(a, make(b)), larger(make(a), b)):
        assert float(found) == expected or math.isnan(float(found)) == math.isnan(expected) == 1


def test_folds_of_arrays_and_numbers_broadcast():
    column = {(): Counts(*(np.array([[x], [x + 1.0]]) for x in (3.0, 1.0, 2.0, 4.0, 5.0, 5.0)))}
    for e in (sp.maximum(0.9, sp.fpr, 0.25), sp.maximum(sp.fpr, sp.fnr, 0.9)):
        assert np.all(e.of(column) == 0.9)
    assert np.all(sp.minimum(0.1, sp.fpr).of(column) == 0.1)


@examples(100)
@given(rates(tame=True), st.sampled_from([1e-12, 1e12]))
def test_the_scale_goes_with_the_coefficients(rate, by):
    assert math.isclose((by * rate).scale, by * rate.scale, rel_tol=1e-12)
    assert math.isclose(sp.maximum(by * rate, rate).scale, max(by, 1) * rate.scale, rel_tol=1e-12)


def test_the_scale_of_a_rate_is_that_of_its_weights():
    assert sp.Rate(1e-12 * sp.TP, ONE).scale == 1e-12
    assert sp.Rate(5 * sp.FN + sp.FP, ONE).scale == 5
    assert sp.Rate(sp.TP, 1e6 * ONE).scale == 1e-6
    assert (sp.Rate(sp.TP, ONE) / sp.Rate(2 * sp.FP, ONE)).scale == 0.5


def test_the_scale_of_shares_is_one():
    for e in [*CATALOGUE.values(), sp.f_score(2), abs(sp.fpr - sp.fnr), sp.maximum(sp.fpr, sp.fnr)]:
        assert e.scale == pytest.approx(0.5 if str(e) == "balanced_error" else 1.0)

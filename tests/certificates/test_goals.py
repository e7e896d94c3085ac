import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import setpoint as sp
from setpoint.certificates.goals import ACCEPTED, REJECTED, inequalities, share_of
from setpoint.certificates.regions import rate_signs, signs, value_range
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Subset
from setpoint.rates import Count, Counts, jaccard, lift, prevalence

SHARES = st.floats(0.02, 0.98)
WEIGHTS = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0])
A, B = sp.tpr.on(group="a"), sp.tpr.on(group="b")


def value(expression, positives, negatives, prior, given_prior=None):
    box = {
        Subset((), kind): (np.array([x]), np.array([x]))
        for kind, x in ((POSITIVES, positives), (NEGATIVES, negatives), (PRIOR, prior))
    }
    accepted = prior * positives + (1 - prior) * negatives
    box[Subset((), EVERYONE)] = (np.array([accepted]),) * 2
    return float(np.max(value_range(expression, box, given_prior)[0]))


@examples(200)
@given(
    st.lists(WEIGHTS, min_size=4, max_size=4),
    st.lists(WEIGHTS, min_size=4, max_size=4),
    st.tuples(SHARES, SHARES, SHARES),
)
def test_rates_move_with_their_parts_as_told(top, extra, at):
    if not any(top):
        return
    below = [a + b for a, b in zip(top, extra, strict=True)]
    rate = sp.Rate(Count(*top), Count(*below))
    told = rate_signs(rate, None)
    for i, kind in enumerate((POSITIVES, NEGATIVES, PRIOR)):
        moved = list(at)
        moved[i] += 1e-3
        change = value(rate, *moved) - value(rate, *at)
        sign = told.get(Subset((), kind), 0)
        if Subset((), EVERYONE) in told:
            continue
        if sign == 0:
            assert abs(change) < 1e-12
        elif sign is not None:
            assert sign * change >= -1e-12


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (sp.fpr, {NEGATIVES: 1}),
        (sp.tnr, {NEGATIVES: -1}),
        (sp.recall, {POSITIVES: 1}),
        (sp.coverage, {EVERYONE: 1}),
        (sp.precision, {POSITIVES: 1, NEGATIVES: -1, PRIOR: 1}),
        (sp.f_score(2), {POSITIVES: 1, NEGATIVES: -1, PRIOR: 1}),
        (sp.error, {POSITIVES: -1, NEGATIVES: 1, PRIOR: None}),
        (prevalence, {PRIOR: 1}),
        (sp.balanced_error, {POSITIVES: -1, NEGATIVES: 1}),
        (sp.recall - sp.fpr, {POSITIVES: 1, NEGATIVES: -1}),
        (sp.recall - sp.precision, {POSITIVES: None, NEGATIVES: 1, PRIOR: -1}),
        (sp.maximum(sp.fpr, sp.fnr), {POSITIVES: None, NEGATIVES: None}),
    ],
    ids=str,
)
def test_parts_of_well_known_rates(expression, expected):
    assert {part.kind: sign for part, sign in signs(expression, None).items()} == expected


def test_a_known_prevalence_is_no_part():
    assert {p.kind for p in signs(sp.precision, 0.1)} == {POSITIVES, NEGATIVES}
    assert {p.kind for p in signs(sp.coverage, 0.1)} == {POSITIVES, NEGATIVES}
    assert value(sp.coverage, 0.5, 0.25, 0.9, given_prior=0.2) == pytest.approx(
        0.2 * 0.5 + 0.8 * 0.25
    )


def test_parts_overlap_if_an_example_can_be_in_both():
    a, b = (("group", "a"),), (("group", "b"),)
    both = (("group", "a"), ("site", 1))
    assert Subset((), POSITIVES).overlaps(Subset(a, POSITIVES))
    assert Subset(a, POSITIVES).overlaps(Subset(both, EVERYONE))
    assert not Subset(a, POSITIVES).overlaps(Subset(b, POSITIVES))
    assert not Subset((), POSITIVES).overlaps(Subset((), NEGATIVES))
    assert not Subset((), PRIOR).overlaps(Subset((), NEGATIVES))
    assert Subset((), PRIOR).overlaps(Subset((), EVERYONE))
    assert Subset((), PRIOR).overlaps(Subset(a, PRIOR))


@pytest.mark.parametrize(
    ("bound", "kind", "at_most", "limit"),
    [
        (sp.fpr <= 0.01, NEGATIVES, True, 0.01),
        (sp.tnr >= 0.99, NEGATIVES, True, 0.01),
        (sp.recall >= 0.95, POSITIVES, False, 0.95),
        (sp.fnr <= 0.05, POSITIVES, False, 0.95),
        (sp.coverage <= 0.02, EVERYONE, True, 0.02),
        (sp.precision >= 0.9, ACCEPTED, False, 0.9),
        (sp.precision <= 0.4, ACCEPTED, True, 0.4),
        (sp.npv >= 0.99, REJECTED, True, 0.01),
        (1 - 2 * sp.fpr >= 0.98, NEGATIVES, True, 0.01),
        (sp.Rate(Count(tp=1), Count(tp=1, fp=5)) >= 0.5, ACCEPTED, False, 5 / 6),
    ],
    ids=str,
)
def test_bounds_on_one_share(bound, kind, at_most, limit):
    share = share_of(bound, None)
    assert (share.subset.kind, share.at_most) == (kind, at_most)
    assert share.limit == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize(
    "rate", [sp.f_score(1), jaccard, sp.error, 1 - 2 * sp.error, sp.precision], ids=str
)
def test_rates_are_functions_of_their_share(rate):
    share = share_of(rate >= 0.25, None)
    table = Counts(60.0, 20.0, 30.0, 90.0, 90.0, 110.0)
    count, n = share.counts(table)
    assert share.value(count / n) == pytest.approx(float(rate.of({(): table})), rel=1e-12)
    assert share.value(share.limit) == pytest.approx(0.25, rel=1e-12)


def test_what_is_not_about_one_share():
    assert share_of(sp.f_score(2) >= 0.5, None) is None
    assert share_of(sp.balanced_error <= 0.5, None) is None
    assert (
        share_of(sp.precision >= 0.5, 0.1) is None
    )  # at another prevalence it is about two classes
    assert share_of(A - B <= 0.1, None) is None


def test_bounds_are_split_into_inequalities():
    assert [str(a.bound) for a in inequalities([abs(A - B) <= 0.1], None)] == [
        'tpr on group="a" - tpr on group="b" <= 0.1',
        'tpr on group="a" - tpr on group="b" >= -0.1',
    ]
    assert [str(a.bound) for a in inequalities([sp.maximum(sp.fpr, sp.fnr) <= 0.1], None)] == [
        "fpr <= 0.1",
        "fnr <= 0.1",
    ]
    (ratio,) = inequalities([A / B >= 0.8], None)
    assert str(ratio.bound) == 'tpr on group="a" - 0.8 tpr on group="b" >= 0'
    (above,) = inequalities([lift >= 2], None)
    assert str(above.bound) == "precision - 2 prevalence >= 0"


@pytest.mark.parametrize(
    ("bound", "caps"),
    [
        (sp.fpr <= 0.1, True),
        (sp.recall >= 0.1, False),
        (sp.precision >= 0.1, None),
        (sp.fpr + sp.fnr <= 0.5, None),
    ],
    ids=str,
)
def test_which_bounds_are_caps(bound, caps):
    assert inequalities([bound], None)[0].caps is caps


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (sp.fpr <= 1, "holds for every threshold.*For 1 % write 0.01"),
        (sp.recall >= 0, "holds for every threshold"),
        (2 * sp.fpr >= 3, "cannot hold"),
        (prevalence <= 0.5, "does not depend on the threshold"),
    ],
    ids=str,
)
def test_bounds_without_a_question_are_refused(bound, message):
    with pytest.raises(ValueError, match=message):
        inequalities([bound], None)

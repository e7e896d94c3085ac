"""How the language reads, and what it answers to a slip of the pen."""

import copy
import dataclasses
import pickle
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import bounds, examples, expressions, ranges, setpoints

import setpoint as sp
from setpoint.rates import (
    ONE,
    Bound,
    Combination,
    Count,
    Fold,
    Quotient,
    Range,
    Setpoint,
    error,
    lift,
    numeral,
)

a, b = sp.tpr.on(group="a"), sp.tpr.on(group="b")


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (sp.fpr, "fpr"),
        (sp.fpr <= 0.01, "fpr <= 0.01"),
        (0.01 >= sp.fpr, "fpr <= 0.01"),  # noqa: SIM300
        (sp.recall >= 0.95, "recall >= 0.95"),
        (sp.fpr.at(0.01), "fpr at 0.01"),
        (sp.recall.over(0.95, 1), "recall in [0.95, 1]"),
        (0.5 * sp.fpr + 0.5 * sp.fnr, "0.5 fpr + 0.5 fnr"),
        (sp.balanced_error, "balanced_error"),
        (1 - sp.precision, "1 - precision"),
        (-sp.precision, "-precision"),
        (-sp.precision - 1, "-precision - 1"),
        (sp.fpr - 2 * sp.fnr + 0.5, "fpr - 2 fnr + 0.5"),
        (sp.fpr - sp.fpr, "0"),
        (sp.fpr * 3, "3 fpr"),
        (sp.fpr / 4, "0.25 fpr"),
        (abs(a - b) <= 0.02, 'abs(tpr on group="a" - tpr on group="b") <= 0.02'),
        (a <= b, 'tpr on group="a" - tpr on group="b" <= 0'),
        (sp.maximum(sp.fpr, sp.fnr), "max(fpr, fnr)"),
        (sp.minimum(sp.fpr, 0.5), "min(fpr, 0.5)"),
        (
            sp.recall.on(sex="f") / sp.recall.on(sex="m") >= 0.8,
            'recall on sex="f" / recall on sex="m" >= 0.8',
        ),
        ((sp.fpr + sp.fnr) / lift, "(fpr + fnr) / lift"),
        (1 / sp.precision, "(1) / precision"),
        (sp.f_score(2), "f_score(2)"),
        (sp.f_score(0.5).on(site=3), "f_score(0.5) on site=3"),
        (sp.Rate(sp.TP, sp.TP + sp.FP), "precision"),
        (sp.Rate(2 * sp.TP - sp.FN, sp.TP + sp.FP + 1 * ONE), "(2 TP - FN) / (TP + FP + 1)"),
        (error.on(b=1, a="x"), 'error on a="x" & b=1'),
        (error.on(**{"age group": "60+"}), 'error on "age group"="60+"'),
        (error.on(flag=True), "error on flag=True"),
        (sp.coverage <= 1e-5, "coverage <= 1e-05"),
        (sp.coverage <= -0.0, "coverage <= 0"),
        (sp.Rate(sp.TP, ONE).at(1000000), "(TP) / (1) at 1000000"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_it_reads_like_a_sentence(thing, sentence):
    assert str(thing) == repr(thing) == sentence


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1.0, "1"),
        (0.01, "0.01"),
        (1e-5, "1e-05"),
        (1e6, "1000000"),
        (1e22, "1e+22"),
        (-0.5, "-0.5"),
    ],
)
def test_numerals_are_short_and_exact(x, text):
    assert numeral(x) == text
    assert float(text) == x


# ---- values --------------------------------------------------------------------------------------
EVERYTHING = [
    *(
        sp.TP,
        sp.TP + sp.FP,
        sp.fpr,
        sp.fpr.on(group="a"),
        lift,
        sp.balanced_error,
        sp.maximum(sp.fpr, sp.fnr),
        sp.fpr / sp.fnr,
    ),
    *(sp.fpr <= 0.1, sp.fpr.at(0.1), sp.fpr.over(0, 0.1), sp.fpr + 1),
]


@pytest.mark.parametrize("thing", EVERYTHING, ids=str)
def test_everything_is_frozen(thing):
    for field in (*(f.name for f in dataclasses.fields(thing)), "anything"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field, 1)


@pytest.mark.parametrize("thing", EVERYTHING, ids=str)
def test_everything_survives_copying_and_pickling(thing):
    for again in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
        assert again == thing
        assert hash(again) == hash(thing)
        assert str(again) == str(thing)


def test_everything_can_stand_in_a_set():
    assert len({*EVERYTHING, *EVERYTHING}) == len(EVERYTHING)


@examples(200)
@given(expressions(), bounds(), setpoints(), ranges())
def test_what_is_made_again_is_equal_and_hashes_alike(expression, bound, setpoint, swept):
    for thing in (expression, bound, setpoint, swept):
        fields = [getattr(thing, f.name) for f in dataclasses.fields(thing) if f.init]
        again = type(thing)(*fields)
        assert again == thing
        assert hash(again) == hash(thing)
        assert thing in {again}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (sp.fpr <= 0.1, Bound(sp.Rate(sp.FP, sp.FP + sp.TN), "<=", 0.1)),
        (sp.fpr.at(0.5), Setpoint(sp.fpr, 0.5)),
        (sp.fpr.over(0, 1), Range(sp.fpr, 0, 1)),
        (sp.fpr.on(a=1).on(b=2), sp.fpr.on(b=2, a=1)),
        (sp.fpr.on(a=1), sp.Rate(sp.FP, sp.FP + sp.TN, (("a", 1),))),
        (sp.fpr.on(b=2, a=1), sp.Rate(sp.FP, sp.FP + sp.TN, (("b", 2), ("a", 1)))),
        (sp.fpr.on(a=1), sp.fpr.on(a=1.0)),
        (sp.fpr.on(a=1), sp.fpr.on(a=np.int64(1))),
        (sp.fpr.on(a="x"), sp.fpr.on(a=np.str_("x"))),
        (sp.fpr.on(a=1).on(a=1), sp.fpr.on(a=1)),
        (sp.fpr + sp.fpr, 2 * sp.fpr),
        (2 * sp.fpr + 2 * sp.fnr, 4 * sp.balanced_error),
        (sp.precision / sp.Rate(sp.TP + sp.FN, sp.TP + sp.FP + sp.FN + sp.TN), lift),
        (sp.fpr - 0, sp.fpr),
        (sp.fpr <= -0.0, sp.fpr <= 0),
        (np.float64(0.5) * sp.fpr, 0.5 * sp.fpr),
        (np.float32(0.5) + sp.fpr, 0.5 + sp.fpr),
        (np.float64(0.01) >= sp.fpr, sp.fpr <= 0.01),
        (np.int64(2) * sp.TP, 2 * sp.TP),
        (Fraction(1, 4) * sp.fpr, 0.25 * sp.fpr),
        (sp.fpr <= Decimal("0.1"), sp.fpr <= 0.1),
        (sp.TP - sp.FP, sp.TP + -sp.FP),
        (sp.fpr.on(**{"self": 1}), sp.Rate(sp.FP, sp.FP + sp.TN, (("self", 1),))),
    ],
    ids=str,
)
def test_one_thing_written_in_two_ways_is_equal(one, two):
    assert one == two
    assert hash(one) == hash(two)


def test_an_enum_picks_a_slice_by_its_value():
    class Site(str, Enum):
        far_up = "north"

    class Ward(IntEnum):
        first = 1

    for one, two in [(Site.far_up, "north"), (Ward.first, 1)]:
        assert sp.fpr.on(at=one) == sp.fpr.on(at=two)
        assert hash(sp.fpr.on(at=one)) == hash(sp.fpr.on(at=two))
        assert str(sp.fpr.on(at=one)) == str(sp.fpr.on(at=two))
        assert type(sp.fpr.on(at=one).where[0][1]) is type(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (sp.fpr, sp.fnr),
        (sp.fpr <= 0.1, sp.fpr >= 0.1),
        (sp.fpr, sp.fpr.on(a=1)),
        (sp.fpr.on(a=1), sp.fpr.on(a="1")),
        (2 * sp.TP, sp.TP),
    ],
    ids=str,
)
def test_different_things_are_not_equal(one, two):
    assert one != two


# ---- slips of the pen ----------------------------------------------------------------------------
SLIPS = {
    "bool(bound)": (
        lambda: bool(sp.fpr <= 0.1),
        TypeError,
        r"subject_to=\[fpr >= 0.1, fpr <= 0.2\]",
    ),
    "a chain": (lambda: 0.1 <= sp.fpr <= 0.2, TypeError, "python would keep only one"),
    "two bounds with and": (
        lambda: (sp.fpr <= 0.1) and (sp.fnr <= 0.2),
        TypeError,
        "`fpr <= 0.1` is a goal",
    ),
    "two setpoints with and": (
        lambda: sp.fpr.at(0.1) and sp.fnr.at(0.1),
        TypeError,
        "`fpr at 0.1` is a goal",
    ),
    "a range with or": (lambda: sp.fpr.over(0, 1) or 1, TypeError, "is a goal"),
    "bool(rate)": (lambda: bool(sp.fpr), TypeError, "only once it is measured"),
    "not rate": (lambda: not sp.fpr, TypeError, "`fpr` is a rate, not a number"),
    "strictly less": (lambda: sp.fpr < 0.1, TypeError, "write `fpr <= 0.1`"),
    "strictly more": (lambda: sp.recall > 0.9, TypeError, "write `recall >= 0.9`"),
    "reflected": (lambda: 0.1 > sp.fpr, TypeError, "write `fpr <= 0.1`"),  # noqa: SIM300
    "builtin max": (lambda: max(sp.fpr, sp.fnr), TypeError, r"maximum\(a, b\)"),
    "builtin min": (lambda: min(sp.fpr, sp.fnr), TypeError, r"minimum\(a, b\)"),
    "sorted": (lambda: sorted([sp.fpr, sp.fnr]), TypeError, "compare with <= and >="),
    "percent in a bound": (lambda: sp.recall >= 95, ValueError, "got 95. For 95 % write 0.95"),
    "percent in an average": (lambda: sp.balanced_error <= 5, ValueError, "For 5 % write 0.05"),
    "percent in a maximum": (
        lambda: sp.maximum(sp.fpr, sp.fnr) <= 5,
        ValueError,
        "For 5 % write 0.05",
    ),
    "a negative share": (lambda: sp.fpr <= -0.1, ValueError, "between 0 and 1; got -0.1"),
    "at zero": (lambda: sp.fpr.at(0), ValueError, "ends excluded; got 0. .* write `fpr <= 0`"),
    "at one": (lambda: sp.fpr.at(1), ValueError, "ends excluded; got 1. .* write `fpr >= 1`"),
    "at a percentage": (lambda: sp.fpr.at(5), ValueError, "For 5 % write 0.05"),
    "level of text": (lambda: sp.fpr <= "0.1", TypeError, "must be a finite number; got '0.1'"),
    "level of nan": (lambda: sp.fpr <= float("nan"), TypeError, "must be a finite number; got nan"),
    "level beyond floats": (
        lambda: sp.fpr <= 10**400,
        TypeError,
        "must be a finite number; got 1000",
    ),
    "level of a bool": (lambda: sp.fpr <= True, TypeError, "must be a finite number; got True"),
    "bound of a bound": (lambda: sp.fpr <= (sp.fnr <= 0.1), TypeError, "must be a finite number"),
    "range upside down": (
        lambda: sp.fpr.over(0.1, 0),
        ValueError,
        r"from low to high; got \[0.1, 0\]",
    ),
    "range of a point": (lambda: sp.fpr.over(0.1, 0.1), ValueError, "from low to high"),
    "range of percent": (lambda: sp.recall.over(95, 100), ValueError, "For 95 % write 0.95"),
    "range of error": (
        lambda: error.over(0, 1),
        ValueError,
        "moves one way .*error is neither. Use fpr, recall",
    ),
    "rate times rate": (
        lambda: sp.fpr * sp.fnr,
        TypeError,
        "Rates scale by numbers; cannot multiply fpr by fnr",
    ),
    "rate over zero": (lambda: sp.fpr / 0, ZeroDivisionError, "Cannot divide fpr by zero"),
    "rate plus text": (lambda: sp.fpr + "fnr", TypeError, "unsupported"),
    "rate times array": (lambda: sp.fpr * np.ones(3), TypeError, "not support|unsupported"),
    "array times rate": (lambda: np.ones(3) * sp.fpr, TypeError, "unsupported"),
    "an overflow": (lambda: 1e308 * sp.fpr * 10, TypeError, "must be a finite number; got inf"),
    "no slice": (lambda: sp.fpr.on(), TypeError, r'`.on\(group="a"\)`'),
    "a slice of None": (
        lambda: sp.fpr.on(group=None),
        TypeError,
        "a string or a number; got group=None",
    ),
    "a slice of nan": (lambda: sp.fpr.on(group=float("nan")), TypeError, "a string or a number"),
    "a slice of a list": (lambda: sp.fpr.on(group=["a"]), TypeError, r"got group=\['a'\]"),
    "half a character": (lambda: sp.fpr.on(group="\ud800"), TypeError, "a string or a number"),
    "a column of half": (
        lambda: sp.fpr.on(**{"\ud800": 1}),
        TypeError,
        "column of a slice is a string",
    ),
    "two slices": (
        lambda: sp.fpr.on(group="a").on(group="b"),
        ValueError,
        'Already on group="a"; no example is also "b"',
    ),
    "a column by number": (
        lambda: sp.Rate(sp.FP, sp.FP + sp.TN, ((1, "a"),)),
        TypeError,
        "column of a slice is a string; got 1",
    ),
    "rate of numbers": (lambda: sp.Rate(1, 2), TypeError, r"like Rate\(FP, FP \+ TN\); got 1"),
    "rate of rates": (lambda: sp.Rate(sp.fpr, sp.fnr), TypeError, r"like Rate\(FP, FP \+ TN\)"),
    "nothing on top": (lambda: sp.Rate(ONE, sp.TP), ValueError, "must count something"),
    "nothing below": (
        lambda: sp.Rate(sp.TP, sp.TP - sp.TP),
        ValueError,
        "denominator of a rate is zero",
    ),
    "count times text": (lambda: sp.TP * "2", TypeError, "can't multiply|unsupported"),
    "count plus number": (lambda: sp.TP + 1, TypeError, "unsupported"),
    "count minus number": (lambda: sp.TP - 1, TypeError, "unsupported"),
    "an infinite weight": (
        lambda: Count(tp=float("inf")),
        TypeError,
        "weight of TP must be a finite number",
    ),
    "maximum of text": (
        lambda: sp.maximum(sp.fpr, "fnr"),
        TypeError,
        "maximum takes rates, .* got 'fnr'",
    ),
    "maximum of a list": (
        lambda: sp.maximum([sp.fpr, sp.fnr]),
        TypeError,
        r"maximum takes rates, .* got \[fpr, fnr\]",
    ),
    "minimum of nothing": (lambda: sp.minimum(), TypeError, "minimum needs at least one"),
    "another sense": (lambda: Bound(sp.fpr, "<", 0.1), ValueError, "'<=' or '>='; got '<'"),
    "bound of text": (lambda: Bound("fpr", "<=", 0.1), TypeError, "as in fpr <= 0.01; got 'fpr'"),
    "setpoint of text": (lambda: Setpoint("fpr", 0.1), TypeError, "got 'fpr'"),
    "range of text": (lambda: Range("fpr", 0, 1), TypeError, "got 'fpr'"),
    "a sum twice": (
        lambda: Combination(((1.0, sp.fpr), (1.0, sp.fpr))),
        ValueError,
        r"Write it with \+ and \*",
    ),
    "a sum of one": (lambda: Combination(((1.0, sp.fpr),)), ValueError, r"Write it with \+ and \*"),
    "a sum with zero": (
        lambda: Combination(((0.0, sp.fpr), (2.0, sp.fnr))),
        ValueError,
        r"Write it with \+ and \*",
    ),
    "a sum of sums": (
        lambda: Combination(((2.0, sp.fpr + sp.fnr),)),
        TypeError,
        r"Write it with \+ and \*",
    ),
    "a sum of text": (lambda: Combination(((2.0, "fpr"),)), TypeError, r"Write it with \+ and \*"),
    "an unknown fold": (
        lambda: Fold("mean", (sp.fpr, sp.fnr)),
        ValueError,
        "'abs', 'max' or 'min'; got 'mean'",
    ),
    "abs of two": (lambda: Fold("abs", (sp.fpr, sp.fnr)), ValueError, "abs takes one expression"),
    "max of one": (lambda: Fold("max", (sp.fpr,)), ValueError, "max and min take several"),
    "quotient of numbers": (lambda: Quotient(sp.fpr, 2), TypeError, "made of rates; got 2"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_answered_with_advice(slip):
    do, error, advice = SLIPS[slip]
    with pytest.raises(error, match=advice):
        do()


def test_double_equals_compares_and_does_not_hold():
    assert (sp.fpr == 0.01) is False
    assert (sp.fpr == sp.Rate(sp.FP, sp.FP + sp.TN)) is True
    assert sp.fnr == sp.Rate(sp.FN, sp.TP + sp.FN)


def test_nesting_has_an_end():
    deep = sp.fpr
    for _ in range(49):
        deep = abs(deep)
    assert str(deep) == 49 * "abs(" + "fpr" + 49 * ")"
    with pytest.raises(ValueError, match="nested 50 deep, and no deeper"):
        abs(deep)

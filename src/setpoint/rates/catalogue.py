"""The rates people use, defined as in the textbook."""

from __future__ import annotations

from setpoint._checks import number
from setpoint.rates.combination import Combination
from setpoint.rates.counts import EVERYONE, FN, FP, NEGATIVES, ONE, POSITIVES, TN, TP
from setpoint.rates.expression import Expression
from setpoint.rates.folds import Quotient
from setpoint.rates.rate import NAMES, Rate, named
from setpoint.rates.text import numeral

fpr = named("fpr", Rate(FP, NEGATIVES))
tnr = named("tnr", Rate(TN, NEGATIVES))
fnr = named("fnr", Rate(FN, POSITIVES))
recall = named("recall", Rate(TP, POSITIVES))
tpr = named("tpr", Rate(TP, POSITIVES))
precision = named("precision", Rate(TP, TP + FP))
npv = named("npv", Rate(TN, TN + FN))
coverage = named("coverage", Rate(TP + FP, EVERYONE))
alerts = named("alerts", Rate(TP + FP, ONE))
prevalence = named("prevalence", Rate(POSITIVES, EVERYONE))
error = named("error", Rate(FP + FN, EVERYONE))
accuracy = named("accuracy", Rate(TP + TN, EVERYONE))
jaccard = named("jaccard", Rate(TP, TP + FP + FN))
lift = named("lift", Quotient(precision, prevalence))
balanced_error = named("balanced_error", Combination(((0.5, fpr), (0.5, fnr))))

CATALOGUE: dict[str, Expression] = {
    e._name: e
    for e in (
        *(fpr, tnr, fnr, recall, tpr, precision, npv, coverage, alerts, prevalence),
        *(error, accuracy, jaccard, lift, balanced_error),
    )
}
for _name, _rate in CATALOGUE.items():
    if isinstance(_rate, Rate):
        NAMES.setdefault((_rate.numerator, _rate.denominator), _name)


def f_score(beta: float = 1.0) -> Rate:
    """The F score: recall counts ``beta`` times as much as precision.

    >>> str(f_score(2))
    'f_score(2)'
    """
    if not 0 < number(beta, "beta") < 1e100:  # above, beta squared overflows
        raise ValueError(f"beta must be positive and less than 1e100; got {beta!r}.")
    b = float(beta) ** 2
    rate = Rate((1 + b) * TP, (1 + b) * TP + b * FN + FP)
    return named(f"f_score({numeral(float(beta))})", rate)

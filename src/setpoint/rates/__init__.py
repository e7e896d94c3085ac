"""Rates: counts, their quotients, and the sentences made of them. Imports no array library."""

from setpoint.rates.arrays import Array
from setpoint.rates.catalogue import (
    CATALOGUE,
    accuracy,
    alerts,
    balanced_error,
    coverage,
    error,
    f_score,
    fnr,
    fpr,
    jaccard,
    lift,
    npv,
    precision,
    prevalence,
    recall,
    tnr,
    tpr,
)
from setpoint.rates.combination import Combination
from setpoint.rates.counts import FN, FP, ONE, TN, TP, Count, Counts
from setpoint.rates.expression import Expression, Tables
from setpoint.rates.folds import Fold, Quotient, maximum, minimum
from setpoint.rates.rate import Rate
from setpoint.rates.slices import Value, Where, column_name
from setpoint.rates.targets import Bound, Range, Setpoint, Target
from setpoint.rates.text import numeral

__all__ = [
    "CATALOGUE",
    "FN",
    "FP",
    "ONE",
    "TN",
    "TP",
    "Array",
    "Bound",
    "Combination",
    "Count",
    "Counts",
    "Expression",
    "Fold",
    "Quotient",
    "Range",
    "Rate",
    "Setpoint",
    "Tables",
    "Target",
    "Value",
    "Where",
    "accuracy",
    "alerts",
    "balanced_error",
    "column_name",
    "coverage",
    "error",
    "f_score",
    "fnr",
    "fpr",
    "jaccard",
    "lift",
    "maximum",
    "minimum",
    "npv",
    "numeral",
    "precision",
    "prevalence",
    "recall",
    "tnr",
    "tpr",
]

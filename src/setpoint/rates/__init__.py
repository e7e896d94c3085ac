"""Rates: counts, their quotients, and the sentences made of them. Imports no array library."""

from setpoint.rates.across import Across, highest, lowest, macro, nodes
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
from setpoint.rates.classes import MATRIX, Classes, ClassName, Confusion
from setpoint.rates.combination import Combination
from setpoint.rates.counts import FN, FP, ONE, TN, TP, Count, Counts
from setpoint.rates.expression import Expression, Tables
from setpoint.rates.folds import Fold, Quotient, maximum, minimum
from setpoint.rates.judged import Cost, TopK, cost, top_k
from setpoint.rates.rankings import AREAS, ClassArea, auc_mu, one_vs_all_auc
from setpoint.rates.rate import Rate
from setpoint.rates.slices import Value, Where, column_name
from setpoint.rates.targets import Bound, Range, Setpoint, Target
from setpoint.rates.text import numeral

__all__ = [
    "AREAS",
    "CATALOGUE",
    "FN",
    "FP",
    "MATRIX",
    "ONE",
    "TN",
    "TP",
    "Across",
    "Array",
    "Bound",
    "ClassArea",
    "ClassName",
    "Classes",
    "Combination",
    "Confusion",
    "Cost",
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
    "TopK",
    "Value",
    "Where",
    "accuracy",
    "alerts",
    "auc_mu",
    "balanced_error",
    "column_name",
    "cost",
    "coverage",
    "error",
    "f_score",
    "fnr",
    "fpr",
    "highest",
    "jaccard",
    "lift",
    "lowest",
    "macro",
    "maximum",
    "minimum",
    "nodes",
    "npv",
    "numeral",
    "one_vs_all_auc",
    "precision",
    "prevalence",
    "recall",
    "tnr",
    "top_k",
    "tpr",
]

"""Rates and bounds in words that need no statistics."""

from __future__ import annotations

from setpoint.rates import Bound, Expression, Setpoint
from setpoint.reports.html import Html, join, name, tag
from setpoint.reports.numbers import level

LONG = {
    "fpr": "false positive rate",
    "tnr": "true negative rate",
    "fnr": "miss rate",
    "recall": "recall",
    "tpr": "recall",
    "precision": "precision",
    "coverage": "alert rate",
    "error": "error rate",
    "accuracy": "accuracy",
}
PROMISES = {
    "fpr": "of the negatives are flagged by mistake",
    "tnr": "of the negatives are left alone",
    "fnr": "of the {} are missed",
    "recall": "of the {} are found",
    "tpr": "of the {} are found",
    "precision": "of what is flagged is {}",
    "coverage": "of all cases are flagged",
    "error": "of all cases are decided wrongly",
    "accuracy": "of all cases are decided rightly",
}
SAYS = {
    "holds": "✓ holds",
    "met": "within, unproven",
    "missed": "outside, unproven",
    "broken": "✗ broken",
}


def rate_name(expression: Expression) -> str:
    """``miss rate``; an expression without a name of its own is written out."""
    return LONG.get(str(expression), str(expression))


def promise(bound: Bound | Setpoint, positive: str) -> Html:
    """``at most 1 % of the negatives are flagged by mistake``."""
    ending = PROMISES.get(str(bound.expression))
    if ending is None or not isinstance(bound, Bound):
        return tag("bdi", pretty(str(bound)))
    amount = "at most" if bound.sense == "<=" else "at least"
    before, _, after = ending.partition("{}")
    who = join("“", name(positive, 40), "”") if "{}" in ending else None
    return join(f"{amount} {level(bound.level)} {before}", who, after)


def pretty(sentence: str) -> str:
    """``fpr ≤ 0.01``."""
    return sentence.replace("<=", "≤").replace(">=", "≥").replace("`", "")


def listed(pieces: list[Html]) -> Html:
    """``a, b and c``."""
    if len(pieces) < 2:
        return join(*pieces)
    return join(Html(", ".join(pieces[:-1])), " and ", pieces[-1])

"""Numbers, rates and users' words as a person reads them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from markupsafe import Markup

from setpoint.rates import Bound, Expression, Setpoint
from setpoint.results import Interval, Measured, Verdict

MINUS, NOTHING = "\u2212", "\u2013"
LONGEST = 120
RATE_NAMES = {
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
BOUNDS_IN_WORDS = {
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
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def percent(share: float) -> str:
    """A share in per cent, with as many digits as matter.

    Examples:
        >>> [percent(x) for x in (0.00012, 0.0043, 0.012, 0.5, 0.9996, 1.0)]
        ['0.012 %', '0.43 %', '1.20 %', '50.0 %', '99.96 %', '100 %']
    """
    if math.isnan(share):
        return NOTHING
    value = 100 * share
    if value in (0.0, 100.0):
        return f"{value:g} %"
    size = abs(value)
    if size >= 10:
        return f"{value:.{1 if size < 99.95 else 2}f} %"
    return f"{value:.2f} %" if size >= 0.1 else f"{value:.2g} %"


def level(share: float) -> str:
    """A level that was asked for, with its own digits: ``1 %``."""
    return f"{100 * share:.10g} %"


def points(difference: float) -> str:
    """A difference of two shares, in points, with its sign."""
    return f"{100 * difference:+.1f}".replace("-", MINUS)


def between(interval: Interval | None) -> str:
    """An interval of a share, ``0.21 % to 0.84 %``; empty if there is none."""
    return "" if interval is None else f"{percent(interval.low)} to {percent(interval.high)}"


def cut(value: float) -> str:
    """A threshold to five digits; the JSON block has all of them."""
    if math.isinf(value):
        return "everyone is flagged" if value < 0 else "no threshold"
    return f"{value:.5g}".replace("-", MINUS)


def thousands(value: float) -> str:
    """A count with separators, ``12,345``."""
    return f"{value:,.0f}"


def number(value: float) -> str:
    """Four digits, for a value that is not a share."""
    return NOTHING if math.isnan(value) else f"{value:.4g}".replace("-", MINUS)


def rate_value(rate: Measured) -> str:
    """A rate in its own units: per cent for a share of examples, else a plain number."""
    return percent(rate.value) if rate.total is not None else number(rate.value)


def rate_interval(rate: Measured) -> str:
    """The interval of a rate in the same units as its value; empty if there is none."""
    if rate.interval is None or rate.total is not None:
        return between(rate.interval)
    return f"{number(rate.interval.low)} to {number(rate.interval.high)}"


def share_or_number(rate: Measured | None, expression: Expression) -> str:
    """A value without counts: per cent if ``expression`` is a share; a dash if there is none."""
    if rate is None:
        return NOTHING
    return percent(rate.value) if expression.is_share else number(rate.value)


def gap_in_points(gap: Measured) -> str:
    """A difference between two groups with its interval, in points: ``4.1 (0.0 to 9.7)``."""
    value, *ends = (points(end).lstrip("+") for end in (gap.value, *(gap.interval or ())))
    return f"{value} ({' to '.join(ends)})" if ends else value


def rate_name(expression: Expression) -> str:
    """The name of a rate in words; an expression without one is written out."""
    return RATE_NAMES.get(str(expression), str(expression))


def pretty(sentence: object) -> str:
    """A goal, bound or note with typographic signs: ``fpr ≤ 0.01``."""
    return str(sentence).replace("<=", "≤").replace(">=", "≥").replace("`", "")


def capital(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def full_sentence(text: str) -> str:
    """The text with a capital at the beginning and a full stop at the end."""
    return capital(text) + ("" if text.endswith((".", "!", "?")) else ".")


def printable(value: object) -> str:
    """Any value as text, with a replacement sign for each character that HTML does not allow."""
    return _UNPRINTABLE.sub("\ufffd", str(value))


def clip(value: object, longest: int = LONGEST) -> str:
    """The beginning of a long text; the whole of it is in the JSON block."""
    text = printable(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def name(value: object, longest: int = LONGEST) -> Markup:
    """A user's own word in an element that keeps its direction of writing apart from ours."""
    return Markup("<bdi>{}</bdi>").format(clip(value, longest))


def bound_in_words(bound: Bound | Setpoint, positive: str) -> Markup:
    """``at most 1 % of the negatives are flagged by mistake``."""
    ending = BOUNDS_IN_WORDS.get(str(bound.expression))
    if ending is None or not isinstance(bound, Bound):
        return Markup("<bdi>{}</bdi>").format(pretty(bound))
    amount = "at most" if bound.sense == "<=" else "at least"
    words = Markup(ending).format(Markup("“{}”").format(name(positive, 40)))
    return Markup("{} {} {}").format(amount, level(bound.level), words)


def bounds_in_words(bounds: Sequence[Bound | Setpoint], positive: str) -> Markup:
    """Several bounds: ``a, b and c``."""
    pieces = [bound_in_words(bound, positive) for bound in bounds]
    if len(pieces) < 2:
        return Markup("").join(pieces)
    return Markup(", ").join(pieces[:-1]) + " and " + pieces[-1]


def asked_level(bound: Bound | Setpoint) -> str:
    """The sense and level of a bound: ``≤ 1 %``."""
    sense = bound.sense if isinstance(bound, Bound) else "at"
    asked = level(bound.level) if bound.expression.is_share else f"{bound.level:g}"
    return pretty(f"{sense} {asked}")


def asked_and_proved(bound: Bound | Setpoint, verdict: Verdict) -> str:
    """``asked ≤ 1 %, proved ≤ 0.97 %``."""
    text = f"asked {asked_level(bound)}"
    proved = verdict.proved.get(str(bound))
    if proved is None:
        return text
    sense = bound.sense if isinstance(bound, Bound) else "at"
    shown = percent(proved) if bound.expression.is_share else f"{proved:g}"
    return text + pretty(f", proved {sense} {shown}")

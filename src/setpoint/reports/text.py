"""Numbers, rates and users' words as a person reads them."""

from __future__ import annotations

import math
import re
from datetime import datetime

from markupsafe import Markup

from setpoint.rates import Bound, Combination, Expression, Fold, Rate, Setpoint, is_cost
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
    "npv": "negative predictive value",
    "coverage": "alert rate",
    "error": "error rate",
    "accuracy": "accuracy",
}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def cases_per_unit(cases: int, days: int | None) -> float:
    """Cases in a day where the number of days is known, or else 1,000."""
    return cases / days if days else 1000.0


def percent(share: float) -> str:
    """A share in per cent, with as many digits as matter.

    Examples:
        >>> [percent(x) for x in (0.00012, 0.0043, 0.012, 0.1, 0.5, 0.9996, 1.0)]
        ['0.012 %', '0.43 %', '1.20 %', '10.0 %', '50.0 %', '99.96 %', '100 %']
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


def signed(value: float, digits: int = 0) -> str:
    """A difference with its sign, ``+1,234`` or ``−0.5``; nothing is ``±0``."""
    text = f"{value:+,.{digits}f}"
    return f"±{text[1:]}" if float(text.replace(",", "")) == 0 else text.replace("-", MINUS)


def money(value: float) -> str:
    """An amount without its currency: cents below 100, halves up as in the page's script."""
    digits = 0 if abs(value) >= 100 else 2
    rounded = math.copysign(math.floor(abs(value) * 10**digits + 0.5) / 10**digits, value)
    return f"{rounded:,.{digits}f}".replace("-", MINUS)


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


def is_gap(expression: Expression | None) -> bool:
    """Whether it is a difference of shares, which is told in points."""
    if isinstance(expression, Fold) and expression.kind == "abs":
        return is_gap(expression.parts[0])
    if not isinstance(expression, Combination) or expression.constant:
        return False
    shares = all(term.is_share for _, term in expression.terms)
    return shares and sum(weight for weight, _ in expression.terms) == 0


def in_units(value: float, expression: Expression | None) -> str:
    """A value in the units of ``expression``: points for a gap, per cent for a share."""
    if value == value and is_gap(expression):
        return f"{100 * value:.3g} points".replace("-", MINUS)
    share = expression is not None and expression.is_share
    return percent(value) if share else number(value)


def rate_value(rate: Measured | None, expression: Expression | None = None) -> str:
    """A rate in its own units; a dash if there is none."""
    if rate is None:
        return NOTHING
    return percent(rate.value) if rate.total is not None else in_units(rate.value, expression)


def rate_interval(rate: Measured, expression: Expression | None = None) -> str:
    """The interval of a rate in the same units as its value; empty if there is none."""
    if rate.interval is None or rate.total is not None:
        return between(rate.interval)
    low, high = (in_units(end, expression) for end in rate.interval)
    return f"{low.removesuffix(' points')} to {high}"


def counts(rate: Measured) -> str:
    """``12 of 3,456``; empty for a mean over clusters, which is no count."""
    if rate.count is None and rate.total:
        return ""
    return f"{thousands(rate.count or 0)} of {thousands(rate.total or 0)}"


def price(value: float) -> str:
    """An amount as it was given."""
    return f"{value:.15g}"


def date(text: object) -> str:
    """``18 November 2026`` from an ISO date; any other text as it is."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{found.day} {found:%B %Y}"


def gap_in_points(gap: Measured) -> str:
    """A difference between two groups with its interval, in points: ``4.1 (0.0 to 9.7)``."""
    value, *ends = (points(end).lstrip("+") for end in (gap.value, *(gap.interval or ())))
    return f"{value} ({' to '.join(ends)})" if ends else value


def rate_name(expression: Expression) -> str:
    """The name of a rate, of a gap or a cost in words; another expression is written out.

    Examples:
        >>> from setpoint.rates import fpr, tpr
        >>> rate_name(fpr), rate_name(tpr.on(sex="f"))
        ('false positive rate', 'recall, sex = f')
        >>> rate_name(abs(tpr.on(sex="f") - tpr.on(sex="m")))
        'gap in recall, sex = f and sex = m'
    """
    rates = tuple(expression.rates())
    plain = {str(Rate(rate.numerator, rate.denominator)) for rate in rates if not rate.classes}
    if is_cost(expression):
        return "cost of a case"
    if len(plain) != 1 or not plain <= set(RATE_NAMES):
        return str(expression)
    known = RATE_NAMES[plain.pop()]
    where = [" and ".join(f"{c} = {v}" for c, v in rate.where) for rate in rates]
    if len(rates) == 2 and is_gap(expression):
        return f"gap in {known}, {where[0]} and {where[1]}"
    if not isinstance(expression, Rate):
        return str(expression)
    return f"{known}, {where[0]}" if where[0] else known


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


def level_text(bound: Bound | Setpoint) -> str:
    """The level of a bound with its own digits, in the units of what it bounds."""
    share = bound.expression.is_share
    return level(bound.level) if share else in_units(bound.level, bound.expression)


def asked_level(bound: Bound | Setpoint) -> str:
    """The sense and level of a bound: ``≤ 1 %``."""
    sense = bound.sense if isinstance(bound, Bound) else "at"
    return pretty(f"{sense} {level_text(bound)}")


def asked_and_proved(bound: Bound | Setpoint, verdict: Verdict) -> str:
    """``asked ≤ 1 %, proved ≤ 0.97 %``."""
    text = f"asked {asked_level(bound)}"
    proved = verdict.proved.get(str(bound))
    if proved is None:
        return text
    sense = bound.sense if isinstance(bound, Bound) else "at"
    return text + pretty(f", proved {sense} {in_units(proved, bound.expression)}")

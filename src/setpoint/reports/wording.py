"""Bounds and verdicts in a reader's own words: ``at most 1 in 100 legitimate payments is blocked``.

Words that a user chose are only text: they stand in ``<bdi>`` elements, escaped and clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from setpoint.rates import Bound, Expression, Fold, Rate, Setpoint, is_cost
from setpoint.reports.text import clip, in_units, is_gap, level, name, number, pretty
from setpoint.results import Findings, RunResult

NAMELESS = ("", "1", "1.0", "true", "yes", "y", "t", "positive", "pos")
"""Labels that are no name of a class."""
IRREGULAR = {
    **{"hold": "held", "withhold": "withheld", "send": "sent", "freeze": "frozen", "pay": "paid"},
    **{"take": "taken", "give": "given", "keep": "kept", "let": "let", "cut": "cut", "put": "put"},
    **{"set": "set", "tell": "told", "lend": "lent", "catch": "caught", "sell": "sold"},
}
SUBJECTS = {
    "fpr": ("{negatives}", "{done}"),
    "tnr": ("{negatives}", "not {done}"),
    "fnr": ("{positives}", "missed"),
    "recall": ("{positives}", "{done}"),
    "tpr": ("{positives}", "{done}"),
    "precision": ("{done} cases", "{positive}"),
    "npv": ("{undone}", "not {positive}"),
    "coverage": ("cases", "{done}"),
    "error": ("cases", "decided wrongly"),
    "accuracy": ("cases", "decided rightly"),
}
"""By rate: what it is a share of, and what those are."""


def participle(verb: str) -> str:
    """What a case is once the verb is done to it; the first word is inflected.

    Examples:
        >>> [participle(v) for v in ("block", "stop", "deny", "review", "send to a human")]
        ['blocked', 'stopped', 'denied', 'reviewed', 'sent to a human']
    """
    first, space, rest = verb.partition(" ")
    low, vowels = first.lower(), "aeiou"
    if not (low.isascii() and low.isalpha()):
        return verb
    if low in IRREGULAR:
        done = IRREGULAR[low]
    elif low.endswith("e"):
        done = first + "d"
    elif low[-1:] == "y" and low[-2:-1] not in vowels:
        done = first[:-1] + "ied"
    else:
        groups = sum(c in vowels and b not in vowels for b, c in zip(" " + low, low, strict=False))
        double = groups == 1 and low[-1:] not in "aeiouwxy" and low[-2:-1] in vowels
        double = double and low[-3:-2] not in vowels
        done = first + (first[-1] if double else "") + "ed"
    return done + space + rest


@dataclass(frozen=True)
class Nouns:
    """The words of the task, for sentences.

    Attributes:
        positive: What a positive case is, ``fraud``.
        positives: Several of them, ``fraud cases``.
        negatives: The others, ``legitimate payments``.
        act: What is done above the threshold, ``block``.
        done: What such a case is, ``blocked``.
        undone: The cases that nothing is done to.
    """

    positive: Markup
    positives: Markup
    negatives: Markup
    act: Markup
    done: Markup
    undone: Markup


def nouns_of(run: RunResult) -> Nouns:
    """The words of a run."""
    return nouns_from(run.positive, run.negative, run.action)


def nouns_from(positive: str, negative: str, action: str) -> Nouns:
    """The words for a positive case, for the others (in the plural) and for what is done."""
    named = positive.strip().lower() not in NAMELESS
    one, done = name(positive, 40), name(participle(action.strip() or "flag"), 44)
    others = Markup("non-{} cases").format(one) if named else Markup("negatives")
    return Nouns(
        one if named else Markup("positive"),
        Markup("{} cases").format(one) if named else Markup("positives"),
        name(negative, 60) if negative else others,
        name(action, 40),
        done,
        Markup("cases that are not {}").format(done),
    )


def one_in(share: float) -> str:
    """A share as a number of cases: ``1 in 100``; empty if it takes more than four digits.

    Examples:
        >>> [one_in(x) for x in (0.01, 0.05, 0.002, 0.95, 0.9, 0.025, 0.123456, 0.0, 1.0)]
        ['1 in 100', '1 in 20', '1 in 500', '95 in 100', '9 in 10', '1 in 40', '', '', '']
    """
    if not 0 < share < 1:
        return ""
    among = round(1 / share)
    if share <= 0.5 and abs(among * share - 1) < 1e-9:
        return f"1 in {among:,}"
    for size in (10, 100, 1000, 10_000):
        count = round(share * size)
        if abs(count - share * size) < 1e-9 * size:
            return f"{count:,} in {size:,}"
    return ""


def bound_in_words(bound: Bound | Setpoint, nouns: Nouns) -> Markup:
    """``at most 1 in 100 legitimate payments is blocked``; other bounds are written as they are."""
    if isinstance(bound, Bound):
        amount = "at most" if bound.sense == "<=" else "at least"
        if is_cost(bound.expression):
            return Markup("a case costs {} {} on average").format(amount, number(bound.level))
        words = _share(bound.expression, nouns)
        if words is not None:
            return _counted(amount, bound.level, *words)
        gap = _gap(bound.expression, nouns)
        if gap is not None:
            size = in_units(bound.level, bound.expression)
            told = "the share of {} that are {} differs by {} {} between {} and {}"
            return Markup(told).format(*gap[:2], amount, size, *gap[2:])
    return Markup("<bdi>{}</bdi>").format(pretty(bound))


def _counted(amount: str, share: float, subject: Markup, predicate: Markup) -> Markup:
    count = one_in(share)
    verb = "is" if count.startswith("1 in") else "are"
    many = count or f"{level(share)} of"
    return Markup("{} {} {} {} {}").format(amount, many, subject, verb, predicate)


def _share(expression: Expression, nouns: Nouns) -> tuple[Markup, Markup] | None:
    """What a rate is a share of and what those are; None if it has no such words."""
    if not isinstance(expression, Rate):
        return None
    plain = str(Rate(expression.numerator, expression.denominator))
    if expression.classes:
        if plain not in ("recall", "tpr", "precision") or len(expression.classes) != 1:
            return None
        one = name(expression.classes[0], 40)
        subject = Markup("cases taken for {}" if plain == "precision" else "{} cases").format(one)
        known: tuple[Markup, Markup] = (subject, one if plain == "precision" else Markup("found"))
    elif plain in SUBJECTS:
        subject, predicate = (Markup(text).format(**vars(nouns)) for text in SUBJECTS[plain])
        known = (subject, predicate)
    else:
        return None
    if expression.where:
        known = (Markup("{} with {}").format(known[0], _slice(expression)), known[1])
    return known


def _slice(rate: Rate) -> Markup:
    """``sex = f``."""
    parts = (Markup("{} = {}").format(name(c, 40), name(v, 40)) for c, v in rate.where)
    return Markup(" and ").join(parts)


def _gap(expression: Expression, nouns: Nouns) -> tuple[Markup, ...] | None:
    """The share of which two groups differ, and the groups; None if it is no such difference."""
    if not isinstance(expression, Fold) or not is_gap(expression):
        return None
    rates = tuple(expression.rates())
    counted = {(rate.numerator, rate.denominator) for rate in rates}
    if len(rates) != 2 or len(counted) != 1:
        return None
    words = _share(Rate(*counted.pop()), nouns)
    return None if words is None else (*words, *map(_slice, rates))


def bounds_in_words(bounds: Sequence[Bound | Setpoint], run: RunResult) -> Markup:
    """Several bounds, joined by commas and a last "and"."""
    return promise_in_words(bounds, nouns_of(run), (run.certificate or {}).get("column"))


def promise_in_words(
    bounds: Sequence[Bound | Setpoint], nouns: Nouns, column: str | None
) -> Markup:
    """Several bounds in the words of a task, in each group of a column if it is named."""
    pieces = [bound_in_words(bound, nouns) for bound in bounds]
    everywhere = not any(rate.where for bound in bounds for rate in bound.expression.rates())
    each = column if everywhere else None  # bounds that name groups are no bounds on each
    of = Markup(" of {}").format(name(each, 40)) if each and each.lower() != "group" else Markup("")
    last = Markup(" in each group") + of if each else Markup("")
    if len(pieces) < 2:
        return Markup("").join(pieces) + last
    return Markup(", ").join(pieces[:-1]) + " and " + pieces[-1] + last


def confidence_in_words(found: Findings) -> str:
    """``with 95 % confidence``."""
    if found.verdict.guarantee == "mean":
        return "on average over calibration samples"
    return f"with {level(found.verdict.confidence)} confidence"


def interval_convention(found: Findings) -> str:
    """What every interval of the page is."""
    sure = level(found.verdict.confidence)
    told = f"Intervals are two-sided {sure} intervals, each by itself (Clopper and Pearson, exact)."
    means = " The rates of calibration data are the certificate's: means over clusters."
    recalls = [row.recall for row in found.splits if found.verdict.by_cluster]
    return told + means * any(rate.count is None and rate.total for rate in recalls)


def headline(found: Findings) -> Markup:
    """The verdict on a run in one sentence, without a full stop."""
    what = bounds_in_words(found.goal.bounds, found.run)
    status, sure = found.verdict.status, confidence_in_words(found)
    if not found.goal.bounds:
        return Markup("Measured, not certified: the goal has no bound to prove")
    if status == "certified":
        doubts = [pretty(doubt).rstrip(".") for doubt in found.doubts]
        but = Markup(", but {}").format(clip("; ".join(doubts), 300)) if doubts else ""
        return Markup("{}: proved {}{}").format(_capital(what), sure, but)
    if status == "not certified":
        return Markup("Not proved {}: {}").format(sure, what)
    if status == "infeasible":
        return Markup("Too few cases to prove that {}").format(what)
    return Markup("Measured, not proved: {}").format(what)


def _capital(text: Markup) -> Markup:
    """With a capital, unless a user's word comes first."""
    return text if text.startswith("<") else text[:1].upper() + text[1:]

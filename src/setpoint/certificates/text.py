"""What a certificate says in words, as plain text for a terminal and as a table for notebooks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from scipy.special import ndtr, ndtri

from setpoint._checks import plural
from setpoint.certificates.proofs import CERTIFIED, INFEASIBLE, NOT_CERTIFIED, SearchVerdict
from setpoint.certificates.regions import signs
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    PRIOR,
    CalibrationSample,
    Subset,
    count_text,
)
from setpoint.certificates.tails import prob_at_least, prob_at_most

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Claim, Point
    from setpoint.certificates.goals import Inequality
    from setpoint.rates import Bound

TextRows = Iterator[tuple[str, str]]
_TEXT_WIDTH = 96
_ROOMY = 0.8
"""The share of an allowed rate that a large sample should let one use."""
_WORSE_THAN_CHANCE = 0.001
"""How rarely chance picks so few positives before a certificate says that the scores do worse."""
_COLORS = {CERTIFIED: "#1a7f37", NOT_CERTIFIED: "#b35900"}
_ALARM = "#b42318"


def assumptions(
    proved: Iterable[Inequality], sample: CalibrationSample, candidates: int, mean: bool = False
) -> Iterator[str]:
    """What must be true for the certificate to hold."""
    n = plural(sample.examples, "cluster" if sample.clusters else "row")
    yield f"The {n} are independent draws from what the threshold will meet: no copies, no drift."
    if sample.clusters:
        yield (
            "Rates are those of a random row of a new cluster: every cluster counts once, however "
            "many rows it has. Counts are of one random row of each."
        )
    if sample.lowest_threshold == -math.inf:
        yield "They are a sample of all that is scored, not only reviewed alerts."
    else:
        yield "They are alerts that were reviewed, whatever their score: none was left out."
    if candidates == 1:
        yield "The model was neither trained nor chosen on these rows."
    else:
        yield (
            f"The model is one of {candidates} that were fixed before these rows were looked at; "
            "choosing among them is accounted for."
        )
    needs_mix = any(
        subset.kind in (PRIOR, EVERYONE)
        for inequality in proved
        for subset in signs(inequality.bound.expression, sample.prevalence)
    )
    if sample.prevalence is not None:
        ends = sample.prevalence if isinstance(sample.prevalence, tuple) else (sample.prevalence,)
        share = " to ".join(f"{end:.4g}" for end in ends)
        yield f"The share of positives will be {share}; within a class scores stay so."
    elif needs_mix:
        yield "The share of positives will be as in these rows."
    else:
        yield "The share of positives may change; scores within a class may not."
    precision = sample.precision if sample.order is None else sample.order.precision
    yield f"Decisions are score > threshold, with scores in {precision}."
    if sample.order is not None:
        yield (
            "Scores that equal the threshold are decided by a lot drawn from the row's id; rows to "
            "come have other ids than these."
        )
    if sample.largest_amount is not None:
        yield f"No amount will exceed {sample.largest_amount:g}."
    if mean:
        yield "The rate holds on average over samples like this: about every other one exceeds it."


def advice_on(
    outcome: SearchVerdict,
    sample: CalibrationSample,
    delta: float,
    mean: bool,
    claims: Iterable[Claim],
) -> Iterator[str]:
    """What would change the verdict."""
    known = {claim.bound: claim.measured for claim in claims}
    if outcome.status == INFEASIBLE:
        yield "More examples of the kind that is missing, a looser bound, or a lower confidence."
    elif outcome.status != CERTIFIED:
        yield "More data, a looser bound, a lower confidence, or a better model."
    elif not mean:
        for inequality in outcome.proved:
            share = inequality.share
            if share is None or not share.subset.is_whole:
                continue
            odds = (1 - share.risk) / share.risk
            enough = float(ndtri(1 - delta)) ** 2 * odds / (1 - _ROOMY) ** 2
            measured = known.get(str(inequality.source))
            if measured is not None and _used(measured, inequality.source) >= _ROOMY:
                continue
            if sample.size(share.subset) < enough:
                more = count_text(float(f"{enough:.2g}"), share.subset)
                more += " of clusters of their own" if sample.clusters else ""
                used = f"{100 * _ROOMY:.0f} % of what `{inequality.source}` allows"
                yield f"With about {more} the threshold could use {used}."


def _used(measured: float, bound: Bound) -> float:
    """How much of what a bound allows there is, from 0 to 1."""
    upper = bound.sense == "<="
    wrong, most = (measured, bound.level) if upper else (1 - measured, 1 - bound.level)
    return wrong / most if most > 0 else 0.0


def remarks(
    points: Iterable[Point], sample: CalibrationSample, column: str | None
) -> Iterator[str]:
    """What a reader should notice about the rows and the thresholds of each value of a column."""
    if sample.unlabelled()[0]:
        yield f"{plural(sample.unlabelled()[0], 'row')} without a label (NaN or -1) left out."
    for point in points:
        of = "" if point.group is None else f" of {column} {point.group!r}"
        if point.threshold is not None and point.alerts == point.examples:
            yield f"The threshold accepts all of the rows{of}."
        elif point.alerts and point.positives and point.true_alerts is not None:
            found, prior = point.true_alerts / point.alerts, point.positives / point.examples
            if found <= prior:
                yield (
                    f"Of the accepted rows{of} {share_text(found)} are positive, of all "
                    f"{share_text(prior)}: these scores do not find positives there."
                )


def useless(
    points: Sequence[Point], column: str | None = None, sample: CalibrationSample | None = None
) -> Iterator[str]:
    """Why thresholds that are proved are of no use; each completes "certified, but ..."."""
    for point in points:
        of = "" if point.group is None else f" of {column} {point.group!r}"
        if point.threshold is not None and point.alerts == 0:
            yield f"it accepts nobody{of} (too few examples, or too many equal scores on top)"
        elif point.threshold is not None and point.positives and point.true_alerts is not None:
            prior = point.positives / point.examples
            chance = prob_at_most(point.true_alerts, point.alerts, prior)
            if 2 * point.alerts > point.examples:  # the rarer decision is nearer to the binomial
                missed, rejected = (
                    point.positives - point.true_alerts,
                    point.examples - point.alerts,
                )
                chance = prob_at_least(missed, rejected, prior)
            if sample is not None and point.true_alerts <= prior * point.alerts:
                chance = min(chance, _chance_of_ranks(sample))  # few alerts say little
            if chance < _WORSE_THAN_CHANCE / len(points):
                yield (
                    f"it finds fewer positives{of} than chance would ({point.true_alerts:,} of the "
                    f"{point.alerts:,} accepted, {share_text(prior)} of all): inverted scores?"
                )


def _chance_of_ranks(sample: CalibrationSample) -> float:
    """How often positives of scores that say nothing rank as low as these: Mann and Whitney."""
    if sample.labels is None:
        return 1.0
    high, low = (sample.size(Subset((), kind)) for kind in (POSITIVES, NEGATIVES))
    if not high * low:
        return 1.0
    deviation = math.sqrt((high + low + 1) / (12 * high * low))
    return float(ndtr((sample.pairs_in_order() / (high * low) - 0.5) / deviation))


def claim_rows(claims: Iterable[Claim]) -> TextRows:
    """What was measured and what is proved of every bound."""
    for claim in claims:
        if claim.proved is None:
            continue
        if claim.measured is None:
            yield claim.bound, "no example to measure it by"
            continue
        side = "at most" if "<=" in claim.bound else "at least"
        measured, proved = (value_text(claim.bound, v) for v in (claim.measured, claim.proved))
        text = f"{measured} measured, {side} {proved} proved"
        yield claim.bound, f"{text}; {claim.counts}" if claim.counts else text


def titled(title: str, lines: Iterable[str]) -> TextRows:
    """Sentences under one title."""
    for i, line in enumerate(lines):
        yield ("" if i else title), line


def text_table(title: str, rows: TextRows) -> str:
    """A title, then names on the left and texts, wrapped, on the right."""
    pairs = list(rows)
    width = min(max((len(name) for name, _ in pairs), default=0), 28)
    lines = textwrap.wrap(title, _TEXT_WIDTH)
    for name, text in pairs:
        text = text.replace(" %", "\xa0%")  # a number and its per cent stay on one line
        if len(name) > width:
            lines.append(f"  {name}")
            name = ""
        lead, rest = f"  {name:<{width}}  ", " " * (width + 4)
        lines += textwrap.wrap(
            text, _TEXT_WIDTH, initial_indent=lead, subsequent_indent=rest, break_long_words=False
        ) or [lead.rstrip()]
    return "\n".join(lines).replace("\xa0%", " %")


def html_table(title: str, rows: TextRows, status: str) -> str:
    """A title with an edge coloured by the status, over a table. All text is escaped."""
    cell = "text-align:left;vertical-align:top;padding:2px 8px"
    body = "".join(
        f'<tr><th scope="row" style="{cell};font-weight:600">{escape(name)}</th>'
        f'<td style="{cell}">{escape(text)}</td></tr>'
        for name, text in rows
    )
    color = _COLORS.get(status, _ALARM)
    return (
        f'<div style="border-left:4px solid {color};padding-left:8px;max-width:60em">'
        f"<strong>{escape(title)}</strong><table>{body}</table></div>"
    )


def value_text(name: str, value: float) -> str:
    """A value of what ``name`` says: a share in per cent, a cost as it is."""
    return f"{value:.4g}" if name.startswith("cost(") else share_text(value)


def share_text(value: float) -> str:
    """``0.61 %``, with three digits; numbers that are not shares as they are.

    From 99 % on two digits of what is missing: ``99.81 %``.
    """
    if not -1 <= value <= 1:
        return f"{value:.6g}"
    missing = 1 - abs(value)
    if not 0 < missing <= 0.01:
        return f"{100 * value:.3g} %"
    decimals = min(1 - math.floor(math.log10(100 * missing)), 4)
    return f"{round(100 * value, decimals):.10g} %"

"""A certificate and a check in plain text, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from setpoint.certificates.records import CERTIFIED, NOT_CERTIFIED, Point
from setpoint.rates import numeral

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Certificate


WIDTH = 96


def headline(certificate: Certificate) -> str:
    """``certified: fpr <= 0.01 with 95 % confidence``."""
    c = certificate
    sure = "on average" if c.guarantee == "mean" else f"with {percent(c.confidence)} confidence"
    return f"{c.status}: {c.goal} {sure}"


def rows(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What is told, line by line: a name and a text."""
    c = certificate
    for point in c.points:
        yield _threshold(c, point)
    for claim in c.claims:
        if claim.measured is not None and claim.proved is not None:
            side = "at most" if "<=" in claim.bound else "at least"
            text = f"{share(claim.measured)} measured, {side} {share(claim.proved)} proved"
            yield claim.bound, f"{text}; {claim.counts}" if claim.counts else text
    for estimate in c.objective:
        low, high = share(estimate.low), share(estimate.high)
        interval = f"between {low} and {high} ({percent(c.confidence)} confidence of its own)"
        yield estimate.name, f"{share(estimate.value)} measured, {interval}"
    for title, lines in (
        ("notes", c.notes),
        ("assumes", c.assumptions),
        ("would change it", c.advice),
    ):
        for i, line in enumerate(lines):
            yield ("" if i else title), line


def as_text(certificate: Certificate) -> str:
    """The whole certificate."""
    return "\n".join([*textwrap.wrap(headline(certificate), WIDTH), *columns(rows(certificate))])


def columns(told: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Names on the left, texts wrapped on the right."""
    lines = list(told)
    width = min(max((len(name) for name, _ in lines), default=0), 28)
    for name, text in lines:
        if len(name) > width:
            yield f"  {name}"
            name = ""
        lead, rest = f"  {name:<{width}}  ", " " * (width + 4)
        yield from textwrap.wrap(
            text, WIDTH, initial_indent=lead, subsequent_indent=rest, break_long_words=False
        ) or [lead.rstrip()]


def share(value: float) -> str:
    """``0.61 %``; numbers that are not shares as they are."""
    return percent(value) if -1 <= value <= 1 else f"{value:.6g}"


def percent(value: float) -> str:
    """Three digits and a percent sign."""
    return f"{100 * value:.3g} %" if abs(value) < 0.99 else f"{100 * value:.6g} %"


def _threshold(certificate: Certificate, point: Point) -> tuple[str, str]:
    name = "threshold" if certificate.column is None else f"{certificate.column} = {point.group!r}"
    if point.threshold is None:
        positive = "" if point.positives is None else f", {point.positives:,} of them positive"
        return name, f"none; {point.examples:,} rows{positive}"
    accepted = f"accepts {point.alerts:,} of {point.examples:,} rows"
    if point.positives is not None:
        accepted += f" ({point.true_alerts:,} of {point.positives:,} positives)"
    if point.threshold == -float("inf"):
        return name, f"none needed: {accepted}"
    return name, f"score > {numeral(point.threshold)} ({certificate.dtype}), {accepted}"


# A certificate as a small table for notebooks. Text from the user's data is escaped.


COLORS = {CERTIFIED: "#1a7f37", NOT_CERTIFIED: "#b35900"}
OTHER = "#b42318"


def as_html(certificate: Certificate) -> str:
    """The whole certificate."""
    color = COLORS.get(certificate.status, OTHER)
    return table(headline(certificate), color, rows(certificate))


def table(title: str, color: str, told: Iterable[tuple[str, str]]) -> str:
    """A title with a coloured edge over rows of a name and a text."""
    cell = "text-align:left;vertical-align:top;padding:2px 8px"
    body = "".join(
        f'<tr><th scope="row" style="{cell};font-weight:600">{escape(name)}</th>'
        f'<td style="{cell}">{escape(text)}</td></tr>'
        for name, text in told
    )
    return (
        f'<div style="border-left:4px solid {color};padding-left:8px;max-width:60em">'
        f"<strong>{escape(title)}</strong><table>{body}</table></div>"
    )

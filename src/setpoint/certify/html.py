"""A certificate as a small table for notebooks. Text from the user's data is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from setpoint.certify.records import CERTIFIED, NOT_CERTIFIED
from setpoint.certify.text import headline, rows

if TYPE_CHECKING:
    from setpoint.certify.certificate import Certificate

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

"""Docstrings name things as Sphinx does, ``:class:`setpoint.Problem```; show the name alone."""

import re
from typing import Any

ROLE = re.compile(r":(?:class|func|meth|attr|mod|data):<code>~?(?:setpoint\.)?([^<]*)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return ROLE.sub(r"<code>\1</code>", html)

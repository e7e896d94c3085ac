"""HTML in which a user's text can only ever be text."""

from __future__ import annotations

import html
import json
import re
from typing import Any

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
LONGEST = 120


class Html(str):
    """Text that is markup already. Everything else is escaped before it is shown."""

    __slots__ = ()


def escape(value: object) -> Html:
    """Any value as text: markup in it shows, and does nothing."""
    if isinstance(value, Html):
        return value
    return Html(html.escape(_UNPRINTABLE.sub("\ufffd", str(value)), quote=True))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element. Children that are not :class:`Html` are escaped, attributes always.

    ``class_`` and ``stroke_width`` stand for ``class`` and ``stroke-width``; None is left out.

    Example:
        >>> tag("p", "a < b", class_="note")
        '<p class="note">a &lt; b</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("meta", "link", "br", "col"):
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: object) -> Html:
    """Several pieces, one after the other; None is left out."""
    return Html("".join(escape(child) for child in children if child is not None))


def name(value: object, longest: int = LONGEST) -> Html:
    """A user's own word, kept apart from ours: its direction and its length stay its own."""
    return tag("bdi", clip(value, longest))


def clip(value: object, longest: int = LONGEST) -> str:
    """The beginning of a long text; the whole of it is in the JSON block."""
    text = str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def json_block(data: Any, *, id_: str) -> Html:
    """Data for machines, in a script element that no data can close and no browser runs."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, indent=1)
    for sign in "<>&":  # valid inside JSON strings, and they occur nowhere else
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return tag("script", Html(text), type="application/json", id=id_)


def table(caption: object, head: list[object], rows: list[list[object]], **options: Any) -> Html:
    """A table whose first column names the rows; ``chosen`` is the row to point out."""
    chosen = options.get("chosen")
    lines = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell) for cell in row[1:]),
            class_="chosen" if place == chosen else None,
        )
        for place, row in enumerate(rows)
    ]
    body = tag(
        "table",
        tag("caption", caption) if caption else None,
        tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))),
        tag("tbody", *lines),
    )
    return tag("div", body, class_="scroll", role="region", aria_label="table", tabindex="0")

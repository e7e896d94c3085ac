"""The table of all public names, made from the front door (``setpoint/__init__.pyi``)."""

import inspect
from collections.abc import Iterator

import setpoint
from docs.make_goals import MEANING


def page() -> str:
    """A row for every name of ``setpoint``, with a link to its section."""
    rows = (f"| {_link(name)} | {_line(name)} |" for name in setpoint.__all__)
    return "\n".join(("| name | what it is |", "| --- | --- |", *rows))


def documented() -> Iterator[str]:
    """The names that have a section of their own: functions and classes."""
    return (name for name in setpoint.__all__ if _has_section(name))


def path_of(name: str) -> str:
    """Where a name is defined, which is the anchor of its section."""
    known = getattr(setpoint, name)
    return f"{known.__module__}.{known.__qualname__}"


def _has_section(name: str) -> bool:
    known = getattr(setpoint, name)
    return inspect.isclass(known) or inspect.isfunction(known)


def _link(name: str) -> str:
    if _has_section(name):
        return f"[`{name}`][{path_of(name)}]"
    return f"[`{name}`](goals.md#rates)"


def _line(name: str) -> str:
    if not _has_section(name):
        return MEANING.get(name, "a count of decisions, for rates of your own")
    text = inspect.getdoc(getattr(setpoint, name)) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return first.replace("|", "\\|").replace(":class:`setpoint.", "`").replace("``", "`")

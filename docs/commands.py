"""The reference of the command line, made from the parsers of the commands."""

import argparse
from collections.abc import Iterator

from setpoint import cli


def page() -> str:
    """All commands in Markdown, with every argument."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for name in cli.COMMANDS:
        parser = _of(name)
        yield f"## {name}\n\n{_escaped(parser.description or '')}\n"
        usage = " ".join(parser.format_usage().split()).removeprefix("usage: ")
        yield f"```text\n{_wrapped(usage)}\n```\n"
        yield "| argument | meaning |\n| --- | --- |"
        for action in parser._actions:
            if not isinstance(action, argparse._HelpAction):
                yield f"| {_call(action)} | {_help(action, parser)} |"  # `a | b` is one cell
        yield ""


def _of(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    whole = cli.make_parser(name)
    (group,) = (a for a in whole._actions if isinstance(a, argparse._SubParsersAction))
    return group.choices[name]


def _call(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    if not action.option_strings:
        return f"`{value}`"
    return f"`{', '.join(action.option_strings)}{' ' + value if value else ''}`"


def _value(action: argparse.Action) -> str:
    if action.choices is not None and action.metavar is None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    shown = action.metavar or action.dest.upper()
    if isinstance(shown, tuple):
        return " ".join(shown)
    return shown if action.option_strings else str(action.metavar or action.dest)


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    known = {**vars(action), "prog": parser.prog}
    text = (action.help or "") % known
    if action.choices is not None and action.metavar is not None:
        text += f" ({', '.join(map(str, action.choices))})"
    notes = [text] if text else []
    if action.required and action.option_strings:
        notes.append("required")
    known_default = "default" in text or str(action.default) in text
    if action.default not in (None, False, argparse.SUPPRESS, []) and not known_default:
        notes.append(f"default: {action.default}")
    return _escaped("; ".join(notes))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _wrapped(usage: str, width: int = 88) -> str:
    """Lines of at most ``width`` characters; what is in brackets stays together."""
    lines, line = [], ""
    for word in usage.replace(" [", "\n[").replace(" -", "\n-").split("\n"):
        if line and len(line) + len(word) + 1 > width:
            lines.append(line)
            line = "    " + word
        else:
            line = f"{line} {word}".strip() if not line.startswith("    ") else f"{line} {word}"
    return "\n".join([*lines, line])

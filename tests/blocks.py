"""Code blocks of a page, run as a reader would: in order, in one session.

``python`` blocks share their names; ``console`` blocks are commands of ours, whose output must be
what the page shows, but for the figures. What a fragment needs and a reader would have already
(a model, a loader) stands in an invisible comment, ``<!-- setup ... -->``, and runs in its place.
A block that includes a file of ``examples/`` is run by that example's own test.
"""

import re
import shlex

import torch

from setpoint import cli

BLOCK = re.compile(r"```(python|console)\n(.*?)```|<!-- (setup)\n(.*?)-->", flags=re.DOTALL)
INCLUDE = re.compile(r'^--8<-- "(.*)"$', flags=re.MULTILINE)


def blocks(text):
    """Kind and content of each block that can be run."""
    found = [(kind or hidden, code or setup) for kind, code, hidden, setup in BLOCK.findall(text)]
    return [(kind, code) for kind, code in found if not INCLUDE.search(code)]


def included(text):
    """The files that a page includes."""
    return INCLUDE.findall(text)


def run_blocks(text, page, capsys, given=()):
    """Run a page; gives the names it has made, and what each python block printed."""
    names, printed = dict(given), []
    for kind, block in blocks(text):
        if kind == "console":
            check_commands(block, capsys)
            continue
        torch.manual_seed(0)
        exec(compile(block, str(page), "exec"), names)
        printed.append(capsys.readouterr().out)
    return names, printed


def check_commands(block, capsys):
    """What the page shows is what is printed, but for the figures, which machines round."""
    for part in block.replace("\\\n", " ").split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "setpoint"
        assert cli.main(arguments) == 0
        out, err = capsys.readouterr()
        assert words(shown) == words(err + out)


def words(text):
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d.,e+-]*", "#", text)).strip()

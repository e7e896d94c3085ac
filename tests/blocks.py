"""Code blocks of a page, run as a reader would: in order, in one session.

``python`` blocks share their names; ``console`` blocks are commands of ours, whose output must be
what the page shows; a ``text`` block right after a ``python`` block is what that block prints,
as far as "...". What a fragment needs and a reader would have already
(a model, a loader) stands in an invisible comment, ``<!-- setup ... -->``, and runs in its place.
A block that includes a file of ``examples/`` is run by that example's own test.
"""

import contextlib
import io
import re
import shlex

import numpy as np
import torch

from setpoint import cli

BLOCK = re.compile(
    r"```(python|console|(?<=```\n\n```)text)\n(.*?)```|<!-- (setup)\n(.*?)-->", flags=re.DOTALL
)
FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
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
            for command, shown in commands(block):
                same(shown, run(command), exact="setpoint train" not in text)
        elif kind == "text":
            same(block.partition("...")[0], printed[-1], exact=True, part=True)
        else:
            torch.manual_seed(0)
            exec(compile(block, str(page), "exec"), names)
            printed.append(capsys.readouterr().out)
    return names, printed


def commands(block):
    """The commands of a console block, each with the output that is shown."""
    for part in block.replace("\\\n", " ").split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def run(command):
    """What one of our commands says: complaints, then output."""
    program, *arguments = shlex.split(command)
    assert program == "setpoint"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert cli.main(arguments) == 0
    return err.getvalue() + out.getvalue()


def same(shown, found, *, exact, part=False):
    """Words are the same, and figures too; those of training within 5 %, as machines round."""
    # a page has shorter lines than a terminal, and lines end at hyphens too
    shown, found = (re.sub(r"(?<=-)\s+", "", text) for text in (shown, found))
    shown, found = (re.sub(r"\s+", " ", text).strip() for text in (shown, found))
    was, now = (FIGURE.sub("#", text) for text in (shown, found))
    assert now.startswith(was) if part else now == was
    if "ms/" in shown:
        return  # times are those of a machine
    figures = [[float(n.replace(",", "")) for n in FIGURE.findall(t)] for t in (shown, found)]
    figures[1] = figures[1][: len(figures[0])]
    stale = f"shown {shown!r}, printed {found!r}: `python -m docs.console` writes it anew"
    np.testing.assert_allclose(*figures, rtol=1e-12 if exact else 0.05, err_msg=stale)

"""Run the commands of the pages again and write what they print: ``python -m docs.console``.

Every ``console`` block of the pages that are named, or of all pages, shows afterwards what its
commands say now, in lines that fit a phone. ``make test`` fails where a page shows something else
(tests/blocks.py).
"""

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import torch
from blocks import blocks, commands, run

from setpoint.certificates import text as certificate_text

DOCS = Path(__file__).parent.resolve()
PHONE = 62  # characters beside each other on a phone; a terminal shows longer lines


def renewed(text: str) -> str:
    """The page with the present output of its commands."""
    names: dict[str, object] = {}
    for kind, block in blocks(text):
        if kind == "console":
            output = block
            for command, shown in commands(block):
                output = output.replace(shown, run(command)) if shown.strip() else output
            text = text.replace(block, output)
        elif kind != "text":
            torch.manual_seed(0)
            with contextlib.redirect_stdout(io.StringIO()):
                exec(block, names)
    return text


def main(pages: list[Path]) -> None:
    """Renew each page in an empty folder, as its test does."""
    certificate_text._TEXT_WIDTH = PHONE
    for page in pages:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found = renewed(text)
            os.chdir(DOCS)
        if found != text:
            page.write_text(found, encoding="utf-8")
            print(f"{page.relative_to(DOCS)} is renewed")


if __name__ == "__main__":
    named = [Path(name).resolve() for name in sys.argv[1:]]
    shown = [page for page in sorted(DOCS.rglob("*.md")) if "```console" in page.read_text("utf-8")]
    main(named or shown)

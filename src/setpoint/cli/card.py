"""``setpoint card``: a model card (Markdown) of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from setpoint.cli.common import DONE, Command, UserError


def _arguments(parser: argparse.ArgumentParser) -> None:
    help_text = "a folder that `setpoint train` wrote"
    parser.add_argument("run_folder", type=Path, metavar="run/", help=help_text)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: print it")


def _run(given: argparse.Namespace) -> int:
    from setpoint.export.card import model_card
    from setpoint.runs import read_manifest
    from setpoint.runs.result import read_result

    if given.out is not None and given.out.exists():
        raise UserError(f"{given.out} exists; name another file with --out.")
    text = model_card(read_result(given.run_folder, read_manifest(given.run_folder)))
    if given.out is None:
        print(text)
    else:
        given.out.write_text(text, encoding="utf-8")
        print(f"Written: {given.out}")
    return DONE


CARD = Command(_arguments, _run, "Write the model card of a run.")

"""``setpoint card``: a model card (Markdown) of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from setpoint._files import write_file
from setpoint.cli.common import DONE, add_output
from setpoint.export import model_card
from setpoint.runs import read_manifest, read_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A run folder, and where the card goes."""
    help_text = "a folder that `setpoint train` wrote"
    parser.add_argument("run_folder", type=Path, metavar="run/", help=help_text)
    add_output(parser, "FILE", "default: print it")


def run(given: argparse.Namespace) -> int:
    """Print or write the card."""
    text = model_card(read_result(given.run_folder, read_manifest(given.run_folder)))
    if given.out is None:
        print(text)
    else:
        write_file(given.out, text.encode())
        print(f"Written: {given.out}")
    return DONE

"""``setpoint card``: a model card (Markdown) of a certificate or a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from setpoint._files import write_file
from setpoint.cli.common import DONE, add_output, as_json
from setpoint.export import certificate_card, model_card
from setpoint.runs import read_certificate_file, read_manifest, read_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A certificate or a run folder, and where the card goes."""
    help_text = "what `setpoint certify` or `setpoint train` wrote"
    parser.add_argument("source", type=Path, metavar="certificate.json | run/", help=help_text)
    add_output(parser, "FILE", "where the card goes (default: print it)")
    parser.add_argument("--json", action="store_true", help="print the card in a JSON object")


def run(given: argparse.Namespace) -> int:
    """Print or write the card."""
    if given.source.is_dir():
        text = model_card(read_result(given.source, read_manifest(given.source)))
    else:
        text = certificate_card(read_certificate_file(given.source))
    told = {"card": text}
    if given.out is not None:
        write_file(given.out, text.encode(), force=given.force)
        told, text = {"card": str(given.out)}, f"Written: {given.out}"
    print(as_json(told) if given.json else text)
    return DONE

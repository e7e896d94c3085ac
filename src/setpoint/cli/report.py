"""``setpoint report``: the page of a run, drawn again from its scores."""

from __future__ import annotations

import argparse
from pathlib import Path

from setpoint._files import write_file
from setpoint.cli.common import DONE
from setpoint.reports import page
from setpoint.runs import REPORT_FILE, read_manifest, read_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A run folder."""
    help_text = "a folder that `setpoint train` wrote"
    parser.add_argument("run_folder", type=Path, metavar="run/", help=help_text)


def run(given: argparse.Namespace) -> int:
    """Replace report.html of the run."""
    result = read_result(given.run_folder, read_manifest(given.run_folder))
    write_file(given.run_folder / REPORT_FILE, page(result).encode())
    print(f"Written: {given.run_folder / REPORT_FILE}")
    return DONE

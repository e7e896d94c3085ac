"""``setpoint report``: the page of a run, drawn again from its scores. Never torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from setpoint.cli.common import DONE, Command


def _arguments(parser: argparse.ArgumentParser) -> None:
    help_text = "a folder that `setpoint train` wrote"
    parser.add_argument("run_folder", type=Path, metavar="run/", help=help_text)


def _run(given: argparse.Namespace) -> int:
    from setpoint.cli.pages import page_of
    from setpoint.runs import read_manifest
    from setpoint.runs.folder import REPORT as NAME
    from setpoint.runs.folder import replace_file
    from setpoint.runs.result import read_result

    result = read_result(given.run_folder, read_manifest(given.run_folder))
    replace_file(given.run_folder, NAME, page_of(result))
    print(f"Written: {given.run_folder / NAME}")
    return DONE


REPORT = Command(_arguments, _run, "Draw the report page of a run again.")

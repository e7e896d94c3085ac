"""The list of all result files: what, when, by which command."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.common import results

UNKNOWN = {"benchmark": "", "command": "?", "when": ""}
HEAD = """# Results

One row a file of `benchmarks/results`, written by `python -m benchmarks --index` from the files
themselves; every benchmark runs by `python -m benchmarks NAME`, and `--help` tells its options. The
data sets lie in the folder that `SETPOINT_DATA` names.

| file | what | made by | last | seeds | rows |
| --- | --- | --- | --- | --- | ---: |
"""


def entry(file: Path, known: dict[str, str]) -> str:
    """The line of a file."""
    if file.suffix == ".json":
        content = json.loads(file.read_text())
        abouts, rows = [content.get("about", UNKNOWN)], content.get("rows", [])
    else:
        lines = results.lines_of(file)
        abouts = [line["about"] for line in lines if "about" in line]
        rows = [line for line in lines if "about" not in line]
    rows = rows if isinstance(rows, list) else []
    abouts = abouts or [UNKNOWN]
    about = abouts[-1]
    seeds = {row.get("seed", row.get("cell", {}).get("seed")) for row in rows} - {None}
    shown = [
        f"[{file.stem}](results/{file.name})",
        known.get(about["benchmark"], ""),
        f"`{about['command']}`",
        max(each["when"] for each in abouts),
        f"{len(seeds)}" if seeds else "",
        f"{len(rows):,}" if rows else "one document",
    ]
    return "| " + " | ".join(shown) + " |"


def write(known: dict[str, str], page: Path) -> None:
    """Write the page; ``known`` has the first line of every benchmark's docstring."""
    files = sorted([*results.RESULTS.glob("*.jsonl"), *results.RESULTS.glob("*.json")])
    lines = [entry(file, known) for file in files if "_quick" not in file.stem]
    page.write_text(HEAD + "\n".join(lines) + "\n")

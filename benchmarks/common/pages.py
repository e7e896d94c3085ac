"""Results go into pages, between ``<!-- name -->`` and ``<!-- /name -->``.

A table of more than :data:`MOST` rows or ``cells`` cells is written to
``docs/tables/<page>_<name>.csv`` and the page links to it; docs/tables.md shows them all,
and search leaves that page out.
"""

import csv
import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST, CELLS = 10, 30
TABLE = re.compile(r"(?:^\|.*\|[ ]*\n?)+", flags=re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")


def fill(
    page: Path, name: str, text: str, tables: Path = DOCS / "tables", *, cells: int = CELLS
) -> None:
    """Put ``text`` between the marks of ``name``.

    Raises:
        ValueError: if the page has no such marks.
    """
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} has no place for {name!r}: write {start} and {end} into it.")
    short = shortened(text, f"{page.stem}_{name}".replace(" ", "_"), page.parent, tables, cells)
    page.write_text(f"{before}{start}\n{short}\n{end}{after}", encoding="utf-8")


def shortened(text: str, name: str, folder: Path, tables: Path, cells: int) -> str:
    """The text with a link in place of every long table, which goes into a file."""
    for old in tables.glob(f"{name}.csv"), tables.glob(f"{name}_[0-9]*.csv"):
        for file in old:
            file.unlink()
    number = 0

    def moved(found: re.Match[str]) -> str:
        nonlocal number
        lines = [_cells(line) for line in found[0].splitlines()]
        rows = len(lines) - 2
        if rows <= MOST and rows * len(lines[0]) <= cells:
            return found[0]
        number += 1
        stem = name if number == 1 else f"{name}_{number}"
        tables.mkdir(exist_ok=True)
        with (tables / f"{stem}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([lines[0], *lines[2:]])
        place = Path(os.path.relpath(tables, folder)).as_posix()
        links = f"[table]({place}.md#{stem}), [csv]({place}/{stem}.csv)"
        by = ", ".join(filter(None, lines[0][:2]))
        return f"{rows} rows ({by}): {links}.\n"

    return TABLE.sub(moved, text + "\n").rstrip("\n")


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in CELL.split(line.strip().strip("|"))]

"""Words of every page: ``python -m docs.words``. Pages that search leaves out are not counted.

Words are counted as a reader meets them: prose, cells of tables, and code; not marks and comments.
What is made from the code (API, commands, goals) is not part of it.
"""

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
MOST = 35_000
MADE = ("goals.md",)


class Words(NamedTuple):
    """Words of a page by kind."""

    prose: int
    tables: int
    code: int


def count(text: str) -> Words:
    r"""The words of a page.

    >>> count("Two words\n\n| a | b |\n| --- | --- |\n| c d | e |\n\n```sh\nmake test\n```\n")
    Words(prose=2, tables=5, code=2)
    """
    text = re.sub(r"^---\n.*?\n---\n|<!--.*?-->", "", text, flags=re.DOTALL)
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = [line for line in rows if not set(line) <= set("|-: ")]
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    return Words(
        sum(len(line.split()) for line in prose),
        sum(len(line.replace("|", " ").split()) for line in cells),
        sum(len(block.split()) for block in blocks),
    )


def pages() -> dict[str, Words]:
    """Every page that search finds, and the README, which is the front page."""
    found = {"README.md": count((DOCS.parent / "README.md").read_text(encoding="utf-8"))}
    for file in sorted(DOCS.rglob("*.md")):
        text = file.read_text(encoding="utf-8")
        if file.name not in MADE and not re.match(r"---\nsearch:\n  exclude: true\n", text):
            found[file.relative_to(DOCS).as_posix()] = count(text)
    return found


if __name__ == "__main__":
    known = pages()
    print(f"{'page':32} {'prose':>7} {'tables':>7} {'code':>7}")
    for name, words in known.items():
        print(f"{name:32} {words.prose:7,} {words.tables:7,} {words.code:7,}")
    kinds = [sum(kind) for kind in zip(*known.values(), strict=True)]
    print(f"{'all':32} {kinds[0]:7,} {kinds[1]:7,} {kinds[2]:7,} = {sum(kinds):,} of {MOST:,}")

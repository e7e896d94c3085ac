import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "examples" / "one_page.py"


def test_one_page_is_one_page_and_stands_alone():
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported == {"torch"}


@pytest.mark.slow
def test_one_page_shows_the_gain_on_every_seed():
    printed = subprocess.run(
        [sys.executable, PAGE], check=True, capture_output=True, text=True
    ).stdout
    rows = [
        [float(number) for number in re.findall(r"([\d.]+) %", line)]
        for line in printed.splitlines()[1:]
    ]
    assert len(rows) == 3
    for cross_entropy, implicit, best in rows:
        assert cross_entropy - implicit > 5  # 8 to 14 when it was written
        assert implicit - best < 1

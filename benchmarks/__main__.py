"""Every benchmark by its name: ``python -m benchmarks NAME [options]``; without a name, a list.

``python -m benchmarks --index`` writes the list of all result files, ``benchmarks/README.md``.
"""

import ast
import subprocess
import sys
from pathlib import Path

from benchmarks.common import index

HERE = Path(__file__).parent
STARTS = 'if __name__ == "__main__":'


def known() -> dict[str, str]:
    """The names of all modules that can be run, each with the first line of its docstring."""
    found = {}
    for path in sorted(HERE.rglob("*.py")):
        text = path.read_text()
        if path == Path(__file__) or STARTS not in text:
            continue
        parts = path.relative_to(HERE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__main__")
        found[name] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def main(arguments: list[str]) -> int:
    """Run a benchmark with the options that follow its name, and return its exit code."""
    names = known()
    if arguments == ["--index"]:
        index.write(names, HERE / "README.md")
        return 0
    if not arguments or arguments[0] not in names:
        for name, line in names.items():
            print(f"{name:24} {line}")
        return 2 if arguments and not arguments[0].startswith("-") else 0
    name, *options = arguments
    return subprocess.call([sys.executable, "-m", f"benchmarks.{name}", *options])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

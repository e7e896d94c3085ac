"""Write the golden files anew: ``python tests/golden/record.py [family ...]``.

Cases that agree with their record (``compare.py``) keep it, to the last digit.
"""

import json
import sys
import time
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from golden.cases import FAMILIES  # noqa: E402
from golden.compare import EXACT, differences, recorded  # noqa: E402


def record(family: str, into: Path = HERE) -> None:
    """One file, a case a line."""
    lines = []
    for name, case in FAMILIES[family].items():
        start = time.perf_counter()
        torch.manual_seed(0)
        found = json.loads(json.dumps(case()))
        old, place = recorded(family).get(name), f"{family}: {name}"
        if old is not None and not any(differences(found, old, place, exact=family in EXACT)):
            found = old
        value = json.dumps(found, separators=(",", ":"), sort_keys=True)
        lines.append(f"{json.dumps(name)}:{value}")
        print(f"{time.perf_counter() - start:6.2f} s {len(value):7,} {family}: {name}")
    (into / f"{family}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    for family in sys.argv[1:] or FAMILIES:
        record(family)

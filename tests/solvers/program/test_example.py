import re
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "nonnegative_matrix_factorisation.py"


def test_the_factorisation_finds_the_pure_documents_and_improves_on_them(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.startswith("pure documents: [0, 1, 2]\n")
    before, after = (
        tuple(float(x) for x in pair)
        for pair in re.findall(r"off by ([\d.]+), misfit of a document ([\d.]+)", shown)
    )
    assert after[0] < 0.95 * before[0]
    assert after[1] < 0.95 * before[1]

"""The examples that use the layer: examples/lp_layer.py, on fewer days and steps, and NMF."""

import importlib.util
import re
import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_layer_learns_costs(capsys):
    spec = importlib.util.spec_from_file_location("lp_layer", EXAMPLES / "lp_layer.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.DAYS, example.STEPS = 15, 20
    example.main()
    printed = capsys.readouterr().out
    losses = [float(x) for x in re.findall(r"^ +\d+ +([\d.]+) +\d+%", printed, re.MULTILINE)]
    assert len(losses) == 2
    assert losses[1] < 0.7 * losses[0]
    assert "traffic 100%   learned 100%   true 100%" in printed


def test_the_factorisation_finds_the_pure_documents_and_improves_on_them(capsys):
    example = EXAMPLES / "nonnegative_matrix_factorisation.py"
    runpy.run_path(str(example), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.startswith("pure documents: [0, 1, 2]\n")
    before, after = (
        tuple(float(x) for x in pair)
        for pair in re.findall(r"off by ([\d.]+), misfit of a document ([\d.]+)", shown)
    )
    assert after[0] < 0.95 * before[0]
    assert after[1] < 0.95 * before[1]

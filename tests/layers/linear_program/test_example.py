"""examples/lp_layer.py, on fewer days and steps."""

import importlib.util
import re
from pathlib import Path

PATH = Path(__file__).parents[3] / "examples" / "lp_layer.py"


def test_the_example_learns(capsys):
    spec = importlib.util.spec_from_file_location("lp_layer", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.DAYS, example.STEPS = 15, 20
    example.main()
    printed = capsys.readouterr().out
    losses = [float(x) for x in re.findall(r"^ +\d+ +([\d.]+) +\d+%", printed, re.MULTILINE)]
    assert len(losses) == 2
    assert losses[1] < 0.7 * losses[0]
    assert "traffic 100%   learned 100%   true 100%" in printed

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "certified_threshold.py"


def test_the_example_runs_and_keeps_its_promise(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.startswith("certified: maximize recall subject to fpr <= 0.01")
    measured = shown.split("nobody has seen:")[1].split("fpr")[1].split("%")[0]
    assert float(measured) <= 1.0
